"""What a person's command makes of a job's state, whoever holds the job."""

from __future__ import annotations

from tarry.core import cadence
from tarry.core.cadence import Due
from tarry.core.resuming import hastened, is_overdue
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.frozen import replace
from tarry.words import Instant, micros


def nudged(spec: JobSpec, state: JobState, now: Instant) -> JobState:
    """Look now: the next poll is brought forward, never through the floor.

    An answer on its way does not count: it may be older than what the nudge is about.
    """
    return hastened(spec, replace(state, nudged_at=now), now)


def resumed(state: JobState, now: Instant) -> JobState:
    """Go on after a pause: nobody looked meanwhile, so what may be a stall begins here."""
    return replace(state, changed_at=now, stalled=False)


def respecified(before: JobSpec, spec: JobSpec, state: JobState, now: Instant) -> JobState:
    """The state under a spec that takes the place of the one before, from the next poll on.

    The phases of another strategy begin with that poll. The deadline counts from the creation. One that has passed already leaves the job
    one closing poll, now; polls that are spent already leave it none.
    """
    if spec.strategy != before.strategy:
        state = replace(state, stage=None)
    total, limit = spec.limits.total_duration, spec.limits.max_polls
    deadline = None if total is None else state.created_at + micros(total)
    if deadline != state.deadline:
        state = _moved(spec, replace(state, deadline=deadline, closing=False), now)
    return replace(state, due=now) if limit is not None and state.polls >= limit else state


def _moved(spec: JobSpec, state: JobState, now: Instant) -> JobState:
    """The wait cut to a deadline that was moved."""
    if is_overdue(state, now):
        return nudged(spec, state, now)
    if state.due is None:
        return state
    open_from = cadence.earliest(spec, state.polled_at, now)
    planned = Due(state.due, state.wait_source, hold_until=state.hold_until)
    schedule = cadence.cut(spec, state, planned, earliest=open_from)
    if schedule is planned:
        return state
    if isinstance(schedule, Due):
        return replace(
            state, due=schedule.due, wait_source=schedule.source, wait=schedule.due - now, closing=schedule.closing
        )
    # No room is left before the deadline: the one poll that a late job gets comes as soon as it may.
    return replace(state, due=open_from)
