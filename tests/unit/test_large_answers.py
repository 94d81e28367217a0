from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from tarry import Acceptors, Expression, Limits, Match, Status
from tarry.core.condition import Condition
from tarry.core.judgement import Judgement
from tests.pollers import World, polled

LARGE = {"items": [{"state": "DONE"}] * 10_000}


@pytest.mark.parametrize(("body", "is_aside"), [({"items": []}, False), (LARGE, True)], ids=["small", "large"])
def test_a_large_answer_is_judged_beside_the_loop(
    body: dict[str, Any],
    is_aside: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What takes long to go through does not hold up other jobs; a small answer is judged at once."""
    where: list[str] = []
    judge = Match.judge

    def watched(self: Match, document: Mapping[str, Any]) -> Judgement:
        where.append(threading.current_thread().name)
        return judge(self, document)

    monkeypatch.setattr(Match, "judge", watched)
    world = World([body, LARGE])
    spec = polled(until=Match("body.items[*].state", over="all", succeeded="DONE"), result=None)

    async def main() -> str:
        async with world.poller() as poller:
            return str((await poller.await_job("k", spec)).outcome)

    assert world.run(main) == "succeeded"
    assert (where[0] == "tarry-callable") == is_aside


def test_a_runaway_is_a_failed_poll() -> None:
    """An expression that multiplies a large answer costs a poll, and the error says why."""
    world = World([LARGE])
    runaway = Acceptors([("body.items | " + "[@,@]|" * 9 + "to_string(@) == 'x'", "succeeded")])

    async def main() -> Any:
        async with world.poller() as poller:
            spec = polled(until=runaway, limits=Limits(max_polls=2))
            await poller.await_job("k", spec, raises=False)
            return await poller.get("k")

    job = world.run(main)
    assert str(job.outcome) == "exhausted"
    assert "TooCostly: the expression takes more than 1,000,000 steps" in job.error


MANY = Acceptors([("body.items[?state == 'DONE' || state == 'ENDED']", "succeeded")] * 30)


@pytest.mark.parametrize(("items", "is_aside"), [(2, False), (200, True)])
def test_many_expressions_make_an_answer_large(items: int, is_aside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may go through all of it, more than once: together they would hold up other jobs."""
    where: list[str] = []
    judge = Acceptors.judge

    def watched(self: Acceptors, document: Mapping[str, Any]) -> Judgement:
        where.append(threading.current_thread().name)
        return judge(self, document)

    monkeypatch.setattr(Acceptors, "judge", watched)
    world = World([{"items": [{"state": "RUNNING"}] * items}])

    async def main() -> Any:
        async with world.poller() as poller:
            return await poller.await_job("k", polled(until=MANY, limits=Limits(max_polls=1)), raises=False)

    assert str(world.run(main).outcome) == "exhausted"
    assert (where == ["tarry-callable"]) == is_aside


@pytest.mark.parametrize(
    ("condition", "effort"),
    [
        (Match("body.state", succeeded="DONE"), 1),
        (Status(pending=[202], succeeded="2xx"), 1),
        (Expression("body.done == `1`"), 5),
        (~Expression("body.done == `1`"), 5),
        (Expression("[body, body, input] | [0]"), 8 * 3),
        (Match("body.state", succeeded="DONE") & Acceptors([("body.a", "failed"), ("!(body.a)", "succeeded")]), 6),
    ],
    ids=["path", "status", "comparison", "not", "fans out", "together"],
)
def test_the_effort_of_a_condition_is_that_of_its_expressions(condition: Condition, effort: int) -> None:
    """A plain path hardly looks at an answer; the parts of an expression each may go through it."""
    assert condition.effort == effort
