"""What a held job's row says beside its spec, its state and its answers: as much of it as its polls need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

from tarry.codec import what_it_says
from tarry.frozen import quick, replace
from tarry.ports import Checkpoint, JobRow
from tarry.words import Phase

_SENDING = Phase.SENDING


class Subject(Protocol):
    """A job, and how far its events were told."""

    @property
    def id(self) -> int:
        """The row's id."""
        ...

    @property
    def key(self) -> str:
        """The job's key."""
        ...

    @property
    def run(self) -> int:
        """Which run of the job it is, from 1 on."""
        ...

    @property
    def event_seq(self) -> int:
        """How many events the run has."""
        ...

    @property
    def told(self) -> int:
        """The last of them that was told."""
        ...


@quick
@dataclass(frozen=True, slots=True)
class Entry:
    """The row of a job that waits here, without the texts that nobody reads while it does.

    The names are those of the row; `said` tells what the stored last answer says from what others say.
    """

    id: int
    key: str
    run: int
    token: str
    fence: int
    nonce: str
    cmd: int
    paused: int
    strikes: int
    max_polls: int | None
    event_seq: int
    told: int
    said: int | None
    carried: str | None

    @classmethod
    def of(cls, row: JobRow) -> Self:
        """The entry of a row."""
        return cls(
            row.id,
            row.key,
            row.run,
            row.token,
            row.fence,
            row.nonce or "",
            row.cmd,
            row.paused,
            row.strikes,
            row.max_polls,
            row.event_seq,
            row.told,
            None if row.last is None else said(row.last),
            row.carried,
        )

    def written(self, write: Checkpoint) -> Self:
        """The entry after this write: mostly the same."""
        strikes = self.strikes if write.phase is _SENDING else 0
        is_quiet = write.last is None and write.carried is None and write.told is None and not write.events
        if is_quiet and strikes == self.strikes and write.max_polls == self.max_polls:
            return self
        return replace(
            self,
            max_polls=write.max_polls,
            event_seq=self.event_seq + len(write.events),
            told=max(self.told, write.told or 0),
            strikes=strikes,
            said=self.said if write.last is None else said(write.last),
            carried=self.carried if write.carried is None else write.carried,
        )


def said(last: str) -> int:
    """The same for two stored answers that say the same."""
    return hash(what_it_says(last))
