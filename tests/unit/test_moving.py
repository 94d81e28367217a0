"""A job that moves to another store."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tarry import (
    CheckpointError,
    Fixed,
    KeyConflict,
    Limits,
    Outcome,
    SpecError,
    StoreError,
    WaitTimeout,
)
from tarry.runtime.moving import _sum
from tarry.store import MemoryStore
from tarry.testing import Answer
from tarry.words import SECOND
from tests.pollers import QUEUED, RUNNING, SUCCEEDED, World, polled, spec_of

SPEC = spec_of(strategy=Fixed("8s"), limits=Limits(max_polls=3, total_duration="1h"))


async def token_of(world: World, spec: Any = SPEC) -> str:
    """The token of a job that was polled once."""
    async with world.poller() as poller:
        with pytest.raises(WaitTimeout):
            await poller.await_job("orders", spec, wait_timeout="3s")
        return await poller.export("orders")


def test_a_job_goes_on_in_another_store() -> None:
    """With its remote job, counters, deadline and due time; in the store it came from it stays paused."""
    world = World([RUNNING, SUCCEEDED])

    async def main() -> Any:
        token = await token_of(world)
        async with world.poller(store=MemoryStore()) as there, world.poller() as here:
            moved, left = await there.import_job(token), await here.get("orders")
            assert left.paused
            assert await there.import_job(token) == moved
            assert (moved.polls, moved.deadline, moved.created_at) == (left.polls, left.deadline, left.created_at)
            assert (moved.next_poll_at, moved.timeline, moved.last) == (left.next_poll_at, left.timeline, left.last)
            ended = await there.await_job("orders", SPEC)
            assert (await here.get("orders")).outcome is None
            return ended

    ended = world.run(main)
    assert (ended.outcome, ended.polls, world.job.submits) == (Outcome.SUCCEEDED, 2, 1)
    assert world.seconds() == [0, 8]
    assert "imported" in world.kinds()


def test_the_limit_counts_what_was_spent_elsewhere() -> None:
    """A token gives no poll away."""
    world = World([RUNNING])

    async def main() -> Any:
        token = await token_of(world)
        async with world.poller(store=MemoryStore()) as there:
            await there.import_job(token)
            return await there.await_job("orders", raises=False)

    assert world.run(main).outcome is Outcome.EXHAUSTED
    assert world.job.polls == 3


def test_a_poll_on_its_way_is_waited_for() -> None:
    """Its answer is in the token; one that ends the job leaves nothing to move."""
    world = World([Answer(delay=5 * SECOND, body=RUNNING), Answer(delay=5 * SECOND, body=SUCCEEDED)])

    async def main() -> None:
        async with world.poller() as poller, world.poller() as other:
            waiting = asyncio.create_task(poller.await_job("orders", polled()))
            await world.after(2)
            token = json.loads(await other.export("orders"))
            assert (token["polls"], json.loads(token["state"])["status"]) == (1, "RUNNING")
            await other.resume("orders")
            await world.after(2)
            with pytest.raises(StoreError, match="over"):
                await other.export("orders")
            await waiting
            with pytest.raises(StoreError, match="over"):
                await other.export("orders")

    world.run(main)


def test_a_job_that_nobody_gives_up_is_not_moved() -> None:
    """A worker that is stuck keeps it; the job stays paused, and one may try again."""
    world = World([QUEUED])

    async def main() -> None:
        async with world.poller() as poller:
            job = await poller.add("orders", polled())
            worker = world.store.register("stuck", world.clock.now(), 3600 * SECOND)
            world.store.claim(worker, "n", world.clock.now(), [job.id])
            with pytest.raises(StoreError, match="still holds"):
                await poller.export("orders")

    world.run(main)


def test_a_token_goes_back_where_it_came_from() -> None:
    """There it resumes the job."""
    world = World([RUNNING, SUCCEEDED])

    async def main() -> Any:
        token = await token_of(world)
        async with world.poller() as here:
            assert not (await here.import_job(token)).paused
            return await here.await_job("orders")

    assert world.run(main).polls == 2


def test_another_job_is_not_overwritten() -> None:
    """Its key is taken."""
    world = World([RUNNING])

    async def main() -> None:
        token = await token_of(world)
        async with world.poller(store=MemoryStore()) as there:
            job = await there.add("orders", SPEC)
            with pytest.raises(KeyConflict, match="not imported"):
                await there.import_job(token)
            assert await there.get("orders") == job

    world.run(main)


def test_a_callable_without_a_name_cannot_move() -> None:
    """The reason is said, and the job is not paused."""
    world = World([RUNNING])

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", polled(poll=lambda: RUNNING), wait_timeout=0)
            with pytest.raises(SpecError, match="cannot be imported"):
                await poller.export("orders")
            assert not (await poller.get("orders")).paused

    world.run(main)


def changed(token: str, **changes: Any) -> str:
    """The token with other fields and a sum that fits them, as a newer version would write it."""
    fields = {**json.loads(token), **changes}
    rest = {name: value for name, value in fields.items() if name not in {"v", "tarry", "sum"} and value is not None}

    return json.dumps({"v": fields["v"], "tarry": fields["tarry"], **rest, "sum": _sum(rest)})


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda token: "", "token: damaged"),
        (lambda token: token[:-9], "token: damaged"),
        (lambda token: "{}", "no version"),
        (lambda token: token.replace('"polls":1', '"polls":0'), "not as it was written"),
        (lambda token: changed(token, tarry="spec"), "not as it was written"),
        (lambda token: changed(token, v=2), "version 2"),
        (lambda token: changed(token, more=1), "a field is not"),
        (lambda token: changed(token, polls=None), "polls is not"),
        (lambda token: changed(token, polls=-1), "token.polls: damaged"),
        (lambda token: changed(token, key="other"), "another job"),
        (lambda token: changed(token, spec="{"), "spec: damaged"),
    ],
    ids=["empty", "cut", "none", "altered", "another kind", "newer", "more", "less", "wrong", "another job", "spec"],
)
def test_a_token_that_is_damaged_or_newer_is_refused(damage: Any, problem: str) -> None:
    """It is said what is wrong, and nothing is stored."""
    world = World([RUNNING])

    async def main() -> None:
        token = await token_of(world)
        async with world.poller(store=MemoryStore()) as there:
            with pytest.raises(CheckpointError, match=problem):
                await there.import_job(damage(token))
            assert await there.jobs() == []

    world.run(main)
