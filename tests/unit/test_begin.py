"""Applications whose loop begins tasks at once."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tarry import Fixed, Limits, Outcome
from tarry.store import open_store
from tests.pollers import QUEUED, RUNNING, SUCCEEDED, World, polled

pytestmark = [
    pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in Python 3.12"),
    pytest.mark.timeout(30),
]


@pytest.mark.parametrize("interval", ["0.5s", "2s"], ids=["with a task between polls", "without one"])
@pytest.mark.parametrize("is_file", [False, True], ids=["memory", "file"])
@pytest.mark.parametrize("is_taken", [False, True], ids=["awaited", "taken"])
def test_a_job_is_polled_to_its_end_where_tasks_are_eager(
    tmp_path: Path, interval: str, *, is_file: bool, is_taken: bool
) -> None:
    """As anywhere: what begins is written down before it goes on."""
    world = World([QUEUED, RUNNING, RUNNING, SUCCEEDED])
    spec = polled(strategy=Fixed(interval), limits=Limits(min_interval="0.5s"))

    async def main() -> list[tuple[Outcome | None, int]]:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        store = open_store(f"sqlite:///{tmp_path / 'tarry.db'}") if is_file else world.store
        async with world.poller(store=store) as poller:
            if is_taken:
                for number in range(3):
                    await poller.add(f"orders-{number}", spec)
                await poller.run(until_idle=True)
            else:
                await poller.await_all({f"orders-{number}": spec for number in range(3)})
            return [(job.outcome, job.polls) for job in await poller.jobs()]

    ended = world.run(main)
    assert len(ended) == 3
    assert [outcome for outcome, _ in ended] == [Outcome.SUCCEEDED] * 3
    assert sum(polls for _, polls in ended) == world.job.polls
