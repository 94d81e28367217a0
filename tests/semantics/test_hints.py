"""S6 and S7: the waits that a server asks for."""

from __future__ import annotations

import pytest

from tarry import Fixed, Hints, Outcome, Request
from tarry.testing import Answer
from tests.worlds import (
    DONE,
    RUNNING,
    MakeScene,
    limits,
    scene_in_memory,  # noqa: F401  # a fixture: what an answer means is no matter of the store
    spec_of,
)

SUBMITTED = {
    "submit": Request("POST", "https://api.example.com/jobs", json={}),
    "poll": Request("GET", "https://api.example.com/jobs/{submit.body.jobId}"),
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Retry-After", "9"),
        ("Retry-After", "Thu, 01 Jan 2026 00:00:09 GMT"),
        ("retry-after-ms", "9000"),
        ("x-ms-retry-after-ms", "9000"),
        ("openai-poll-after-ms", "9000"),
        ("x-poll-interval", "9"),
    ],
)
def test_s06_each_header_is_read(scene: MakeScene, name: str, value: str) -> None:
    """On an ordinary answer it replaces the strategy's wait, whether that is longer or shorter."""
    for interval in ("2s", "1m"):
        world = scene(Answer(200, RUNNING, {name: value}), DONE)
        world.ends(spec_of(strategy=Fixed(interval)))
        assert world.seconds() == [0, 9]


def test_s06_the_body_is_read_by_a_path_with_its_unit(scene: MakeScene) -> None:
    """`hints.path` and `hints.unit`; of several hints the largest counts."""
    world = scene(
        Answer(200, {"state": "RUNNING", "pollMs": 4_000}),
        Answer(200, {"state": "RUNNING", "pollMs": 4_000}, {"Retry-After": "6"}),
        DONE,
    )
    world.ends(spec_of(hints=Hints(path="body.pollMs", unit="ms")))
    assert world.seconds() == [0, 4, 10]


def test_s06_a_hint_holds_for_one_wait(scene: MakeScene) -> None:
    """It is read anew on each answer."""
    world = scene(Answer(200, RUNNING, {"Retry-After": "9"}), RUNNING, DONE)
    world.ends(spec_of())
    assert world.seconds() == [0, 9, 11]


def test_s06_one_in_the_submits_answer_delays_the_first_poll(scene: MakeScene) -> None:
    """The first poll waits for it."""
    world = scene()
    world.play([DONE], submit=[Answer(202, {"jobId": "j1"}, {"Retry-After": "12"})])
    world.ends(spec_of(**SUBMITTED))
    assert world.seconds() == [12]


@pytest.mark.parametrize("status", [429, 503])
def test_s06_on_429_and_503_it_is_a_lower_bound(scene: MakeScene, status: int) -> None:
    """The backoff stands where it is longer."""
    world = scene(Answer(status, headers={"Retry-After": "1"}), Answer(status, headers={"Retry-After": "30"}), DONE)
    world.ends(spec_of(strategy=Fixed("5s")))
    assert world.seconds() == [0, 5, 35]


def test_s07_a_hint_is_bounded_or_ends_the_wait(scene: MakeScene) -> None:
    """By an hour, unless said otherwise; with `on_excess="fail"` a longer one ends the job."""
    world = scene(Answer(200, RUNNING, {"Retry-After": "900"}), DONE)
    world.ends(spec_of(hints=Hints(maximum="20s")))
    assert world.seconds() == [0, 20]
    error = scene(Answer(200, RUNNING, {"Retry-After": "7200"})).fails(spec_of(hints=Hints(on_excess="fail")))
    assert error.outcome is Outcome.TIMED_OUT
    assert "more than hints.maximum" in str(error)


ODD = ["0", "-1", "NaN", "inf", "-inf", "1e309", "1" * 400, "soon", "", "Thu, 01 Jan 1970 00:00:00 GMT", "٣", "1;2"]


def test_s07_no_value_crashes_loops_or_sleeps_for_ever(scene: MakeScene) -> None:
    """Each odd value leaves the strategy's wait."""
    world = scene(*[Answer(200, RUNNING, {"Retry-After": value, "retry-after-ms": value}) for value in ODD], DONE)
    world.ends(spec_of())
    assert world.seconds() == list(range(0, 2 * len(ODD) + 1, 2))


def test_s07_an_absurd_hint_never_passes_the_deadline(scene: MakeScene) -> None:
    """A year is asked for, a minute is there."""
    world = scene(Answer(200, RUNNING, {"Retry-After": "31536000"}))
    assert world.ends(spec_of(limits=limits("60s"))).outcome is Outcome.TIMED_OUT
    assert world.elapsed() <= 60
