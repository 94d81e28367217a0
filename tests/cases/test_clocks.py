"""Clocks that are set, on machines that wait."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tarry import Fixed, Outcome
from tarry.clock import SystemClock
from tarry.testing import ScriptedJob
from tarry.words import HOUR, MILLISECOND, SECOND
from tests.worlds import DONE, RUNNING, MakeScene, limits, spec_of

NANO = 1_000


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])
def test_pc_061_a_wall_clock_that_jumps_moves_nothing(scene: MakeScene, jump: int) -> None:
    """Within a process elapsed time is what has passed: the job done at 45 s is seen at 50 s, by its deadline of 60 s."""
    world = scene()

    def wall() -> int:
        return (world.clock.now() + (jump if world.elapsed() >= 15 else 0)) * NANO

    clock = SystemClock(wall_ns=wall, elapsed_ns=lambda: world.clock.now() * NANO)
    world.job = ScriptedJob([lambda _: DONE if world.elapsed() >= 45 else RUNNING], clock=world.clock)

    async def main() -> Any:
        async with world.poller(clock=clock) as poller:
            return await poller.await_job("orders", spec_of(strategy=Fixed("10s"), limits=limits("60s")))

    ended = world.run(main)
    assert ended.outcome is Outcome.SUCCEEDED
    assert world.seconds() == pytest.approx([0, 10, 20, 30, 40, 50], abs=MILLISECOND / SECOND)


def test_pc_061_a_clock_set_back_while_nothing_ran_stalls_nothing(durable: MakeScene) -> None:
    """A process that starts at an earlier time polls at once, and the elapsed time is never negative."""
    world = durable(RUNNING, DONE)

    async def main() -> Any:
        await world.process().killed_at(30, "orders", spec_of(strategy=Fixed("60s")))
        back = SystemClock(
            wall_ns=lambda: (world.clock.now() - HOUR) * NANO, elapsed_ns=lambda: world.clock.now() * NANO
        )
        second = world.process(clock=back)
        return await (await second.awaiting("orders"))

    ended = world.run(main)
    assert ended.outcome is Outcome.SUCCEEDED
    assert ended.elapsed >= timedelta(0)
