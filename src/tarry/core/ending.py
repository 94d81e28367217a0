"""How a job ends: one way, with an outcome that is written once."""

from __future__ import annotations

from typing import TypeAlias

from tarry.core.decision import Decision, Stop
from tarry.core.moves import Move, move
from tarry.core.state import JobState
from tarry.core.texts import short
from tarry.frozen import replace
from tarry.words import Instant, Outcome, Verdict

Next: TypeAlias = tuple[JobState, Decision]
"""A state and what comes next for it."""

_REASON = 180
OUTCOMES = {
    Verdict.SUCCEEDED: Outcome.SUCCEEDED,
    Verdict.PARTIAL: Outcome.PARTIAL,
    Verdict.SKIPPED: Outcome.SKIPPED,
    Verdict.FAILED: Outcome.FAILED,
    Verdict.CANCELLED: Outcome.CANCELLED,
    Verdict.EXPIRED: Outcome.EXPIRED,
}
"""The outcome that each terminal verdict is."""


def end(state: JobState, outcome: Outcome, now: Instant, reason: str | None = None) -> Next:
    """The job is over. Raises `IllegalMove` when it was before."""
    ended = replace(
        state,
        phase=move(state.phase, Move.END),
        outcome=outcome,
        reason=None if reason is None else short(reason, _REASON),
        finished_at=now,
        due=None,
        wait=None,
        hold_until=None,
        nudged_at=None,
        closing=False,
    )
    return ended, Stop(outcome)
