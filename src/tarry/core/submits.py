"""Submits: what becomes of a job by the answer to the request that starts it."""

from __future__ import annotations

from dataclasses import replace

from tarry.core import cadence
from tarry.core.document import excerpt
from tarry.core.ending import Next, end
from tarry.core.judging import Submitted, read_submit
from tarry.core.moves import Move, move
from tarry.core.observation import Observation
from tarry.core.resuming import is_overdue, resume, scheduled
from tarry.core.spec import JobSpec
from tarry.core.state import JobState, Streak
from tarry.core.texts import short
from tarry.words import Instant, Outcome

_ERROR = 160


def submitted(spec: JobSpec, state: JobState, seen: Observation, now: Instant) -> Next:
    """Accepted, to be sent again, lost or refused."""
    match read_submit(spec, state, seen):
        case Submitted.ACCEPTED:
            accepted = replace(
                state, phase=move(state.phase, Move.ACCEPTED), submitted_at=now, streak=Streak(), error=None
            )
            if is_overdue(accepted, now):
                return resume(spec, replace(accepted, due=now), now)
            return scheduled(spec, accepted, cadence.first_poll(spec, accepted, seen, now), now)
        case Submitted.AGAIN:
            return _put_off(spec, _with_submit_error(state, seen), seen, now)
        case Submitted.LOST:
            state = _with_submit_error(state, seen)
            return end(state, Outcome.SUBMIT_UNKNOWN, now, "the answer to the submit was lost")
        case _:  # refused
            return end(_with_submit_error(state, seen), Outcome.FAILED, now, f"submit refused: {excerpt(seen)}")


def _put_off(spec: JobSpec, state: JobState, seen: Observation, now: Instant) -> Next:
    streak = replace(state.streak, length=state.streak.length + 1)
    state = replace(state, phase=move(state.phase, Move.SUBMIT_PUT_OFF), streak=streak)
    if state.closing or is_overdue(state, now):
        return end(state, Outcome.TIMED_OUT, now)
    return scheduled(spec, state, cadence.next_submit(spec, state, seen, now), now)


def _with_submit_error(state: JobState, seen: Observation) -> JobState:
    error = excerpt(seen) if seen.error is None else f"{seen.error.kind}: {seen.error.detail}"
    return replace(state, error=short(f"submit: {error}", _ERROR))
