"""Jumps of the clock are noticed, and nothing else is taken for one."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tarry import Fixed
from tarry.runtime.clock_watch import ClockWatch
from tarry.testing import FakeClock
from tarry.words import HOUR, MILLISECOND, SECOND
from tests.pollers import QUEUED, SUCCEEDED, Skewed, World, polled


@pytest.mark.parametrize(("skew", "is_jump"), [(HOUR, True), (-HOUR, True), (SECOND, True), (20 * MILLISECOND, False)])
def test_a_clock_that_is_set_has_jumped(skew: int, *, is_jump: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Forward and back; once each, with a warning that says how far. A little drift is none."""
    clock = FakeClock()
    skewed = Skewed(clock)

    async def main() -> None:
        watch = ClockWatch(skewed)
        await clock.sleep(60 * SECOND)
        assert not watch.has_jumped()
        skewed.skew = skew
        assert watch.has_jumped() is is_jump
        assert not watch.has_jumped()

    with caplog.at_level(logging.WARNING, "tarry.runtime"):
        clock.run(main)
    assert ["the clock jumped by" in line for line in caplog.messages] == ([True] if is_jump else [])


@pytest.mark.parametrize("others", [0, 3])
def test_a_rest_is_over_when_the_clock_says_so(others: int) -> None:
    """A machine that slept 10 s of a wait of 20 s polls 10 s after it, whoever rests beside the job."""
    world = World([QUEUED, SUCCEEDED])
    skewed = Skewed(world.clock)

    async def main() -> None:
        async with world.poller(clock=skewed) as poller:
            waiting = asyncio.create_task(poller.await_job("orders", polled(strategy=Fixed("20s"))))
            beside = [poller.await_job(f"beside-{n}", polled(strategy=Fixed("25s"))) for n in range(others)]
            gathered = asyncio.gather(*beside, return_exceptions=True)
            await world.after(5)
            skewed.skew = 10 * SECOND
            await waiting
            gathered.cancel()

    world.run(main)
    assert (
        10 <= [seen.at for seen in world.job.requests if "orders" in seen.url][1] / SECOND - world.began / SECOND <= 11
    )
