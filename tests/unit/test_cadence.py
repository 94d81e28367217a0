from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tarry import Exponential, Fixed, Hints, Limits, Linear, Outcome, Request
from tarry.core import Stop, Wait, start
from tarry.core.cadence import backoff, latest
from tarry.words import HOUR, MINUTE, SECOND, Micros, WaitSource
from tests.unit.scripted import DONE, GET, POST, RUNNING, Script, broken, http, spec, state

ENDLESS = Limits(max_polls=None, total_duration=None)


def waits(script: Script) -> list[float]:
    """The seconds between the polls."""
    at = script.polls_at()
    return [after - before for before, after in pairwise(at)]


def decided(answer: Any, **fields: Any) -> Wait | Stop:
    """What comes after one poll, answered at once."""
    script = Script(spec(**({"strategy": Fixed("10s")} | fields)))
    script._call(answer)
    assert isinstance(script.decision, Wait | Stop)
    return script.decision


def wait(answer: Any, **fields: Any) -> tuple[float, str]:
    """The seconds until the second poll, and what set them."""
    decision = decided(answer, **fields)
    assert isinstance(decision, Wait)
    return decision.due / SECOND, str(decision.source)


# Strategy, maximum, floor.


@pytest.mark.parametrize(
    ("strategy", "seconds"),
    [
        (Fixed("2s"), [2, 2, 2, 2, 2]),
        (Linear("2s"), [2, 4, 6, 8, 10]),
        (Linear("2s", "1s", "4s"), [2, 3, 4, 4, 4]),
        (Exponential("2s"), [2, 4, 8, 16, 32]),
        (Exponential("2s", 1.5, "5s"), [2, 3, 4.5, 5, 5]),
    ],
)
def test_the_wait_after_each_poll(strategy: Any, seconds: list[float]) -> None:
    """As the strategy says, the n-th after the n-th poll."""
    script = Script(spec(strategy=strategy))
    script.play(*[RUNNING] * 6)
    assert waits(script) == seconds


def test_the_wait_runs_from_the_answer() -> None:
    """A slow answer moves the next poll."""
    script = Script(spec(strategy=Fixed("10s")))
    script.play(http(200, {"state": "RUNNING"}, took=7 * SECOND), RUNNING)
    assert script.polls_at() == [0, 17]


def test_the_source_of_a_wait_is_told() -> None:
    """Strategy, maximum or floor."""
    assert wait(RUNNING) == (10, "strategy")
    assert wait(RUNNING, strategy=Exponential("10s", maximum="10s")) == (10, "strategy")
    assert wait(RUNNING, strategy=Fixed("10s"), limits=Limits(min_interval="20s")) == (20, "floor")
    script = Script(spec(strategy=Exponential("10s", maximum="15s")))
    script.play(RUNNING)
    script._call(RUNNING)
    assert script.decision == Wait(25 * SECOND, WaitSource.MAXIMUM)
    assert script.state.wait == 15 * SECOND


def test_the_floor_runs_from_the_start_of_the_last_poll() -> None:
    """A slow answer has used it up."""
    limits = Limits(min_interval="20s")
    script = Script(spec(strategy=Fixed("5s"), limits=limits))
    script.play(http(200, {"state": "RUNNING"}, took=12 * SECOND), http(200, {}, took=25 * SECOND), RUNNING)
    assert script.polls_at() == [0, 20, 50]


def test_jitter_is_drawn_again_alike() -> None:
    """A replay after a crash finds the same delay; another key another one."""
    job = spec(strategy=Exponential("10s", jitter="full"))
    one, other = Script(job), Script(job)
    one.play(*[RUNNING] * 5)
    other.play(*[RUNNING] * 5)
    assert one.polls_at() == other.polls_at()
    assert all(1 <= span <= 10 * 2**n for n, span in enumerate(waits(one)))


# Hints.


def test_a_hint_replaces_the_strategys_delay() -> None:
    """Up or down, anew on each response."""
    assert wait(state("RUNNING", headers={"retry-after": "3"})) == (3, "hint")
    assert wait(state("RUNNING", headers={"retry-after": "30"})) == (30, "hint")
    script = Script(spec(strategy=Fixed("10s")))
    script.play(state("RUNNING", headers={"retry-after": "3"}), RUNNING, RUNNING)
    assert waits(script) == [3, 10]


@pytest.mark.parametrize("status", [429, 503])
def test_a_hint_of_429_or_503_is_a_lower_bound(status: int) -> None:
    """The backoff stays where it is longer, and the hold is kept."""
    assert wait(http(status, None, {"retry-after": "3"})) == (5, "error_backoff")
    assert wait(http(status, None, {"retry-after": "30"})) == (30, "hint")
    poll = Request("GET", GET.url, accepted=[status])
    assert wait(state("RUNNING", status, {"retry-after": "3"}), poll=poll) == (10, "strategy")
    assert wait(state("RUNNING", status, {"retry-after": "30"}), poll=poll) == (30, "hint")


def test_a_hold_is_kept_until_the_next_answer() -> None:
    """A restart past the deadline has to know of it."""
    script = Script(spec(strategy=Fixed("10s")))
    script._call(http(429, None, {"retry-after": "30"}))
    assert script.state.hold_until == 30 * SECOND
    script.play(state("RUNNING", headers={"retry-after": "30"}))
    assert script.state.hold_until is None


def test_a_hint_on_another_error_replaces_the_backoff() -> None:
    """Only 429 and 503 ask for less traffic."""
    assert wait(http(500, None, {"retry-after": "2"})) == (2, "hint")


def test_a_hint_is_bounded() -> None:
    """PC-018: nothing waits for days because a header says so."""
    assert wait(state("RUNNING", headers={"retry-after": "412000"})) == (3600, "hint_bound")
    assert wait(state("RUNNING", headers={"retry-after": "9999999999"})) == (3600, "hint_bound")
    hints = Hints(maximum="5m")
    assert wait(state("RUNNING", headers={"retry-after": "86400"}), hints=hints, limits=ENDLESS) == (300, "hint_bound")
    script = Script(spec(strategy=Fixed("10s"), hints=hints))
    script._call(http(429, None, {"retry-after": "86400"}))
    assert script.state.hold_until == 300 * SECOND


def test_a_hint_below_the_floor_is_raised() -> None:
    """The floor comes after the hint."""
    assert wait(state("RUNNING", headers={"retry-after-ms": "20"})) == (1, "floor")


@pytest.mark.parametrize("value", ["-5", "+3", "1.5", "", "abc", "1e400", "nan", "inf", "0", "5, 10"])
def test_an_odd_hint_is_none(value: str) -> None:
    """PC-017: the strategy's delay is used."""
    assert wait(state("RUNNING", headers={"retry-after": value})) == (10, "strategy")


def test_a_hint_past_the_deadline_leaves_the_closing_poll() -> None:
    """PC-018: one last poll, then timed out."""
    script = Script(spec(strategy=Fixed("10s"), limits=Limits(total_duration="600s")))
    script.play(http(202, {}, {"retry-after": "412000"}), RUNNING)
    assert script.polls_at() == [0, 570]
    assert script.state.outcome is Outcome.TIMED_OUT


# Backoff.


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [
        (1 * SECOND, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]),
        (10 * SECOND, [5, 10, 20, 40, 80, 160, 300, 300]),
        (1 * HOUR, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]),
        (10 * MINUTE, [5, 10, 20, 40, 80, 160, 320, 600, 600]),
    ],
)
def test_the_backoff_after_the_kth_failure(delay: Micros, seconds: list[int]) -> None:
    """An hourly poll is tried again soon, a one-second poll backs off."""
    assert [backoff(delay, k) / SECOND for k in range(1, len(seconds) + 1)] == seconds


def test_the_backoff_never_overflows() -> None:
    """However long the outage."""
    assert backoff(SECOND, 10**9) == 300 * SECOND
    assert backoff(1, 10**9) == 300 * SECOND


def test_failed_polls_back_off_and_a_good_one_ends_it() -> None:
    """The strategy goes on where the polls are."""
    script = Script(spec(strategy=Linear("10s")))
    script.play(RUNNING, broken(), http(500), broken(), RUNNING, RUNNING)
    assert waits(script) == [10, 5, 10, 20, 50]


def test_the_floor_holds_for_the_backoff() -> None:
    """Five seconds are too soon where the floor is a minute."""
    assert wait(http(500), strategy=Fixed("2m"), limits=Limits(min_interval="60s")) == (60, "floor")
    assert wait(http(500)) == (5, "error_backoff")


# The deadline.


def test_the_closing_poll_has_its_time() -> None:
    """It starts the smaller of poll_timeout and a tenth of the whole before the deadline."""
    assert wait(RUNNING, strategy=Fixed("1h"), limits=Limits(total_duration="50s")) == (45, "deadline")
    assert wait(RUNNING, strategy=Fixed("1h"), limits=Limits(total_duration="1000s")) == (970, "deadline")
    short = Limits(total_duration="1000s", poll_timeout="5s")
    assert wait(RUNNING, strategy=Fixed("1h"), limits=short) == (995, "deadline")


def test_a_poll_due_just_before_the_deadline_is_left_alone() -> None:
    """Only what would come too late is brought forward; due at the deadline is too late."""
    assert wait(RUNNING, strategy=Fixed("99.9s"), limits=Limits(total_duration="100s")) == (99.9, "strategy")
    assert wait(RUNNING, strategy=Fixed("100s"), limits=Limits(total_duration="100s")) == (90, "deadline")


def test_the_floor_moves_the_closing_poll() -> None:
    """Or leaves it no room, and then the job has timed out at once."""
    limits = Limits(total_duration="100s", min_interval="95s")
    assert wait(RUNNING, strategy=Fixed("95s"), limits=limits) == (95, "strategy")
    assert wait(RUNNING, strategy=Fixed("200s"), limits=limits) == (95, "deadline")
    none = Limits(total_duration="100s", min_interval="100s")
    assert decided(RUNNING, strategy=Fixed("200s"), limits=none) == Stop(Outcome.TIMED_OUT)


def test_a_hold_that_ends_before_the_deadline_moves_the_closing_poll() -> None:
    """A 429 is obeyed where there is time for it, and the deadline has the last word."""
    assert wait(http(429, None, {"retry-after": "95"}), limits=Limits(total_duration="100s")) == (95, "hint")
    hourly = {"strategy": Fixed("1h"), "poll": Request("GET", GET.url, accepted=[429])}
    limits = Limits(total_duration="100s")
    assert wait(state("RUNNING", 429, {"retry-after": "95"}), limits=limits, **hourly) == (95, "deadline")
    assert wait(state("RUNNING", 429, {"retry-after": "20"}), limits=limits, **hourly) == (90, "deadline")
    assert wait(state("RUNNING", 429, {"retry-after": "500"}), limits=limits, **hourly) == (90, "deadline")


# The first poll.


def test_the_initial_delay_moves_the_first_poll() -> None:
    """From the start, without a submit."""
    script = Script(spec(limits=Limits(initial_delay="20s")))
    assert script.decision == Wait(20 * SECOND, WaitSource.START)
    late = Script(spec(limits=Limits(initial_delay="2h", total_duration="1h")))
    assert late.decision == Wait(HOUR - 30 * SECOND, WaitSource.DEADLINE)
    assert late.play(DONE).outcome is Outcome.SUCCEEDED


def test_a_submits_hint_is_bounded_too() -> None:
    """And may end the wait."""
    script = Script(spec(submit=POST, hints=Hints(maximum="1m")))
    script._call(http(202, None, {"retry-after": "900"}))
    assert script.decision == Wait(60 * SECOND, WaitSource.HINT_BOUND)
    script = Script(spec(submit=POST, hints=Hints(maximum="1m", on_excess="fail")))
    script._call(http(202, None, {"retry-after": "900"}))
    assert script.decision == Stop(Outcome.TIMED_OUT)


@pytest.mark.parametrize(
    ("total", "now", "until"),
    [
        (None, 1, None),
        ("100s", 100 * SECOND, None),
        ("100s", 10 * SECOND, 95 * SECOND),
        ("100s", 97 * SECOND, 97 * SECOND),
    ],
    ids=["no deadline", "past it", "long before", "close to it"],
)
def test_a_turn_is_waited_for_while_the_poll_keeps_half_its_time(
    total: str | None, now: int, until: int | None
) -> None:
    """The closing poll of 100 s has 10 s; the line at a host may take 5 of them."""
    limited = spec(limits=Limits(max_polls=None, total_duration=total))
    begun, _ = start(limited, "orders", 0)
    assert latest(limited, begun, now) == until
