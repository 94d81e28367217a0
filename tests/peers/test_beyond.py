"""What no peer proves: kills at every step, two workers on one row, waits at their edges."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tarry import Exponential, Fixed, Linear, Outcome, Request
from tarry.core.strategies import jittered
from tarry.testing import Answer
from tarry.words import SECOND
from tests.worlds import DONE, RUNNING, MakeScene, spec_of

FETCH = Request("GET", "https://api.example.com/jobs/{key}/result")


@pytest.mark.parametrize(
    ("second", "polls"),
    [(0.5, 5), (1.5, 4), (9, 4), (11.5, 5), (30.5, 4)],
    ids=["in the first call", "right after its commit", "in a sleep", "in the second call", "in the fetch"],
)
def test_a_kill_at_each_step_costs_at_most_the_poll_it_hit(durable: MakeScene, second: float, polls: int) -> None:
    """A poll cut in mid call is counted, and made again; nothing else is repeated, and the result is had."""
    world = durable()
    slow = [Answer(200, body, delay=SECOND) for body in (RUNNING, RUNNING, RUNNING, DONE)]
    if polls == 5:  # the answer that was lost is given again
        slow.insert(0, slow[0])
    world.play(slow, fetch=[Answer(200, {"rows": 3}, delay=10 * SECOND)])
    spec = spec_of(strategy=Fixed("8s"), fetch=FETCH, result="body.rows")

    async def main() -> Any:
        await world.process().killed_at(second, "orders", spec)
        second_process = world.process()
        ended = await (await second_process.awaiting("orders"))
        return ended, await second_process.poller.history("orders")

    ended, events = world.run(main)
    assert (ended.outcome, ended.output, ended.polls, world.job.polls) == (Outcome.SUCCEEDED, 3, polls, polls)
    assert [event.kind for event in events].count("finished") == 1


def test_a_row_is_taken_over_when_the_lease_has_run_out_and_not_before(scene: MakeScene) -> None:
    """A worker that says nothing any more, and cannot be seen to be dead, keeps its job for as long as its lease."""
    world = scene(RUNNING, DONE)

    async def main() -> float:
        silent = world.poller(lease="30s")
        await silent.__aenter__()
        waiting = asyncio.create_task(silent.await_job("orders", spec_of(strategy=Fixed("1s"))))
        await world.at(0.5)
        for loop in asyncio.all_tasks():
            if loop.get_name().startswith("tarry"):
                loop.cancel()  # it renews nothing and polls nothing from now on
        async with world.poller() as other:
            await other.await_job("orders")
            taken = world.elapsed()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return taken

    assert 30 <= world.run(main) <= 34


def test_progress_is_not_told_again_after_a_kill(durable: MakeScene) -> None:
    """The events of a poll are in the commit that counts it: the next process tells what is new to it."""
    world = durable({"state": "RUNNING", "done": 0.5}, {"state": "RUNNING", "done": 0.5}, DONE)
    spec = spec_of(strategy=Fixed("10s"), progress="body.done")

    async def main() -> Any:
        await world.process().killed_at(0.001, "orders", spec)
        second = world.process()
        await (await second.awaiting("orders"))
        return await second.poller.history("orders")

    told = [(event.kind, dict(event.data)) for event in world.run(main)]
    assert [data for kind, data in told if kind == "progress"][:1] == [{"progress": 0.5}]
    assert [kind for kind, _ in told].count("progress") <= 2


def test_the_floor_holds_for_every_draw() -> None:
    """A hundred thousand draws of full jitter, and a wait after the millionth poll."""
    assert all(jittered("full", 10 * SECOND, SECOND, "orders", n) >= SECOND for n in range(1, 100_001))
    for strategy in (Fixed("1s"), Linear("1s"), Exponential("1s", factor=1.5, maximum="1m")):
        assert SECOND <= strategy.delay(10**6)[0] <= 10**6 * SECOND
