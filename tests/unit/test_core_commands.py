"""What a command makes of a state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tarry import Fixed, JobSpec, Limits
from tarry.core import JobState, nudged, respecified, resume, start
from tarry.core.decision import Call, Wait
from tarry.words import SECOND, Phase, WaitSource
from tests.unit.scripted import POST, spec

NOW = 1_000 * SECOND
LATER = NOW + 100 * SECOND


def waiting(of: JobSpec, **changes: object) -> JobState:
    """A job polled at the start and due in an hour."""
    state, _ = start(of, "orders", NOW)
    defaults = {"polls": 1, "polled_at": NOW, "due": NOW + 3600 * SECOND, "wait": 3600 * SECOND}
    return replace(state, **{**defaults, **changes})  # type: ignore[arg-type]  # fields by name


def test_a_nudge_makes_the_poll_due_now() -> None:
    """And says that it was a nudge that set it."""
    of = spec()
    state = nudged(of, waiting(of), LATER)
    assert (state.due, state.wait_source, state.nudged_at) == (LATER, WaitSource.NUDGE, LATER)
    assert isinstance(resume(of, state, LATER)[1], Call)


@pytest.mark.parametrize(
    ("changes", "due"),
    [
        ({"polled_at": LATER}, LATER + SECOND),
        ({"hold_until": LATER + 9 * SECOND}, LATER + 9 * SECOND),
        ({"due": LATER - 5}, LATER - 5),
        ({"polled_at": LATER, "due": LATER + SECOND}, LATER + SECOND),
    ],
    ids=["the floor", "a 429", "overdue anyway", "as soon as may be anyway"],
)
def test_a_nudge_puts_nothing_off_and_goes_through_nothing(changes: dict[str, int], due: int) -> None:
    """The floor and a service's wish to wait are lower bounds."""
    of = spec()
    assert nudged(of, waiting(of, **changes), LATER).due == due


def test_a_nudge_before_the_submit_is_for_the_first_poll() -> None:
    """It hastens no submit."""
    of = spec(submit=POST, limits=Limits(initial_delay="1h"))
    state, _ = start(of, "orders", NOW)
    assert nudged(of, state, LATER).due == state.due
    assert nudged(of, state, LATER).nudged_at == LATER


def test_a_nudged_poll_is_not_the_closing_one() -> None:
    """It comes earlier, so that another may follow before the deadline."""
    of = spec()
    assert not nudged(of, waiting(of, closing=True), LATER).closing


def test_a_later_deadline_leaves_the_wait() -> None:
    """Only what it cuts is changed."""
    of, longer = spec(), spec(limits=Limits(total_duration="48h"))
    state = waiting(of, closing=True)
    after = respecified(of, longer, state, LATER)
    assert (after.due, after.closing) == (state.due, False)
    assert after.deadline == NOW + 48 * 3600 * SECOND


def test_no_deadline_is_a_deadline_too() -> None:
    """A job without one waits as long as its strategy says."""
    of = spec(limits=Limits(total_duration=None, max_polls=5))
    after = respecified(spec(), of, waiting(spec()), LATER)
    assert (after.deadline, after.due) == (None, NOW + 3600 * SECOND)


def test_a_deadline_without_room_for_a_poll_has_it_as_soon_as_it_may() -> None:
    """The floor holds; one closing poll is left, after the deadline."""
    of = spec(limits=Limits(min_interval="50s", total_duration="110s"))
    state = respecified(spec(), of, waiting(spec(limits=Limits(min_interval="50s")), polled_at=LATER), LATER)
    assert state.due == LATER + 50 * SECOND
    assert isinstance(resume(of, state, LATER + 20 * SECOND)[1], Wait)
    assert isinstance(resume(of, state, LATER + 50 * SECOND)[1], Call)


def test_a_job_that_wants_no_call_is_left_alone() -> None:
    """A state without a due time gets none."""
    of = spec(limits=Limits(total_duration="200s"))
    state = waiting(spec(), due=None)
    assert respecified(spec(), of, state, LATER).due is None
    assert nudged(of, state, LATER).due is None


def test_spent_polls_end_the_job_now() -> None:
    """It is due, so that somebody writes its end."""
    of = spec(limits=Limits(max_polls=1), strategy=Fixed("1h"))
    assert respecified(spec(), of, waiting(spec()), LATER).due == LATER
    assert waiting(spec()).phase is Phase.WAITING
