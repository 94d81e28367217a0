from __future__ import annotations

import pytest

from tarry import Exponential, Fixed, JobSpec, Limits, Linear, Match, Phases, Request
from tarry.core.plan import Plan, PlannedPoll, plan
from tarry.words import HOUR, SECOND, WaitSource


def spec(strategy: Exponential | Fixed | Linear | Phases, limits: Limits) -> JobSpec:
    return JobSpec(
        poll=Request("GET", "https://api.example.com/jobs/1"),
        until=Match("body.state", succeeded="DONE"),
        strategy=strategy,
        limits=limits,
    )


def seconds(made: Plan) -> list[float]:
    return [poll.at / SECOND for poll in made.polls]


def test_it_lists_the_polls_with_what_sets_them() -> None:
    """Offsets, numbers and sources, up to the closing poll before the deadline."""
    made = plan(spec(Exponential("1s", maximum="60s"), Limits(total_duration="100s")))
    assert seconds(made) == [0, 1, 3, 7, 15, 31, 63, 90]
    assert made.polls[0] == PlannedPoll(1, 0, WaitSource.START)
    assert made.polls[1].source is WaitSource.STRATEGY
    assert made.polls[-1] == PlannedPoll(8, 90 * SECOND, WaitSource.DEADLINE)
    assert (made.most_polls, made.longest, made.warnings) == (8, 100 * SECOND, ())


def test_it_is_cut_to_the_limit_asked_for() -> None:
    """An endless wait lists so many polls, and none for a limit of none."""
    endless = spec(Fixed("10s"), Limits(max_polls=None, total_duration=None))
    assert seconds(plan(endless, 3)) == [0, 10, 20]
    assert plan(endless, 0).polls == ()
    assert plan(endless, -1).polls == ()


def test_no_limit_is_warned_of() -> None:
    """Nothing bounds the count or the time, and a line says so."""
    made = plan(spec(Fixed("10s"), Limits(max_polls=None, total_duration=None)))
    assert (made.most_polls, made.longest) == (None, None)
    assert made.warnings == ("no limit: a job that never ends is polled for ever",)


def test_max_polls_that_end_the_wait_early_are_warned_of() -> None:
    """The time that they last stands beside the time that was asked for."""
    made = plan(spec(Fixed("10s"), Limits(max_polls=4, total_duration="1h")))
    assert seconds(made) == [0, 10, 20, 30]
    assert (made.most_polls, made.longest) == (4, 30 * SECOND)
    assert made.warnings == ("max_polls=4 ends the wait after 30s at most, before total_duration=1h does",)


def test_max_polls_beyond_the_deadline_are_not_warned_of() -> None:
    """The deadline comes first, and counts the closing poll."""
    made = plan(spec(Fixed("10s"), Limits(max_polls=400, total_duration="60s")))
    assert made.most_polls == 7
    assert made.warnings == ()
    assert seconds(made) == [0, 10, 20, 30, 40, 50, 54]


def test_a_floor_that_raises_the_interval_is_warned_of() -> None:
    """Both lengths are named, and the source of the waits is the floor."""
    made = plan(spec(Fixed("0.2s"), Limits(max_polls=3, total_duration=None, min_interval="1s")))
    assert [poll.source for poll in made.polls] == [WaitSource.START, WaitSource.FLOOR, WaitSource.FLOOR]
    assert made.warnings == ("min_interval=1s raises the interval of 0.2s that the strategy begins with",)
    assert made.longest == 2 * SECOND


def test_the_initial_delay_moves_everything() -> None:
    """The first poll starts after it, and one beyond the deadline leaves the closing poll alone."""
    made = plan(spec(Fixed("10s"), Limits(max_polls=2, total_duration=None, initial_delay="5s")))
    assert seconds(made) == [5, 15]
    late = plan(spec(Fixed("10s"), Limits(total_duration="100s", initial_delay="200s")))
    assert seconds(late) == [90]
    assert late.most_polls == 1


@pytest.mark.parametrize(("jitter", "most"), [("none", 361), ("half", 721), ("full", 3600)])
def test_the_worst_count_takes_the_least_jitter(jitter: str, most: int) -> None:
    """Half jitter can double the polls, full jitter bring them down to the floor."""
    strategy = Fixed.model_validate({"type": "fixed", "interval": "10s", "jitter": jitter})
    made = plan(spec(strategy, Limits(total_duration="1h", poll_timeout="10s")))
    assert made.most_polls == most


@pytest.mark.parametrize(
    "strategy", [Fixed("1s"), Linear("1s"), Linear("1s", "0.000001s"), Exponential("1s", 1.0000001), Exponential("1s")]
)
def test_the_worst_case_takes_no_time_to_find(strategy: Exponential | Fixed | Linear) -> None:
    """A thousand million polls or a hundred years are bounded without counting them out."""
    most = plan(spec(strategy, Limits(max_polls=1_000_000_000, total_duration=None)))
    longest = plan(spec(strategy, Limits(total_duration="36500d")))
    assert most.longest is not None
    assert most.longest >= 999_999_999 * SECOND
    assert longest.most_polls is not None
    assert longest.most_polls <= 36_500 * 24 * HOUR // SECOND


@pytest.mark.parametrize(
    "strategy", [Fixed("3s"), Linear("2s", "1s", "10s"), Exponential("1s", 1.5, "20s"), Linear("1s")]
)
@pytest.mark.parametrize("total", ["1s", "10s", "61s", "1000s"])
def test_the_worst_count_is_what_the_list_comes_to(strategy: Exponential | Fixed | Linear, total: str) -> None:
    """Without jitter the bound and the list agree, but for a closing poll that the list had no use for."""
    made = plan(spec(strategy, Limits(total_duration=total)), 10_000)
    assert made.most_polls is not None
    assert 0 <= made.most_polls - len(made.polls) <= 1


def test_a_phase_that_is_drawn_has_its_own_worst_case() -> None:
    """Its last wait may begin as late as the phase lasts, and draws of the floor make the most polls."""
    drawn = Phases([(Fixed("10s", jitter="full"), "60s"), Fixed("20s")])
    # Six waits that bring the sixth to the last instant of the phase, that wait, and two of the next phase.
    assert plan(spec(drawn, Limits(max_polls=9, total_duration=None))).longest == 60 * SECOND - 1 + 50 * SECOND
    # At 0, 5, …, 60 s, then at 80 s, and the closing one.
    assert plan(spec(drawn, Limits(total_duration="100s", min_interval="5s"))).most_polls == 13 + 1 + 1
