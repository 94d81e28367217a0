"""A new run of a job: its limits and counters begin anew, and no poll comes closer to the last for it."""

from __future__ import annotations

from tarry.core import cadence
from tarry.core.judging import is_repeatable
from tarry.core.machine import start
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.frozen import replace
from tarry.words import Instant, Outcome, Phase, WaitSource

_NEVER_TAKEN = frozenset({Outcome.FAILED, Outcome.INVALID})


def submitted_anew(spec: JobSpec, state: JobState, now: Instant) -> JobState:
    """A run that begins with another submit; without a submit, with another first poll."""
    fresh, _ = start(spec, state.key, now)
    return _not_before(spec, replace(fresh, polled_at=state.polled_at, hold_until=state.hold_until), now)


def followed_anew(spec: JobSpec, state: JobState, now: Instant, *, accepted: bool = False) -> JobState | None:
    """A run that follows the same remote job; None where nobody knows whether there is one.

    `accepted`: the answer to a submit that was in doubt is known by now. A submit that
    never left, or that may be sent again, is sent in the new run.
    """
    fresh = submitted_anew(spec, state, now)
    was_taken = spec.submit is None or state.submitted_at is not None or accepted
    if was_taken:
        return _not_before(
            spec,
            replace(
                fresh,
                phase=Phase.WAITING,
                submitted_at=now if accepted else state.submitted_at,
                found=state.found,
                due=now,
            ),
            now,
        )
    return None if _is_in_doubt(spec, state) else replace(fresh, submit_tries=state.submit_tries)


def _is_in_doubt(spec: JobSpec, state: JobState) -> bool:
    """Whether a submit may be out there that must not be sent again, or was refused for good."""
    if state.outcome in _NEVER_TAKEN:
        return True
    if is_repeatable(spec):
        return False
    left = state.outcome is Outcome.CANCELLED and state.submit_tries > 0
    return left or state.phase in {Phase.SENDING, Phase.PROBING} or state.outcome is Outcome.SUBMIT_UNKNOWN


def _not_before(spec: JobSpec, state: JobState, now: Instant) -> JobState:
    """Due as soon as the floor and the service's wish to wait leave open."""
    soonest = max(cadence.earliest(spec, state.polled_at, now), state.hold_until or now, state.due or now)
    return replace(state, due=soonest, wait=soonest - now, wait_source=WaitSource.START)
