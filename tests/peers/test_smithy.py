"""Acceptors as botocore and Smithy have them: ordered, the first that matches decides."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import Acceptors, Exponential, Fixed, Limits, Outcome, Request, SpecError, Status
from tarry.testing import Answer
from tarry.words import ErrorKind
from tests.worlds import (
    DONE,
    RUNNING,
    MakeScene,
    limits,
    scene_in_memory,  # noqa: F401  # a fixture: what an answer means is no matter of the store
    spec_of,
)

ALL = "length(body.items) > `0` && length(body.items[?state != 'ready']) == `0`"
ANY = "length(body.items[?state == 'failed']) > `0`"


def items(*states: str) -> dict[str, Any]:
    """An answer with a list."""
    return {"items": [{"state": state} for state in states]}


def decides(scene: MakeScene, body: Any, *pairs: tuple[str, str]) -> Outcome:
    """What one answer comes to."""
    return scene(body).ends(spec_of(until=Acceptors(pairs), limits=Limits(max_polls=1))).outcome


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (items("ready", "ready"), Outcome.SUCCEEDED),
        (items("ready", "pending"), Outcome.EXHAUSTED),
        (items(), Outcome.EXHAUSTED),
        ({"items": None}, Outcome.EXHAUSTED),
        (items("ready", "failed"), Outcome.FAILED),
    ],
    ids=["all", "some", "empty", "no list", "any failed"],
)
def test_all_and_any_over_a_list(scene: MakeScene, body: Any, outcome: Outcome) -> None:
    """All of a list that is not empty; any of it; a list that is none matches nothing."""
    pairs = [(f"body.items && {ANY}", "failed"), (f"body.items && {ALL}", "succeeded")]
    assert decides(scene, body, *pairs) is outcome


def test_the_first_that_matches_decides(scene: MakeScene) -> None:
    """Order is meaning."""
    one, other = ("body.state == 'DONE'", "failed"), ("body.state", "succeeded")
    assert decides(scene, DONE, one, other) is Outcome.FAILED
    assert decides(scene, DONE, other, one) is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    ("pair", "answer"),
    [
        ("body.state == 'DONE'", DONE),
        ("body.done", {"done": True}),
        ("status == `404`", 404),
        ("headers.\"x-state\" == 'done'", Answer(200, {}, {"X-State": "done"})),
        ("body.__type == 'ResourceNotFound'", Answer(400, {"__type": "ResourceNotFound"})),
        ("input.size == body.size", {"size": 3}),
        ("body.done == body.total", {"done": 7, "total": 7}),
    ],
    ids=["text", "boolean", "status", "header", "error code", "input and output", "counters"],
)
def test_each_kind_of_matcher_can_be_written(scene: MakeScene, pair: str, answer: Any) -> None:
    """Output, status, header, error code, input with output, one counter with another."""
    until = Acceptors([(pair, "succeeded"), ("status == `999`", "failed")])
    assert scene(answer).ends(spec_of(until=until, input={"size": 3})).outcome is Outcome.SUCCEEDED


def test_an_error_can_be_the_success(scene: MakeScene) -> None:
    """Waiting until something is gone: a 404 is what was wanted."""
    assert scene(200, 200, 404).ends(spec_of(until=Status(succeeded=404, pending=200))).polls == 3


def test_any_error_can_be_matched(scene: MakeScene) -> None:
    """Also that there was no answer at all."""
    until = Acceptors([("error", "failed"), ("body.state == 'DONE'", "succeeded")])
    assert scene(ErrorKind.CONNECT).ends(spec_of(until=until)).outcome is Outcome.FAILED


def test_what_nothing_matches_waits_on(scene: MakeScene) -> None:
    """An unmatched error is a failed poll; an unmatched answer is not the end either."""
    assert decides(scene, RUNNING, ("body.state == 'DONE'", "succeeded")) is Outcome.EXHAUSTED


def test_something_has_to_be_able_to_succeed() -> None:
    """A waiter that can never succeed is refused."""
    with pytest.raises(SpecError, match="nothing in it can succeed"):
        Acceptors([("body.state == 'FAILED'", "failed")])


def test_the_last_poll_is_at_the_deadline_and_success_there_is_success(scene: MakeScene) -> None:
    """Delays grow from 2 s to at most 2 min; the last one is cut, so that its poll still has its time."""
    world = scene(*[RUNNING] * 6, DONE)
    ended = world.ends(spec_of(strategy=Exponential("2s", maximum="2m"), limits=limits("100s", poll_timeout="5s")))
    assert world.seconds() == [0, 2, 6, 14, 30, 62, 95]
    assert ended.outcome is Outcome.SUCCEEDED


def test_attempts_are_counted_and_the_error_tells_the_truth(scene: MakeScene) -> None:
    """Where nothing matched, the error does not name a matcher that never did."""
    error = scene(RUNNING).fails(spec_of(strategy=Fixed("15s"), limits=Limits(max_polls=4)))
    assert error.outcome is Outcome.EXHAUSTED
    assert "`body.state` was `RUNNING` in all 4 polls" in str(error)
    assert "DONE" not in str(error)


def test_a_request_per_poll_is_what_it_costs(scene: MakeScene) -> None:
    """A constant delay and a number of attempts, as a waiter's file has them."""
    world = scene(RUNNING)
    poll = Request("GET", "https://api.example.com/jobs/1")
    world.ends(spec_of(poll=poll, strategy=Fixed("15s"), limits=Limits(max_polls=20)))
    assert world.seconds() == [15 * n for n in range(20)]
