"""Events are told at least once: how far they were told is part of the row."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tarry import CheckpointError, JobResult, Request, WaitTimeout
from tarry.ports import StoredEvent
from tarry.store import MemoryStore
from tarry.testing import Answer, ScriptedJob
from tarry.words import SECOND
from tests.pollers import QUEUED, RUNNING, SUCCEEDED, World, polled, spec_of


class Unreadable(MemoryStore):
    """A store in which one job's events are damaged."""

    def events(self, namespace: str, key: str, after: tuple[int, int], limit: int) -> list[StoredEvent]:
        if key == "ails":
            raise CheckpointError("an event is damaged")
        return super().events(namespace, key, after, limit)


def in_turn() -> Any:
    """A callable that answers with each state of a job."""
    answers = iter([QUEUED, RUNNING, SUCCEEDED])

    def poll() -> Any:
        return next(answers)

    return poll


def test_what_was_told_is_not_told_again() -> None:
    """By the next process too, though it hears of all that comes after."""
    world = World([QUEUED, RUNNING, SUCCEEDED])

    async def main() -> None:
        for patience in (1, 3, None, None):
            async with world.poller() as poller:
                try:
                    await poller.await_job("orders", spec_of(), wait_timeout=patience)
                except WaitTimeout:
                    continue

    world.run(main)
    assert [event.seq for event in world.told] == list(range(1, world.told[-1].seq + 1))
    assert world.kinds()[-1] == "finished"


@pytest.mark.parametrize("told", [0, 2, 4])
def test_what_a_crash_kept_from_being_told_is_told_by_the_next(told: int) -> None:
    """With the same cursors, also when the next process only looks at a job that is over."""
    world = World([QUEUED, SUCCEEDED])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.await_job("orders", spec_of())
        with world.store._database.write() as connection:
            connection.exec_driver_sql(f"UPDATE tarry_job SET told = {told}")
        first = world.told[:]
        world.told.clear()
        async with world.poller() as poller:
            await poller.await_job("orders")
            await poller.await_job("orders")
        assert world.told == first[told:]

    world.run(main)


def test_a_poller_without_a_callback_leaves_what_is_to_be_told() -> None:
    """The next with one hears of all that was missed."""
    world = World([SUCCEEDED])

    async def main() -> None:
        async with world.poller(on_event=None) as silent:
            await silent.await_job("orders", polled())
        async with world.poller() as poller:
            await poller.await_job("orders")
            await poller.await_job("orders")

    world.run(main)
    assert world.kinds() == ["created", "status", "finished"]
    assert world.store.find("default", "orders").told == 3  # type: ignore[union-attr]  # it is there


def test_what_happened_between_two_owners_is_told() -> None:
    """Such as the freeing of a job whose worker died."""
    world = World([QUEUED, QUEUED, SUCCEEDED])

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", polled(), wait_timeout=1)
        with world.store._database.write() as connection:
            connection.exec_driver_sql("UPDATE tarry_job SET owner = 77, wake = NULL")
        async with world.poller() as poller:
            await poller.await_job("orders", polled())

    world.run(main)
    assert "freed" in world.kinds()
    assert [event.seq for event in world.told] == list(range(1, len(world.told) + 1))


def test_a_job_that_takes_the_key_of_a_forgotten_one_is_told_of_from_the_start() -> None:
    """Its events are numbered as the other's were."""
    world = World([SUCCEEDED, SUCCEEDED])

    async def main() -> None:
        async with world.poller() as poller:
            for _ in range(2):
                await poller.await_job("orders", polled())
                await world.after(3600)
                await poller.prune("1s")

    world.run(main)
    assert world.kinds() == ["created", "status", "finished"] * 2


def test_what_is_delivered_while_a_result_is_fetched_hides_nothing() -> None:
    """Both add an event to a job that is over, and each is told, in order."""
    world = World([RUNNING, SUCCEEDED])
    world.job = ScriptedJob(
        [RUNNING, SUCCEEDED],
        submit=[{"jobId": "j1"}],
        cancel=Answer(202, delay=4 * SECOND),
        fetch=Answer(body={"rows": 1}, delay=6 * SECOND),
        clock=world.clock,
    )
    url = "https://api.example.com/jobs/{submit.body.jobId}"
    spec = spec_of(cancel=Request("DELETE", url), fetch=Request("GET", f"{url}/result"), result=None)

    async def main() -> None:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", spec))
            await world.after(1)
            await poller.cancel("orders")
            await waiting
            await world.after(1)

    world.run(main)
    assert world.kinds()[-3:] == ["finished", "delivered", "fetched"]
    assert [event.seq for event in world.told] == list(range(1, len(world.told) + 1))


def test_events_that_cannot_be_read_are_one_jobs_trouble() -> None:
    """What others committed at the same time is read for them all the same."""
    world = World([QUEUED], store=Unreadable())
    specs = {key: polled(poll=in_turn(), result=None) for key in ("ails", "orders", "parcels")}

    async def main() -> dict[str, Any]:
        async with world.poller() as poller:
            return await poller.await_all(specs)

    ended = world.run(main)
    assert [type(each) for each in ended.values()] == [CheckpointError, JobResult, JobResult]
