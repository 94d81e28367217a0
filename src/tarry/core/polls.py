"""Polls: what becomes of a job by the answer to a status call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tarry.core import cadence, phases, stalls
from tarry.core.answers import Answers
from tarry.core.document import document
from tarry.core.ending import Next, end, outcome_of
from tarry.core.judging import Finding, Sort, nowhere, read_poll
from tarry.core.moves import Move, move
from tarry.core.noting import noted, words_of
from tarry.core.observation import Observation
from tarry.core.resuming import is_overdue, scheduled
from tarry.core.spec import JobSpec
from tarry.core.state import NO_STREAK, Confirming, JobState, Streak
from tarry.core.status_url import NowhereError, followed, redirected
from tarry.frozen import replace
from tarry.words import Instant, Json, Outcome, Verdict, micros

Planned: TypeAlias = Callable[[JobSpec, JobState, Observation, Instant], cadence.Schedule]

# A member of an enumeration is found slowly by its name.
_JUDGED = Sort.JUDGED
_SENT, _PENDING, _BLOCKED = Move.POLL_SENT, Move.POLL_PENDING, Move.POLL_BLOCKED
_IS_BLOCKED = Verdict.BLOCKED
_ABSENT = frozenset({404, 410})

MAX_HOPS = 10
"""How often the status URL may be moved in a row before an answer is judged."""


def polled(spec: JobSpec, state: JobState, seen: Observation, now: Instant, answers: Answers) -> Next:
    """Count the poll and judge its answer. Raises `IllegalMove`."""
    counted = _counted(state, seen, now)
    shown = document(spec, state.polls + 1, seen, answers)
    finding = read_poll(spec, seen, shown)
    state = replace(state, **counted, **stalls.moved(state, noted(spec, state, finding.judgement, shown), now))
    if finding.sort is _JUDGED:
        return _judged(spec, state, seen, now, shown, answers)
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


def _counted(state: JobState, seen: Observation, now: Instant) -> dict[str, Any]:
    """What changes by a poll that was made, whatever it brought. Raises `IllegalMove`."""
    started = min(seen.started_at, now)
    # A nudge asks for a poll that starts after it; one that was on its way is not it.
    is_nudged = state.nudged_at is not None and started < state.nudged_at
    return {
        "phase": move(state.phase, _SENT),
        "polled_at": started if state.polled_at is None else max(state.polled_at, started),
        "polls": state.polls + 1,
        "hold_until": None,
        "nudged_at": state.nudged_at if is_nudged else None,
    }


def _judged(
    spec: JobSpec, state: JobState, seen: Observation, now: Instant, shown: dict[str, Json], answers: Answers
) -> Next:
    """A good poll: terminal, or it goes on. Success comes before every limit."""
    outcome, shows_it = outcome_of(state.verdict), seen.status not in _ABSENT
    if outcome is None and shows_it and spec.is_led:
        try:
            followed(spec, state.key, seen, answers)
        except NowhereError as error:
            return _failed(spec, state, nowhere(error), seen, now)
    found = state.found + shows_it
    if outcome is not None:
        before = state.confirming
        times = before.times + 1 if before is not None and before.outcome is outcome else 1
        state = replace(state, streak=NO_STREAK, found=found, hops=0, confirming=Confirming(outcome, times))
        if times >= spec.confirm:
            return end(state, outcome, now, None if outcome.is_success else words_of(spec, seen, shown))
        return _go_on(spec, replace(state, phase=move(state.phase, Move.POLL_PENDING)), seen, now)
    phase = move(state.phase, _BLOCKED if state.verdict is _IS_BLOCKED else _PENDING)
    return _go_on(spec, replace(state, streak=NO_STREAK, found=found, hops=0, phase=phase, confirming=None), seen, now)


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
    limits = spec.limits
    if limits.max_polls is not None and state.polls >= limits.max_polls:
        return end(state, Outcome.EXHAUSTED, now)
    if state.closing or is_overdue(state, now):
        return end(state, Outcome.TIMED_OUT, now)
    stalled = stalls.is_stalled(spec.stall, state, now)
    if stalled and spec.stall is not None and spec.stall.fail:
        return end(state, Outcome.TIMED_OUT, now, stalls.reason(spec.stall, state))
    if stalled and not state.stalled:
        state = replace(state, stalled=True)
    state = phases.entered(spec.strategy, state, now)
    return scheduled(spec, state, planned(spec, state, seen, now), now)
