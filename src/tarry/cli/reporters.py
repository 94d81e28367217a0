"""How a wait is reported while it lasts: a live line, lines, or not at all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TextIO

from tarry.cli.changes import commits, line
from tarry.cli.history import Cursor, cursor_after
from tarry.cli.world import complain, is_terminal, say
from tarry.ports import Clock
from tarry.words import MILLISECOND, moment

if TYPE_CHECKING:
    from tarry.api import Poller

REDRAW_EVERY = 100 * MILLISECOND
READ_EVERY = 10
"""Redraws between two looks at the stored job, while no poll is due."""


class Reporter(Protocol):
    """Reports one job until it is over."""

    async def follow(self, poller: Poller, key: str, after: Cursor) -> None:
        """Report what happens past the cursor."""
        ...

    async def rest(self, poller: Poller, key: str) -> None:
        """After `follow` was cut short: report what is committed and not told yet."""
        ...


class Silence:
    """Reports nothing (`--quiet`)."""

    async def follow(self, poller: Poller, key: str, after: Cursor) -> None:
        """Nothing to do."""

    async def rest(self, poller: Poller, key: str) -> None:
        """Nothing to do."""


class Lines:
    """One line a change."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._told: Cursor = (0, 0)

    async def follow(self, poller: Poller, key: str, after: Cursor) -> None:
        """Print each change as it is committed, by this process or another; the end is told by others."""
        self._told = after
        async for stored in poller.watch(key, after):
            if (stored.run, stored.seq) > self._told:
                # The rest of its commit is there too, and belongs on the same line.
                await self.rest(poller, key)

    async def rest(self, poller: Poller, key: str) -> None:
        """Print what is committed and not told yet."""
        news = await poller.history(key, self._told)
        job = await poller.get(key) if news else None
        found = commits([item for item in news if item.kind != "finished"])
        for commit in found:
            self._write(line(commit, job if commit is found[-1] else None))
        # Nothing is awaited between the first line and here, so none is told twice and none is left out.
        self._told = max(self._told, cursor_after(news))


@dataclass(frozen=True, slots=True)
class LiveReport:
    """A live line on a terminal."""

    stream: TextIO
    clock: Clock

    async def follow(self, poller: Poller, key: str, after: Cursor) -> None:  # noqa: ARG002  # it shows what is, not what was
        """Redraw ten times a second; the last frame stays."""
        from tarry.cli.live import LiveLine

        job, turn = await poller.get(key), 0
        with LiveLine(self.stream) as live:
            while job.outcome is None:
                live.draw(job, moment(self.clock.now()))
                await self.clock.sleep(REDRAW_EVERY)
                turn += 1
                overdue = job.next_poll_at is None or job.next_poll_at <= moment(self.clock.now())
                if overdue or turn % READ_EVERY == 0:
                    job = await poller.get(key)
            live.draw(job, moment(self.clock.now()))

    async def rest(self, poller: Poller, key: str) -> None:
        """The last frame stays as it is; the last line says where the job stands."""


def reporter(clock: Clock, *, quiet: bool, to_stderr: bool) -> Reporter:
    """The one for these streams."""
    if quiet:
        return Silence()
    stream = sys.stderr if to_stderr else sys.stdout
    if is_terminal(stream) and not _is_dumb(stream):
        return LiveReport(stream, clock)
    return Lines(complain if to_stderr else say)


def _is_dumb(stream: TextIO) -> bool:
    """Whether this terminal cannot redraw a line."""
    from rich.console import Console

    return Console(file=stream).is_dumb_terminal
