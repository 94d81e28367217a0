"""S14 to S18: how often, how long."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import Exponential, Fixed, Limits, Outcome, Request, WaitTimeout
from tarry.testing import Answer
from tarry.words import HOUR, SECOND
from tests.worlds import DONE, RUNNING, MakeScene, limits, spec_of


def test_s14_max_polls_is_exact(scene: MakeScene) -> None:
    """N calls, good and failed ones alike, and exhausted at once after the last."""
    world = scene(RUNNING, 500, RUNNING)
    error = world.fails(spec_of(limits=Limits(max_polls=5)))
    assert (error.outcome, world.job.polls) == (Outcome.EXHAUSTED, 5)
    assert world.elapsed() == world.seconds()[-1]
    assert "max_polls=5 are spent" in str(error)


def test_s14_a_submit_is_no_poll(scene: MakeScene) -> None:
    """Only status calls count."""
    world = scene()
    world.play([RUNNING, DONE], submit=[503, 503, Answer(202, {"jobId": "j1"})])
    submit = Request("POST", "https://api.example.com/jobs", idempotent=True)
    poll = Request("GET", "https://api.example.com/jobs/{submit.body.jobId}")
    assert world.ends(spec_of(submit=submit, poll=poll, limits=Limits(max_polls=2))).outcome is Outcome.SUCCEEDED
    assert (world.job.submits, world.job.polls) == (3, 2)


@pytest.mark.parametrize("second", [0.5, 2.5, 4.2], ids=str)
def test_s14_the_count_holds_over_kills(durable: MakeScene, second: float) -> None:
    """A permit that was committed and whose use is unknown counts as spent: never more than N requests are seen."""
    world = durable(Answer(200, RUNNING, delay=SECOND))
    spec = spec_of(limits=Limits(max_polls=4))

    async def main() -> Any:
        await world.process().killed_at(second, "orders", spec)
        await world.process().killed_at(second + 5, "orders", spec)
        third = world.process()
        ended = await (await third.awaiting("orders", raises=False))
        return ended, await third.poller.get("orders")

    ended, job = world.run(main)
    assert ended.outcome is Outcome.EXHAUSTED
    assert world.job.polls <= job.polls <= 4


def test_s15_the_deadline_runs_from_creation_through_everything(scene: MakeScene) -> None:
    """Through the time before anybody waited, and through downtime; it is stored once."""
    world = scene(RUNNING)
    spec = spec_of(strategy=Fixed("7s"), limits=limits("60s"))

    async def main() -> Any:
        async with world.poller() as poller:
            created = await poller.add("orders", spec)
        await world.at(30)
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", spec, wait_timeout="5s")
        await world.at(45)
        async with world.poller() as poller:
            ended = await poller.await_job("orders", raises=False)
            return created, ended, await poller.get("orders")

    created, ended, job = world.run(main)
    assert created.deadline == job.deadline
    assert ended.outcome is Outcome.TIMED_OUT
    assert 54 <= world.elapsed() <= 60


def test_s15_a_poll_in_flight_at_the_deadline_is_cut(scene: MakeScene) -> None:
    """Its answer would have come too late."""
    world = scene(RUNNING, Answer(200, DONE, delay=HOUR))
    assert world.ends(spec_of(strategy=Fixed("55s"), limits=limits("60s"))).outcome is Outcome.TIMED_OUT
    assert world.elapsed() == 60


@pytest.mark.parametrize(
    ("total", "timeout", "last"), [("100s", "30s", 90), ("100s", "4s", 96), ("1000s", "30s", 970)], ids=str
)
def test_s16_one_closing_poll_is_brought_forward(scene: MakeScene, total: str, timeout: str, last: float) -> None:
    """To start the smaller of `poll_timeout` and a tenth of the whole before the deadline."""
    world = scene(RUNNING)
    spec = spec_of(strategy=Exponential("20s", factor=50), limits=limits(total, poll_timeout=timeout))
    assert world.ends(spec).outcome is Outcome.TIMED_OUT
    assert world.seconds() == [0, 20, last]


@pytest.mark.parametrize(
    ("answer", "outcome"), [(DONE, Outcome.SUCCEEDED), (RUNNING, Outcome.TIMED_OUT)], ids=["done", "running"]
)
def test_s17_a_process_down_past_the_deadline_looks_once_more(
    durable: MakeScene, answer: Any, outcome: Outcome
) -> None:
    """Its verdict counts."""
    world = durable(RUNNING, answer)
    spec = spec_of(strategy=Fixed("20s"), limits=limits("60s"))

    async def main() -> Any:
        await world.process().killed_at(10, "orders", spec)
        await world.at(600)
        return await (await world.process().awaiting("orders", raises=False))

    assert world.run(main).outcome is outcome
    assert world.seconds() == [0, 600]


def test_s17_a_hint_of_429_forbids_the_closing_poll(durable: MakeScene) -> None:
    """Where the service asked to be left alone until later, and the job was polled before."""
    world = durable(Answer(429, headers={"Retry-After": "1000"}))

    async def main() -> Any:
        await world.process().killed_at(10, "orders", spec_of(limits=limits("1h")))
        shorter = spec_of(limits=limits("60s"))
        await world.at(100)
        return await (await world.process().awaiting("orders", shorter, raises=False))

    assert world.run(main).outcome is Outcome.TIMED_OUT
    assert world.seconds() == [0]


def test_s18_poll_timeout_bounds_the_whole_call(scene: MakeScene) -> None:
    """A callable or a request: what takes longer is a failed poll."""
    world = scene(Answer(200, DONE, delay=HOUR), DONE)
    assert world.ends(spec_of(limits=limits(poll_timeout="3s"))).outcome is Outcome.SUCCEEDED
    assert (world.seconds(), len(world.event("poll_failed"))) == ([0, 5], 1)
