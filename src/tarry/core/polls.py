"""Polls: what becomes of a job by the answer to a status call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tarry.core import cadence, phases, stalls
from tarry.core.answers import Answers
from tarry.core.document import document
from tarry.core.ending import OUTCOMES, Next, end
from tarry.core.judgement import Judgement
from tarry.core.judging import Finding, Sort, nowhere, read_poll
from tarry.core.moves import MOVES, POLLED, IllegalMove, Move, move
from tarry.core.noting import noted, notes, words_of
from tarry.core.observation import Observation
from tarry.core.resuming import scheduled
from tarry.core.spec import JobSpec
from tarry.core.state import NO_STREAK, Confirming, JobState, Streak
from tarry.core.status_url import NowhereError, followed, redirected
from tarry.frozen import copier, replace
from tarry.words import Instant, Json, Outcome, Verdict, micros

Planned: TypeAlias = Callable[[JobSpec, JobState, Observation, Instant], cadence.Schedule]

# A member of an enumeration is found slowly by its name.
_JUDGED = Sort.JUDGED
_SENT, _PENDING, _BLOCKED = Move.POLL_SENT, Move.POLL_PENDING, Move.POLL_BLOCKED
_IS_BLOCKED = Verdict.BLOCKED
_ABSENT = frozenset({404, 410})

# `hold_until` is left to the plan that follows, or to the end.
_with_judgement = copier(
    JobState,
    *("phase", "polled_at", "polls", "nudged_at", "found", "hops", "streak", "confirming"),
    *("verdict", "status", "progress", "seen", "unknown"),
)

MAX_HOPS = 10
"""How often the status URL may be moved in a row before an answer is judged."""


def polled(spec: JobSpec, state: JobState, seen: Observation, now: Instant, answers: Answers) -> Next:
    """Count the poll and judge its answer. Raises `IllegalMove`."""
    if state.phase not in POLLED:
        raise IllegalMove(state.phase, _SENT)
    shown = document(spec, state.polls + 1, seen, answers)
    finding = read_poll(spec, seen, shown)
    if finding.sort is _JUDGED and spec.is_led:
        finding = _lead(spec, state.key, finding, seen, answers)
    judgement = finding.judgement
    if finding.sort is _JUDGED and judgement is not None:
        return _judged(spec, state, judgement, seen, now, shown)
    state = _counted(state, seen, now)
    if judgement is not None:
        state = _showing(spec, state, judgement, now, shown)
    match finding.sort:
        case Sort.MOVED:
            return _moved(spec, state, finding, seen, now, answers)
        case Sort.UNCHANGED:
            unchanged = replace(state, phase=move(state.phase, Move.POLL_UNCHANGED), streak=NO_STREAK)
            return _go_on(spec, unchanged, seen, now)
        case Sort.MISSING if _is_too_early_to_be_found(spec, state, now):
            waiting = replace(
                state, phase=move(state.phase, Move.POLL_PENDING), streak=NO_STREAK, verdict=Verdict.PENDING
            )
            return _go_on(spec, waiting, seen, now)
        case Sort.INVALID:
            return end(state, Outcome.INVALID, now, finding.error)
        case Sort.GONE:
            return end(replace(state, error=finding.error), Outcome.LOST, now, finding.error)
        case _:
            return _failed(spec, state, finding, seen, now)


def repeated(spec: JobSpec, state: JobState, known: Judgement, seen: Observation, now: Instant) -> Next:
    """Count a poll whose answer repeats one that was `known` to mean this. Raises `IllegalMove`."""
    if state.phase not in POLLED:
        raise IllegalMove(state.phase, _SENT)
    return _judged(spec, state, known, seen, now, None)


def _lead(spec: JobSpec, key: str, finding: Finding, seen: Observation, answers: Answers) -> Finding:
    """What a judged answer means that may move the status URL: where it leads nowhere, a failed poll."""
    judgement = finding.judgement
    if judgement is None or judgement.verdict in OUTCOMES or seen.status in _ABSENT:
        return finding
    try:
        followed(spec, key, seen, answers)
    except NowhereError as error:
        return replace(nowhere(error), judgement=judgement)
    return finding


def _begun(state: JobState, seen: Observation, now: Instant) -> tuple[Instant, Instant | None]:
    """When the last poll started, this one counted, and the nudge that is still open."""
    started, before, nudged = min(seen.started_at, now), state.polled_at, state.nudged_at
    # A nudge asks for a poll that starts after it; one that was on its way is not it.
    is_open = nudged is not None and started < nudged
    return started if before is None or before < started else before, nudged if is_open else None


def _counted(state: JobState, seen: Observation, now: Instant) -> JobState:
    """The state with a poll that was made, whatever it brought."""
    polled_at, nudged_at = _begun(state, seen, now)
    return replace(state, polled_at=polled_at, polls=state.polls + 1, hold_until=None, nudged_at=nudged_at)


def _showing(spec: JobSpec, state: JobState, judgement: Judgement, now: Instant, shown: dict[str, Json]) -> JobState:
    """The state with what the condition read in an answer that was no good."""
    after = noted(spec, state, judgement, shown)
    if stalls.is_moved(state, judgement.verdict, after.status, after.progress):
        return replace(after, changed_at=now, stalled=False)
    return after


def _judged(
    spec: JobSpec, state: JobState, judgement: Judgement, seen: Observation, now: Instant, shown: dict[str, Json] | None
) -> Next:
    """A good poll: terminal, or it goes on. Success comes before every limit; `shown` is None where nothing was read."""
    verdict = judgement.verdict
    outcome = OUTCOMES.get(verdict)
    confirming = None if outcome is None else _confirming(state.confirming, outcome)
    polled_at, nudged_at = _begun(state, seen, now)
    values, status, unknown, progress = notes(spec, state, judgement, shown)
    if stalls.is_moved(state, verdict, status, progress):
        state = replace(state, changed_at=now, stalled=False)
    state = _with_judgement(
        state,
        phase=MOVES[state.phase, _BLOCKED if verdict is _IS_BLOCKED else _PENDING],
        polled_at=polled_at,
        polls=state.polls + 1,
        nudged_at=nudged_at,
        found=state.found + (seen.status not in _ABSENT),
        hops=0,
        streak=NO_STREAK,
        confirming=confirming,
        verdict=verdict,
        status=status,
        progress=progress,
        seen=values,
        unknown=unknown,
    )
    if outcome is not None and confirming is not None and confirming.times >= spec.confirm:
        return end(state, outcome, now, None if outcome.is_success else words_of(spec, seen, shown))
    return _go_on(spec, state, seen, now)


def _confirming(before: Confirming | None, outcome: Outcome) -> Confirming:
    """The run of equal terminal verdicts with one more of this outcome."""
    return Confirming(outcome, before.times + 1 if before is not None and before.outcome is outcome else 1)


def _moved(spec: JobSpec, state: JobState, finding: Finding, seen: Observation, now: Instant, answers: Answers) -> Next:
    """A good poll that sends the next ones elsewhere: there at once, as far as floor and hints allow."""
    try:
        redirected(spec, state.key, seen, answers, is_told=finding.judgement is not None)
    except NowhereError as error:
        return _failed(spec, state, nowhere(error), seen, now)
    if state.hops >= MAX_HOPS:
        return end(state, Outcome.INVALID, now, f"the status URL moved more than {MAX_HOPS} times in a row")
    state = replace(
        state,
        phase=move(state.phase, Move.POLL_MOVED),
        streak=NO_STREAK,
        hops=state.hops + 1,
        verdict=None if finding.judgement is None else state.verdict,
        confirming=None,
    )
    return _go_on(spec, state, seen, now, cadence.at_once)


def _failed(spec: JobSpec, state: JobState, finding: Finding, seen: Observation, now: Instant) -> Next:
    """A failed poll: it ends the job when a budget is spent, else it goes on."""
    streak = _longer(state.streak, finding, now)
    state = replace(
        state,
        phase=move(state.phase, Move.POLL_FAILED),
        failed_polls=state.failed_polls + 1,
        streak=streak,
        error=finding.error,
    )
    errors = spec.errors
    if streak.denied >= errors.max_denied:
        return end(state, Outcome.UNREACHABLE, now, f"access denied {streak.denied} times in a row: {finding.error}")
    if streak.missing >= errors.max_not_found:
        return end(state, Outcome.LOST, now, f"not found {streak.missing} times in a row: {finding.error}")
    outage = 0 if streak.since is None else now - streak.since
    if streak.spent >= errors.max_consecutive and outage >= micros(errors.min_outage):
        return end(state, Outcome.UNREACHABLE, now, f"{streak.spent} polls in a row failed: {finding.error}")
    is_first_denial = finding.sort is Sort.DENIED and streak.denied == 1
    return _go_on(spec, state, seen, now, cadence.at_once if is_first_denial else cadence.next_poll)


def _longer(streak: Streak, finding: Finding, now: Instant) -> Streak:
    since = now if streak.since is None and finding.spends else streak.since
    return Streak(
        length=streak.length + 1,
        spent=streak.spent + finding.spends,
        since=since,
        denied=_denied(streak, finding),
        missing=streak.missing + 1 if finding.sort is Sort.MISSING else 0,
    )


def _denied(streak: Streak, finding: Finding) -> int:
    """Denials in a row; a call that never left says nothing of them."""
    if finding.sort is Sort.DENIED:
        return streak.denied + 1
    return streak.denied if finding.is_unsent else 0


def _is_too_early_to_be_found(spec: JobSpec, state: JobState, now: Instant) -> bool:
    began = state.created_at if state.submitted_at is None else state.submitted_at
    return not state.found and now - began <= micros(spec.errors.not_found_grace)


def _go_on(
    spec: JobSpec, state: JobState, seen: Observation, now: Instant, planned: Planned = cadence.next_poll
) -> Next:
    """The job is not over by what the poll saw: by its limits, or not yet."""
    most, deadline = spec.limits.max_polls, state.deadline
    if most is not None and state.polls >= most:
        return end(state, Outcome.EXHAUSTED, now)
    if state.closing or (deadline is not None and now >= deadline):
        return end(state, Outcome.TIMED_OUT, now)
    if spec.stall is not None and stalls.is_stalled(spec.stall, state, now):
        if spec.stall.fail:
            return end(state, Outcome.TIMED_OUT, now, stalls.reason(spec.stall, state))
        state = replace(state, stalled=True)
    if state.stage is not None or spec.strategy.type == "phases":
        state = phases.entered(spec.strategy, state, now)
    return scheduled(spec, state, planned(spec, state, seen, now), now)
