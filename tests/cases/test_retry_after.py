"""What servers ask for in `Retry-After`, and what they must not be able to do with it."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import Fixed, Hints, Match, Outcome, Request
from tarry.core.policies import Errors
from tarry.testing import Answer
from tests.worlds import DONE, RUNNING, MakeScene, limits, spec_of

DATE = "Thu, 01 Jan 2026 00:05:00 GMT"
IN_30_S = "Thu, 01 Jan 2026 00:05:30 GMT"
LONG_AGO = "Wed, 31 Dec 2025 23:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "second"),
    [
        ({"Date": DATE, "Retry-After": IN_30_S}, 30),
        ({"Retry-After": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30),
        ({"Date": DATE, "Retry-After": LONG_AGO}, 2),
    ],
    ids=["by the server's date", "by our clock", "in the past"],
)
def test_pc_016_a_date_is_honoured(scene: MakeScene, headers: dict[str, str], second: float) -> None:
    """A 429 asks to come back at a date, told by the clock of the server where it tells it."""
    world = scene(Answer(429, headers=headers), DONE)
    assert world.ends(spec_of(strategy=Fixed("2s"))).outcome is Outcome.SUCCEEDED
    assert world.seconds() == [0, second]


NONSENSE = ["-5", "+3", "1.5", "", "abc", "1e400", "nan", "inf", "0", "5, 10"]


def test_pc_017_what_is_no_number_of_seconds_is_ignored(scene: MakeScene) -> None:
    """The strategy's wait stands; a number between blanks is one."""
    answers = [Answer(200, RUNNING, {"Retry-After": value}) for value in [*NONSENSE, "  7 "]]
    world = scene(*answers, DONE)
    world.ends(spec_of(strategy=Fixed("2s")))
    assert world.seconds() == [*range(0, 2 * len(answers), 2), 2 * len(NONSENSE) + 7]


@pytest.mark.parametrize("value", ["412000", "9999999999"])
def test_pc_018_a_huge_wait_is_cut_and_the_deadline_holds(scene: MakeScene, value: str) -> None:
    """One last poll before the deadline, then timed out; that the wait was cut is told."""
    world = scene(Answer(202, headers={"Retry-After": value}))
    error = world.fails(spec_of(limits=limits("600s")))
    assert error.outcome is Outcome.TIMED_OUT
    assert world.seconds() == [0, 570]
    assert [told["source"] for told in world.event("wait_changed")] == ["deadline"]


def test_pc_018_a_wait_above_the_maximum_is_bounded_without_a_deadline(scene: MakeScene) -> None:
    """A day is asked for, and five minutes are granted."""
    world = scene(Answer(202, headers={"Retry-After": "86400"}), DONE)
    world.ends(spec_of(hints=Hints(maximum="300s"), limits=limits(None, max_polls=None)))
    assert world.seconds() == [0, 300]
    assert world.event("wait_changed") == [{"source": "hint_bound", "wait_us": 300_000_000}]


def test_pc_018_a_wait_above_the_maximum_can_end_the_job(scene: MakeScene) -> None:
    """By choice the job stops at once, and the error names the header."""
    world = scene(Answer(202, headers={"Retry-After": "412000"}))
    error = world.fails(spec_of(hints=Hints(on_excess="fail"), limits=limits("600s")))
    assert (error.outcome, world.elapsed()) == (Outcome.TIMED_OUT, 0)
    assert "retry-after" in str(error)


def operation(second: float) -> Any:
    """What an operation that exists from second 10 on, and is over at 20, answers then."""
    if second < 10:
        return 404
    return {"status": "Succeeded" if second >= 20 else "Running"}


SUBMITTED = {
    "submit": Request("POST", "https://api.example.com/operations"),
    "poll": Request("GET", "{submit.headers.location}"),
    "strategy": Fixed("5s"),
}


@pytest.mark.parametrize(
    ("headers", "options", "first"),
    [
        ({"Retry-After": "10"}, {}, 10),
        ({}, {"limits": limits(initial_delay="10s")}, 10),
        ({}, {"errors": Errors(not_found_grace="30s")}, 0),
    ],
    ids=["hint", "initial delay", "grace"],
)
def test_pc_020_the_wait_asked_for_by_the_submit_is_kept(
    scene: MakeScene, headers: dict[str, str], options: dict[str, Any], first: float
) -> None:
    """The first poll is not sooner, nor is a 404 before the job is known the end of it."""
    world = scene()
    accepted = Answer(202, headers={"Location": "/operations/1", **headers})
    world.play([lambda _: operation(world.elapsed())], submit=[accepted])
    spec = spec_of(until=Match("body.status", succeeded="Succeeded", pending="Running"), **SUBMITTED, **options)
    assert world.ends(spec).outcome is Outcome.SUCCEEDED
    assert world.seconds() == list(range(first, 21, 5))
    assert {seen.url for seen in world.job.requests if seen.kind == "poll"} == {"https://api.example.com/operations/1"}
