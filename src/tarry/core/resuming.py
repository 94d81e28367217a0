"""What comes next for a state: a call, a wait, or the end that a limit sets."""

from __future__ import annotations

from tarry.core import cadence
from tarry.core.cadence import Due, NoRoom, Schedule
from tarry.core.decision import Call, Stop, Wait
from tarry.core.ending import Next, end
from tarry.core.judging import is_repeatable
from tarry.core.moves import POLLED, Move, move
from tarry.core.spec import JobSpec
from tarry.core.state import JobState, Streak
from tarry.frozen import copier, replace
from tarry.words import CallKind, Instant, Outcome, Phase, WaitSource

_POLL = CallKind.POLL
_FLOOR = WaitSource.FLOOR
_planned = copier(JobState, "due", "wait_source", "wait", "closing", "hold_until", "error")
_at_the_floor = copier(JobState, "due", "wait_source")

LOST = "the answer to the submit was lost"


def resume(spec: JobSpec, state: JobState, now: Instant) -> Next:
    """What comes next for a stored state.

    A submit whose answer was lost is sent again only where that is safe; else a probe
    looks for its job, if the spec has one. A job
    past its deadline gets one closing poll, unless it had one.
    """
    if state.phase in POLLED:  # as most are that are asked about
        return _resume_poll(spec, state, now)
    match state.phase:
        case Phase.DONE:
            return state, Stop(state.outcome or Outcome.INVALID)
        case Phase.SENDING if not is_repeatable(spec):
            return lost(spec, state, Due(now, WaitSource.AT_ONCE), now)
        case Phase.SENDING:
            return _resume_submit(spec, replace(state, phase=move(state.phase, Move.SUBMIT_PUT_OFF)), now)
        case Phase.PREPARING | Phase.SUBMITTING:
            return _resume_submit(spec, state, now)
        case _:  # probing
            return _resume_probe(spec, state, now)


def is_still(state: JobState, call: Call, now: Instant) -> bool:
    """Whether `resume` says the same of a state that it said this of before: the deadline leaves the call all its time.

    It may do so where this is false.
    """
    return state.deadline is None or now + call.timeout <= state.deadline


def lost(spec: JobSpec, state: JobState, schedule: Schedule, now: Instant) -> Next:
    """The answer to a submit that must not be repeated is lost: the probe looks for its job, if there is one."""
    if spec.probe is None:
        return end(state, Outcome.SUBMIT_UNKNOWN, now, LOST)
    if is_overdue(state, now):
        schedule = Due(now, WaitSource.AT_ONCE)
    probing = replace(state, phase=move(state.phase, Move.SUBMIT_LOST), streak=Streak(), lost_at=now)
    return scheduled(spec, probing, schedule, now)


def scheduled(spec: JobSpec, state: JobState, schedule: Schedule, now: Instant) -> Next:
    """The state with its next call planned, and what comes of that."""
    if isinstance(schedule, NoRoom):
        return out_of_time(state, now, schedule.reason)
    due, polled_at = schedule.due, state.polled_at
    state = _planned(
        state,
        due=due,
        wait_source=schedule.source,
        wait=due - now,
        closing=schedule.closing,
        hold_until=schedule.hold_until,
        error=schedule.problem or state.error,
    )
    if state.nudged_at is None and due > now and (polled_at is None or polled_at <= min(now, due - spec.limits.floor)):
        return state, Wait(due, schedule.source)  # what lies ahead and is open was planned this moment
    return resume(spec, hastened(spec, state, now), now)


def hastened(spec: JobSpec, state: JobState, now: Instant) -> JobState:
    """The state with its poll brought forward, if somebody asked for that: never through the floor.

    Nor through the wait that a 429 or 503 asked for.
    """
    if state.nudged_at is None or state.due is None or state.phase not in POLLED:
        return state
    soonest = max(cadence.earliest(spec, state.polled_at, now), state.hold_until or now)
    if soonest >= state.due:
        return state
    return replace(state, due=soonest, wait_source=WaitSource.NUDGE, wait=soonest - now, closing=False)


def out_of_time(state: JobState, now: Instant, reason: str | None = None) -> Next:
    """The deadline ends the job. One whose submit may have arrived is not said to have timed out."""
    if state.phase is Phase.PROBING:
        return end(state, Outcome.SUBMIT_UNKNOWN, now, f"{LOST}, and the deadline came before the probe found its job")
    return end(state, Outcome.TIMED_OUT, now, reason)


def _resume_submit(spec: JobSpec, state: JobState, now: Instant) -> Next:
    if is_overdue(state, now):
        return out_of_time(state, now)
    kind = CallKind.BASELINE if state.phase is Phase.PREPARING else CallKind.SUBMIT
    return _call_or_wait(spec, state, kind, state.due or now, now)


def _resume_probe(spec: JobSpec, state: JobState, now: Instant) -> Next:
    if is_overdue(state, now) and state.streak.length:
        return out_of_time(state, now)
    # Past the deadline too it is made once: the job may be there, and done.
    return _call_or_wait(spec, state, CallKind.PROBE, now if is_overdue(state, now) else _due(spec, state, now), now)


def _resume_poll(spec: JobSpec, state: JobState, now: Instant) -> Next:
    most, polled_at, open_from = spec.limits.max_polls, state.polled_at, now
    if polled_at is not None:
        if polled_at > now:
            # The clock was set back: the last poll, which seems to be yet to come, was made by now at the latest.
            polled_at, state = now, replace(state, polled_at=now)
        open_from = max(now, polled_at + spec.limits.floor)
    spent = most is not None and state.polls >= most
    if state.deadline is not None and now >= state.deadline:
        if spent or _had_its_closing_poll(state, now):
            return end(state, Outcome.TIMED_OUT, now)
        return _call_or_wait(spec, state, _POLL, open_from, now)
    if spent:
        return end(state, Outcome.EXHAUSTED, now)
    if state.due is not None and state.due > now:
        open_from = max(open_from, _due(spec, state, now))
    return _call_or_wait(spec, state, _POLL, open_from, now)


def _had_its_closing_poll(state: JobState, now: Instant) -> bool:
    """Whether a job past its deadline was polled since, or is forbidden to be."""
    if state.polled_at is None or state.deadline is None:
        return False
    was_polled = state.polled_at >= state.deadline and state.nudged_at is None
    return was_polled or (state.hold_until is not None and state.hold_until > now)


def _due(spec: JobSpec, state: JobState, now: Instant) -> Instant:
    """When the stored wait ends. A clock that was set back does not lengthen it."""
    due = now if state.due is None else state.due
    if state.wait is None or due <= now + state.wait:
        return due
    return min(due, now + max(state.wait, spec.limits.floor))


def _call_or_wait(spec: JobSpec, state: JobState, kind: CallKind, due: Instant, now: Instant) -> Next:
    if due <= now:
        bound, deadline = spec.bounds[kind], state.deadline
        # The closing poll of an overdue job has its whole time.
        timeout = bound if deadline is None or now >= deadline else min(bound, deadline - now)
        return state, Call(kind, timeout, kind is _POLL and state.streak.denied == 1)
    if due == state.due:
        return state, Wait(due, state.wait_source)
    return _at_the_floor(state, due=due, wait_source=_FLOOR), Wait(due, _FLOOR)


def is_overdue(state: JobState, now: Instant) -> bool:
    """Whether the deadline is reached."""
    return state.deadline is not None and now >= state.deadline
