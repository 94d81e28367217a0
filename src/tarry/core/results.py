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
    """One poll in a job's timeline.

    `at` is when it started, to the millisecond. `verdict` is a verdict's word, "error" for a
    failed poll, or the outcome for the last one. `wait_source` says what set the wait after
    it, None after the last.
    """

    at: datetime
    verdict: str
    wait_source: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """A snapshot of a job, as last committed. Datetimes are aware and in UTC.

    `polls` counts calls made, `reserved` (0 or 1) those permitted but not yet
    settled. `status` is the last status value the condition read, `progress` a share from 0
    to 1 or a text, `failures` the failed polls in a row, `error` the last failure in one
    line, `owner` the worker that holds the job, if any. `output` is None until the job has
    ended well and, with a `fetch`, until its result is fetched. `paused` says that nobody polls it until it is resumed,
    `quarantined` that this is so because it kept ending the processes that called it.
    `status_url` is where an answer moved the polls to, its query hidden.
    `id` marks a page of `Poller.jobs`. `timeline` keeps the last 64 polls. `wait_source` says what set `next_poll_at`;
    `changed_at` is when status or progress last changed (or the job was resumed), `stalled` says that this is longer ago than `stall` allows.
    """

    id: int
    key: str
    namespace: str
    phase: Phase
    paused: bool
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
    status_url: str | None = None
    timeline: tuple[Tick, ...] = ()
    cancel_requested_at: datetime | None = None
    wait_source: str | None = None
    changed_at: datetime | None = None
    stalled: bool = False
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class Ticked:
    """What one `Poller.tick` came to.

    `outcome` is how the job ended, None while it goes on; then `next_at` is when the next call is
    due (aware, UTC; in the past while another worker is about to make it). `is_mine` is false when
    another worker holds the job, or when it cannot be polled in this process.
    """

    outcome: Outcome | None
    next_at: datetime | None
    is_mine: bool


@dataclass(frozen=True, slots=True)
class JobResult(Generic[T]):
    """How a job ended.

    `output` is what the spec's `result` selects of the last answer (without a `result`, its
    body), and None where the job ended otherwise than well; with a `fetch`, it selects of that
    answer. `last` is the last observation of a poll as
    stored, `polls` counts calls made. `started_at` is the job's creation, `elapsed` the time
    from there to `finished_at`; datetimes are aware and in UTC.
    """

    key: str
    outcome: Outcome
    output: T
    last: Observation | None
    polls: int
    started_at: datetime
    finished_at: datetime
    elapsed: timedelta
    labels: Mapping[str, str] = field(default_factory=dict)
