"""The core: from a job's state and what a call saw to the next state and what to do.

`start` makes a job. `sending` gives the state to commit before a call leaves,
`step` judges what the call saw, `resume` says what comes next for a stored
state. All are pure: the same arguments give the same answer, so a step that is
repeated after a crash decides as it did before.

Whoever drives this commits the state of `sending` before a submit leaves, and
the state of `step` before it sleeps. One that keeps no checkpoints may leave
`sending` out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from tarry.core import cadence
from tarry.core.cadence import NoRoom, Schedule
from tarry.core.decision import Call, Decision, Stop, Wait
from tarry.core.document import document, excerpt
from tarry.core.judging import Finding, Sort, Submitted, is_repeatable, read_poll, read_submit
from tarry.core.moves import Move, move
from tarry.core.noting import noted, words_of
from tarry.core.observation import Observation
from tarry.core.request import Request
from tarry.core.spec import JobSpec
from tarry.core.state import Confirming, JobState, Streak
from tarry.core.texts import short
from tarry.words import CallKind, Instant, Json, Micros, Outcome, Phase, Verdict, WaitSource, micros

Next: TypeAlias = tuple[JobState, Decision]

_REASON, _ERROR = 180, 160
_OUTCOMES = {
    Verdict.SUCCEEDED: Outcome.SUCCEEDED,
    Verdict.PARTIAL: Outcome.PARTIAL,
    Verdict.SKIPPED: Outcome.SKIPPED,
    Verdict.FAILED: Outcome.FAILED,
    Verdict.CANCELLED: Outcome.CANCELLED,
    Verdict.EXPIRED: Outcome.EXPIRED,
}


def start(spec: JobSpec, key: str, now: Instant) -> Next:
    """A new job, created at `now`, and its first decision."""
    total = spec.limits.total_duration
    state = JobState(
        key=key,
        phase=Phase.WAITING if spec.submit is None else Phase.SUBMITTING,
        created_at=now,
        deadline=None if total is None else now + micros(total),
        due=now,
    )
    if spec.submit is None:
        return _scheduled(spec, state, cadence.first_poll(spec, state, None, now), now)
    return resume(spec, state, now)


def resume(spec: JobSpec, state: JobState, now: Instant) -> Next:
    """What comes next for a stored state.

    A submit whose answer was lost is sent again only where that is safe. A job
    past its deadline gets one closing poll, unless it had one.
    """
    match state.phase:
        case Phase.DONE:
            return state, Stop(state.outcome or Outcome.INVALID)
        case Phase.SENDING if not is_repeatable(spec):
            return _end(state, Outcome.SUBMIT_UNKNOWN, now, "the answer to the submit was lost")
        case Phase.SENDING:
            return _resume_submit(spec, replace(state, phase=move(state.phase, Move.SUBMIT_PUT_OFF)), now)
        case Phase.SUBMITTING:
            return _resume_submit(spec, state, now)
        case _:
            return _resume_poll(spec, state, now)


def cancelled(state: JobState, now: Instant) -> JobState:
    """The state of a job that its owner cancels here. Raises `IllegalMove` when it is over."""
    ended, _ = _end(state, Outcome.CANCELLED, now, "cancelled here")
    return ended


def sending(state: JobState, kind: CallKind, now: Instant) -> JobState:
    """The state to commit before a call leaves at `now`. Raises `IllegalMove`."""
    if kind is CallKind.SUBMIT:
        return replace(state, phase=move(state.phase, Move.SUBMIT_SENT), submit_tries=state.submit_tries + 1)
    return replace(state, phase=move(state.phase, Move.POLL_SENT), polled_at=now)


def step(
    spec: JobSpec,
    state: JobState,
    seen: Observation,
    now: Instant,
    *,
    submit: dict[str, Json] | None = None,
) -> Next:
    """Judge what a call saw; the new state and what comes next.

    `submit` is the submit's stored answer, as `answer` gives it: status, headers, body,
    url. A poll is counted here. Raises `IllegalMove` when the state awaits no such call.
    """
    if seen.kind is CallKind.POLL:
        return _polled(spec, _counted(state, seen, now), seen, now, submit)
    if state.phase is Phase.SUBMITTING:
        state = sending(state, CallKind.SUBMIT, now)
    return _submitted(spec, state, seen, now)


# What comes next for a state.


def _resume_submit(spec: JobSpec, state: JobState, now: Instant) -> Next:
    if _is_overdue(state, now):
        return _end(state, Outcome.TIMED_OUT, now)
    return _call_or_wait(spec, state, CallKind.SUBMIT, state.due or now, now)


def _resume_poll(spec: JobSpec, state: JobState, now: Instant) -> Next:
    spent = spec.limits.max_polls is not None and state.polls >= spec.limits.max_polls
    if state.polled_at is not None and state.polled_at > now:
        # The clock was set back: the last poll, which seems to be yet to come, was made by now at the latest.
        state = replace(state, polled_at=now)
    open_from = cadence.earliest(spec, state.polled_at, now)
    if _is_overdue(state, now):
        if spent or _had_its_closing_poll(state, now):
            return _end(state, Outcome.TIMED_OUT, now)
        return _call_or_wait(spec, state, CallKind.POLL, open_from, now)
    if spent:
        return _end(state, Outcome.EXHAUSTED, now)
    return _call_or_wait(spec, state, CallKind.POLL, max(_due(spec, state, now), open_from), now)


def _had_its_closing_poll(state: JobState, now: Instant) -> bool:
    """Whether a job past its deadline was polled since, or is forbidden to be."""
    if state.polled_at is None or state.deadline is None:
        return False
    return state.polled_at >= state.deadline or (state.hold_until is not None and state.hold_until > now)


def _due(spec: JobSpec, state: JobState, now: Instant) -> Instant:
    """When the stored wait ends. A clock that was set back does not lengthen it."""
    due = now if state.due is None else state.due
    return due if state.wait is None else min(due, now + max(state.wait, micros(spec.limits.min_interval)))


def _call_or_wait(spec: JobSpec, state: JobState, kind: CallKind, due: Instant, now: Instant) -> Next:
    if due <= now:
        return state, Call(kind, _timeout(spec, state, kind, now))
    source = state.wait_source if due == state.due else WaitSource.FLOOR
    return replace(state, due=due, wait_source=source), Wait(due, source)


def _timeout(spec: JobSpec, state: JobState, kind: CallKind, now: Instant) -> Micros:
    """How long the call may take. The closing poll of an overdue job has its whole time."""
    request = spec.submit if kind is CallKind.SUBMIT else spec.poll
    bounds = [micros(spec.limits.poll_timeout)]
    if isinstance(request, Request) and request.total_timeout is not None:
        bounds.append(micros(request.total_timeout))
    if state.deadline is not None and now < state.deadline:
        bounds.append(state.deadline - now)
    return min(bounds)


def _is_overdue(state: JobState, now: Instant) -> bool:
    return state.deadline is not None and now >= state.deadline


def _scheduled(spec: JobSpec, state: JobState, schedule: Schedule, now: Instant) -> Next:
    if isinstance(schedule, NoRoom):
        return _end(state, Outcome.TIMED_OUT, now, schedule.reason)
    state = replace(
        state,
        due=schedule.due,
        wait_source=schedule.source,
        wait=schedule.due - now,
        closing=schedule.closing,
        hold_until=schedule.hold_until,
    )
    return resume(spec, state, now)


def _end(state: JobState, outcome: Outcome, now: Instant, reason: str | None = None) -> Next:
    ended = replace(
        state,
        phase=move(state.phase, Move.END),
        outcome=outcome,
        reason=None if reason is None else short(reason, _REASON),
        finished_at=now,
        due=None,
        wait=None,
        hold_until=None,
        closing=False,
    )
    return ended, Stop(outcome)


# Submits.


def _submitted(spec: JobSpec, state: JobState, seen: Observation, now: Instant) -> Next:
    match read_submit(spec, state, seen):
        case Submitted.ACCEPTED:
            accepted = replace(
                state, phase=move(state.phase, Move.ACCEPTED), submitted_at=now, streak=Streak(), error=None
            )
            if _is_overdue(accepted, now):
                return resume(spec, replace(accepted, due=now), now)
            return _scheduled(spec, accepted, cadence.first_poll(spec, accepted, seen, now), now)
        case Submitted.AGAIN:
            return _put_off(spec, _with_submit_error(state, seen), seen, now)
        case Submitted.LOST:
            state = _with_submit_error(state, seen)
            return _end(state, Outcome.SUBMIT_UNKNOWN, now, "the answer to the submit was lost")
        case _:  # refused
            return _end(_with_submit_error(state, seen), Outcome.FAILED, now, f"submit refused: {excerpt(seen)}")


def _put_off(spec: JobSpec, state: JobState, seen: Observation, now: Instant) -> Next:
    streak = replace(state.streak, length=state.streak.length + 1)
    state = replace(state, phase=move(state.phase, Move.SUBMIT_PUT_OFF), streak=streak)
    if state.closing or _is_overdue(state, now):
        return _end(state, Outcome.TIMED_OUT, now)
    return _scheduled(spec, state, cadence.next_submit(spec, state, seen, now), now)


def _with_submit_error(state: JobState, seen: Observation) -> JobState:
    error = excerpt(seen) if seen.error is None else f"{seen.error.kind}: {seen.error.detail}"
    return replace(state, error=short(f"submit: {error}", _ERROR))


# Polls.


def _counted(state: JobState, seen: Observation, now: Instant) -> JobState:
    started = min(seen.started_at, now)
    last = started if state.polled_at is None else max(state.polled_at, started)
    return replace(sending(state, CallKind.POLL, last), polls=state.polls + 1, hold_until=None)


def _polled(spec: JobSpec, state: JobState, seen: Observation, now: Instant, submit: dict[str, Json] | None) -> Next:
    shown = document(spec, state, seen, submit)
    finding = read_poll(spec, seen, shown)
    state = noted(spec, state, finding.judgement, shown)
    match finding.sort:
        case Sort.JUDGED:
            return _judged(spec, state, seen, now, shown)
        case Sort.UNCHANGED:
            unchanged = replace(state, phase=move(state.phase, Move.POLL_UNCHANGED), streak=Streak())
            return _go_on(spec, unchanged, seen, now)
        case Sort.MISSING if _is_too_early_to_be_found(spec, state, now):
            waiting = replace(
                state, phase=move(state.phase, Move.POLL_PENDING), streak=Streak(), verdict=Verdict.PENDING
            )
            return _go_on(spec, waiting, seen, now)
        case Sort.INVALID:
            return _end(state, Outcome.INVALID, now, finding.error)
        case Sort.GONE:
            return _end(replace(state, error=finding.error), Outcome.LOST, now, finding.error)
        case _:
            return _failed(spec, state, finding, seen, now)


def _judged(spec: JobSpec, state: JobState, seen: Observation, now: Instant, shown: dict[str, Json]) -> Next:
    """A good poll: terminal, or it goes on. Success comes before every limit."""
    state = replace(state, streak=Streak(), found=state.found or seen.status not in {404, 410})
    outcome = None if state.verdict is None else _OUTCOMES.get(state.verdict)
    if outcome is not None:
        before = state.confirming
        times = before.times + 1 if before is not None and before.outcome is outcome else 1
        state = replace(state, confirming=Confirming(outcome, times))
        if times >= spec.confirm:
            return _end(state, outcome, now, None if outcome.is_success else words_of(spec, seen, shown))
        return _go_on(spec, replace(state, phase=move(state.phase, Move.POLL_PENDING)), seen, now)
    made = Move.POLL_BLOCKED if state.verdict is Verdict.BLOCKED else Move.POLL_PENDING
    return _go_on(spec, replace(state, phase=move(state.phase, made), confirming=None), seen, now)


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
        return _end(state, Outcome.UNREACHABLE, now, f"access denied {streak.denied} times in a row: {finding.error}")
    if streak.missing >= errors.max_not_found:
        return _end(state, Outcome.LOST, now, f"not found {streak.missing} times in a row: {finding.error}")
    outage = 0 if streak.since is None else now - streak.since
    if streak.spent >= errors.max_consecutive and outage >= micros(errors.min_outage):
        return _end(state, Outcome.UNREACHABLE, now, f"{streak.spent} polls in a row failed: {finding.error}")
    return _go_on(spec, state, seen, now)


def _longer(streak: Streak, finding: Finding, now: Instant) -> Streak:
    since = now if streak.since is None and finding.spends else streak.since
    return Streak(
        length=streak.length + 1,
        spent=streak.spent + finding.spends,
        since=since,
        denied=streak.denied + 1 if finding.sort is Sort.DENIED else 0,
        missing=streak.missing + 1 if finding.sort is Sort.MISSING else 0,
    )


def _is_too_early_to_be_found(spec: JobSpec, state: JobState, now: Instant) -> bool:
    began = state.created_at if state.submitted_at is None else state.submitted_at
    return not state.found and now - began <= micros(spec.errors.not_found_grace)


def _go_on(spec: JobSpec, state: JobState, seen: Observation, now: Instant) -> Next:
    """The job is not over by what the poll saw: by its limits, or not yet."""
    limits = spec.limits
    if limits.max_polls is not None and state.polls >= limits.max_polls:
        return _end(state, Outcome.EXHAUSTED, now)
    if state.closing or _is_overdue(state, now):
        return _end(state, Outcome.TIMED_OUT, now)
    return _scheduled(spec, state, cadence.next_poll(spec, state, seen, now), now)
