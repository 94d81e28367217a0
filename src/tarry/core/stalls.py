"""Stalls: a job that answers, and does not move."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tarry.core import durations
from tarry.core.durations import DurationLike, PositiveDuration
from tarry.core.model import Model
from tarry.core.state import JobState
from tarry.core.texts import short
from tarry.words import Instant, Micros, Phase, Verdict, micros

_STATUS = 60
_BLOCKED = Verdict.BLOCKED


class Stall(Model):
    """When a job that goes on answering, and does not move, is called stalled.

    - `after`: how long neither its status nor its progress changed (above 0). It is looked at as a
      poll is answered, and delays none.
    - `fail`: whether a stall ends the job as timed out (default: an event says so, and it goes on).

    Failed polls say nothing of the job, so an outage is no stall until the next good answer finds
    the job where it was. A blocked job waits for a person and does not stall.
    """

    _positional: ClassVar[tuple[str, ...]] = ("after",)

    after: PositiveDuration
    fail: bool = False

    if TYPE_CHECKING:

        def __init__(self, after: DurationLike, *, fail: bool = False) -> None: ...


def is_moved(state: JobState, verdict: Verdict, status: str | None, progress: float | str | None) -> bool:
    """Whether an answer with this verdict, status and progress shows that the job moved."""
    is_same = status == state.status and progress == state.progress
    return not is_same or (verdict is _BLOCKED) is not (state.verdict is _BLOCKED)


def unmoved_for(state: JobState, now: Instant) -> Micros:
    """How long the job has stood as it stands: since the last change, the submit, or its creation."""
    began = state.created_at if state.submitted_at is None else state.submitted_at
    return now - (began if state.changed_at is None else state.changed_at)


def is_stalled(stall: Stall, state: JobState, now: Instant) -> bool:
    """Whether the job, answered well at `now`, has not moved for too long."""
    if state.streak.length or state.phase is Phase.BLOCKED or state.confirming is not None:
        return False
    return unmoved_for(state, now) >= micros(stall.after)


def reason(stall: Stall, state: JobState) -> str:
    """Why a job ended that was not to stall."""
    stood = "" if state.status is None else f" (status {short(state.status, _STATUS)})"
    return f"stalled: no change of status or progress for {durations.write(stall.after)}{stood}"
