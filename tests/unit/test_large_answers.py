from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from tarry import Acceptors, Limits, Match
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
