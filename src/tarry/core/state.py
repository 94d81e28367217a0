"""`JobState`: all that the core remembers of a job between two calls."""

from __future__ import annotations

from dataclasses import dataclass

from tarry.frozen import quick
from tarry.words import Instant, Micros, Outcome, Phase, Verdict, WaitSource


@quick
@dataclass(frozen=True, slots=True)
class Streak:
    """Failed polls in a row.

    `length` counts all of them (it sets the backoff); `spent` those that
    spend the error budget, the first of which was at `since`; `denied` and
    `missing` count 401/403 and 404 answers in a row.
    """

    length: int = 0
    spent: int = 0
    since: Instant | None = None
    denied: int = 0
    missing: int = 0


NO_STREAK = Streak()


@quick
@dataclass(frozen=True, slots=True)
class Confirming:
    """A run of equal terminal verdicts that still has to grow (`confirm=k`)."""

    outcome: Outcome
    times: int


@quick
@dataclass(frozen=True, slots=True)
class Seen:
    """One distinct value that a condition looked at, and how often it was there."""

    path: str
    value: str
    times: int


@quick
@dataclass(frozen=True, slots=True)
class Stage:
    """Where a job stands in the phases of its strategy: which one, the polls made before it, when it began."""

    index: int
    polls: int
    since: Instant


@quick
@dataclass(frozen=True, slots=True)
class JobState:
    """A job between two calls; versioned JSON of under 2 KB when stored.

    Instants are microseconds UTC. `polls` counts status calls made;
    `deadline` is set once, at creation; `due` is when the next call is due
    (None when done); `polled_at` is when the last poll started; `hold_until`
    is the end of a wait that a 429 or 503 asked for; `closing` is true once the
    last poll before the deadline has been scheduled. `submit_tries` counts
    submits that were about to leave; `lost_at` is when it was noticed that the answer
    to one was lost. `nudged_at` is when somebody asked for a poll that has not started since.
    `found` counts the polls whose judged answer showed the job (a 404 does
    not), `hops` the moves of the status URL since the last judged one.
    `status` is the last status value the condition read, as text; `unknown`
    the values already reported as unknown. `stage` is where in `Phases` it stands.
    `changed_at` is when status or progress last changed; `stalled` is true while that is too long ago.
    """

    key: str
    phase: Phase
    created_at: Instant
    deadline: Instant | None
    due: Instant | None
    wait_source: WaitSource = WaitSource.START
    polls: int = 0
    polled_at: Instant | None = None
    submit_tries: int = 0
    lost_at: Instant | None = None
    submitted_at: Instant | None = None
    hold_until: Instant | None = None
    nudged_at: Instant | None = None
    closing: bool = False
    found: int = 0
    hops: int = 0
    streak: Streak = NO_STREAK
    failed_polls: int = 0
    confirming: Confirming | None = None
    verdict: Verdict | None = None
    status: str | None = None
    progress: float | str | None = None
    seen: tuple[Seen, ...] = ()
    unknown: tuple[str, ...] = ()
    error: str | None = None
    wait: Micros | None = None
    stage: Stage | None = None
    changed_at: Instant | None = None
    stalled: bool = False
    outcome: Outcome | None = None
    reason: str | None = None
    finished_at: Instant | None = None
