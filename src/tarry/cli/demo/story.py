"""What happened in a demo, as facts from three witnesses: the service, the database, and the clock of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tarry.core.results import Job
from tarry.ports import StoredEvent
from tarry.words import Instant


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as the service logged it, with the HTTP status it answered and the job it was about."""

    at: Instant
    method: str
    path: str
    status: int
    job: str


@dataclass(frozen=True, slots=True)
class Life:
    """A process: started and ended when, and how (a negative exit code is the signal that ended it)."""

    pid: int
    started_at: Instant
    ended_at: Instant
    exit_code: int
    printed: str


@dataclass(frozen=True, slots=True)
class Story:
    """All of it."""

    folder: Path
    database: Path
    first: Life
    second: Life
    seen: Sequence[Seen]
    job: Job
    events: Sequence[StoredEvent]

    @property
    def jobs_created(self) -> int:
        """How many jobs the submits made at the service."""
        return len({seen.job for seen in self.submits})

    @property
    def submits(self) -> list[Seen]:
        """The POSTs."""
        return [seen for seen in self.seen if seen.method == "POST"]

    @property
    def polls(self) -> list[Seen]:
        """The GETs."""
        return [seen for seen in self.seen if seen.method == "GET"]
