"""What is owed once a job has ended: a remote cancel, a call of what `then` names."""

from __future__ import annotations

from collections.abc import Iterator

from tarry.core.document import excerpt
from tarry.core.function import Function
from tarry.core.judging import is_repeatable
from tarry.core.observation import Observation
from tarry.core.request import Request
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.words import HOUR, SECOND, DeliveryKind, DeliveryState, Micros, Outcome, Phase, Verdict

MAX_TRIES = 8
"""How often a delivery is tried before it is left to a person."""

_NOTHING_LEFT = frozenset({404, 409, 410})
_FIRST_PAUSE = 5 * SECOND


def owed(spec: JobSpec, ended: JobState) -> tuple[DeliveryKind, ...]:
    """The deliveries that go with this end; none where it is none."""
    return () if ended.outcome is None else tuple(_owed(spec, ended))


def callable_for(spec: JobSpec, outcome: Outcome) -> Function | None:
    """What `then` names for the outcome: its own word goes before its group, and that before "any"."""
    names = (outcome.value, "success" if outcome.is_success else "failure", "any")
    return next((spec.then[name] for name in names if name in spec.then), None)


def pause_after(tries: int) -> Micros:
    """How long to wait after a failed try: 5 s, then three times as long each time, an hour at most."""
    pause: Micros = _FIRST_PAUSE * 3 ** (tries - 1)
    return min(pause, HOUR)


def may_exist(spec: JobSpec, state: JobState) -> bool:
    """Whether there may be a remote job to cancel: none was made before a submit left.

    Nor by one that is to be sent again though it must not be sent twice: it did not arrive.
    """
    if state.phase is Phase.SUBMITTING and not is_repeatable(spec):
        return False
    return spec.submit is None or state.submit_tries > 0


def _owed(spec: JobSpec, ended: JobState) -> Iterator[DeliveryKind]:
    # A job that the service itself calls cancelled needs no cancelling.
    is_local = ended.verdict is not Verdict.CANCELLED
    if spec.cancel is not None and ended.outcome in spec.cancel_on and is_local and may_exist(spec, ended):
        yield DeliveryKind.CANCEL
    if ended.outcome is not None and callable_for(spec, ended.outcome) is not None:
        yield DeliveryKind.THEN


def read_cancel(spec: JobSpec, seen: Observation) -> tuple[DeliveryState, str]:
    """What came of asking the service to cancel, and in a few words why.

    Done, also when the service says that there is nothing left to cancel (404, 409, 410); pending when no
    byte can have left, so that it may be sent again, perhaps from where its secret is known; dead
    otherwise: it is not sent twice.
    """
    if seen.error is None:
        is_answered = seen.status is None or seen.status in _NOTHING_LEFT or _is_accepted(spec, seen.status)
        note = "called" if seen.status is None else excerpt(seen)
        return (DeliveryState.DONE if is_answered else DeliveryState.DEAD), note
    return (DeliveryState.DEAD if seen.error.sent else DeliveryState.PENDING), f"{seen.error.kind}: {seen.error.detail}"


def _is_accepted(spec: JobSpec, status: int) -> bool:
    return isinstance(spec.cancel, Request) and spec.cancel.is_accepted(status)
