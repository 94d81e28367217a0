"""Tells events at least once: how far a job's were told is part of its row.

What is told is read back from the store after each commit that has something to tell: it
may hold more than this process wrote. What somebody else wrote, and died before it was told,
is told when this process claims the job, or looks at one that is over. Each event has its
cursor (run, seq), so that a callback can tell a second time from a first.

Only pollers with an `on_event` write down how far they told. One without leaves
that as it is: the next with one hears of all that was missed.
"""

from __future__ import annotations

from collections.abc import Sequence

from tarry.errors import TarryError
from tarry.ports import JobRow, StoredEvent
from tarry.runtime.bulletin import Bulletin
from tarry.runtime.entry import Subject
from tarry.runtime.writer import Writer

_PAGE = 1000


class Herald:
    """Between what is stored and the bulletin of this process."""

    def __init__(self, bulletin: Bulletin, writer: Writer, namespace: str) -> None:
        self._bulletin = bulletin
        self._writer = writer
        self._namespace = namespace

    def tell(self, job: int, events: Sequence[StoredEvent]) -> None:
        """Tell what this process has just committed of the job with this id."""
        self._bulletin.tell(job, events)

    def tell_end(self, row: JobRow, events: Sequence[StoredEvent]) -> None:
        """Tell how this process ended a job that it may not hold; `row` is the job before, `events` its last.

        What others were about to tell of it is theirs to tell.
        """
        if events and self._bulletin.told(row.id, row.run) == events[0].seq - 1:
            self._bulletin.tell(row.id, events)
        else:
            self._bulletin.tell_once(events)

    def ring(self, key: str) -> None:
        """Rouse those who watch a job; whoever holds it tells what was added to it, or will once it is held."""
        self._bulletin.ring(key)

    def told(self, row: Subject) -> int | None:
        """How far the job's events were told here, to be written down; None where nobody is told, or it is known."""
        if not self._bulletin.has_listener:
            return None
        told = self._bulletin.told(row.id, row.run)
        return told if told > row.told else None

    async def catch_up(self, row: Subject) -> None:
        """Tell what was not told of the job by the time its row was read."""
        if max(row.told, self._bulletin.told(row.id, row.run)) < row.event_seq:
            await self.tell_new(row)

    async def tell_new(self, row: Subject) -> None:
        """Tell what is stored of the job and was not told, whoever stored it."""
        if not self._bulletin.has_listener:
            self._bulletin.ring(row.key)
            return
        known = max(row.told, self._bulletin.told(row.id, row.run))
        cursor = (1, known)  # what was not told of an earlier run is still to be told
        events = await self._writer.events((self._namespace, row.key, cursor, _PAGE))
        if isinstance(events, TarryError):
            raise events
        self._bulletin.tell(row.id, events)

    async def catch_up_with_end(self, row: Subject) -> None:
        """As `catch_up`, of a job that is over: whoever ended it may have died before it told."""
        await self.catch_up(row)
        await self.write_down(row)

    async def write_down(self, row: Subject) -> None:
        """Remember for good how far the events of a job that nobody holds were told."""
        told = self.told(row)
        if told is not None:
            await self._writer.told((row.id, row.run, told))
