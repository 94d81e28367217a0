"""What callers get: a snapshot of a job, and the result of one that ended well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from tarry.core.observation import Observation
from tarry.words import Outcome, Phase

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tick:
    """One poll in a job's timeline: when it started, what it came to, what set the wait after it."""

    at: datetime
    verdict: str
    wait_source: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """A snapshot of a job, as last committed. Datetimes are aware and in UTC.

    `polls` counts calls made, `reserved` (0 or 1) those permitted but not yet
    settled. `status` is the last status value the condition read, `failures` the failed
    polls in a row, `owner` the worker that holds the job, if any. `timeline`
    keeps the last 64 polls.
    """

    id: int
    key: str
    namespace: str
    phase: Phase
    outcome: Outcome | None
    reason: str | None
    status: str | None
    progress: float | str | None
    polls: int
    reserved: int
    max_polls: int | None
    failures: int
    error: str | None
    created_at: datetime
    next_poll_at: datetime | None
    deadline: datetime | None
    finished_at: datetime | None
    owner: int | None
    output: Any
    last: Observation | None
    labels: Mapping[str, str] = field(default_factory=dict)
    timeline: tuple[Tick, ...] = ()


@dataclass(frozen=True, slots=True)
class JobResult(Generic[T]):
    """How a job ended. `output` is what `result` selects; `elapsed` runs from creation to the end."""

    key: str
    outcome: Outcome
    output: T
    last: Observation | None
    polls: int
    started_at: datetime
    finished_at: datetime
    elapsed: timedelta
    labels: Mapping[str, str] = field(default_factory=dict)
