"""Waiting for several jobs, and for no longer than one has patience."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from tarry import (
    Fixed,
    JobFailed,
    JobNotFound,
    JobResult,
    KeyConflict,
    Limits,
    Match,
    Outcome,
    SpecError,
    TarryError,
    WaitTimeout,
)
from tarry.errors import StoreUnavailable
from tarry.store import MemoryStore
from tarry.words import SECOND
from tests.pollers import FAILED, QUEUED, RUNNING, SUCCEEDED, World, polled, spec_of


class Locked:
    """An offload on which every store call of one kind takes long."""

    def __init__(self, world: World, name: str, seconds: int) -> None:
        self.world = world
        self.name = name
        self.seconds = seconds
        self.running = 0

    async def __call__(self, work: Any, /) -> Any:
        self.running += 1
        try:
            if self.name in {getattr(part, "__name__", None) for part in (work.func, *work.args)}:
                await self.world.clock.sleep(self.seconds * SECOND)
            return work()
        finally:
            self.running -= 1


class Slow:
    """An offload on which every other store call takes 30 ms."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls = 0

    async def __call__(self, work: Any, /) -> Any:
        self.calls += 1
        if self.calls % 2:
            await self.world.after(0.03)
        return work()


class Away(MemoryStore):
    """A store that does not find anything for now."""

    def find(self, namespace: str, key: str) -> Any:
        raise StoreUnavailable("away")


def by_key(key: str, answers: dict[str, Any]) -> Any:
    """A callable that answers for one job."""

    def poll() -> Any:
        return answers[key]

    return poll


def test_several_jobs_are_awaited_at_once() -> None:
    """Each has its result or its error, in the order given; one failure hurts no other."""
    world = World([QUEUED])
    answers = {"b": SUCCEEDED, "a": FAILED, "c": RUNNING}

    async def main() -> dict[str, Any]:
        async with world.poller() as poller:
            await poller.add("conflict", spec_of())
            specs: dict[str, Any] = {key: polled(poll=by_key(key, answers), result=None) for key in answers}
            return await poller.await_all(
                {**specs, "none": None, "conflict": polled(), "no spec": 7}, wait_timeout="9s"
            )

    ended = world.run(main)
    assert list(ended) == ["b", "a", "c", "none", "conflict", "no spec"]
    assert [type(one) for one in ended.values()] == [
        JobResult,
        JobFailed,
        WaitTimeout,
        JobNotFound,
        KeyConflict,
        SpecError,
    ]
    assert all(isinstance(one, JobResult | TarryError) for one in ended.values())
    assert ended["b"].outcome is Outcome.SUCCEEDED


def test_nothing_to_await_is_awaited_at_once() -> None:
    """An empty mapping gives an empty one; a wrong argument is refused before anything begins."""
    world = World([QUEUED])

    async def main() -> dict[str, Any]:
        async with world.poller() as poller:
            with pytest.raises(SpecError, match="wait_timeout"):
                await poller.await_all({"orders": polled()}, wait_timeout=-1)
            assert await poller.jobs() == []
            return await poller.await_all({})

    assert world.run(main) == {}


def test_several_jobs_begin_anew() -> None:
    """`reuse` is for each of them."""
    world = World([FAILED, SUCCEEDED])

    async def main() -> tuple[Any, Any]:
        async with world.poller() as poller:
            first = await poller.await_all({"orders": polled()})
            return first, await poller.await_all({"orders": polled()}, reuse="restart_failed")

    first, second = world.run(main)
    assert isinstance(first["orders"], JobFailed)
    assert second["orders"].outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("call", ["find", "add_all"])
def test_patience_is_for_the_store_too(call: str) -> None:
    """A store that does not answer is waited for no longer than a job; what it does in the end is drained."""
    world = World([SUCCEEDED])

    async def main() -> tuple[float, int, int]:
        offload = Locked(world, call, 20)
        async with world.poller(offload=offload) as poller:
            began = world.clock.now()
            with pytest.raises(WaitTimeout, match="store"):
                await poller.await_job("orders", polled(), wait_timeout="2s")
            took, running = world.clock.now() - began, offload.running
        return took / SECOND, running, offload.running

    assert world.run(main) == (2, 1, 0)


def test_patience_counts_what_the_store_took() -> None:
    """All of a wait together is as long as its patience."""
    world = World([QUEUED])

    async def main() -> float:
        async with world.poller(offload=Locked(world, "add_all", 3)) as poller:
            began = world.clock.now()
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", polled(), wait_timeout="5s")
            return (world.clock.now() - began) / SECOND

    assert 5 <= world.run(main) < 5.1


def test_a_caller_who_is_cancelled_waits_for_no_store() -> None:
    """Cancelled while the store is stuck, it ends at once."""
    world = World([QUEUED])

    async def main() -> float:
        async with world.poller(offload=Locked(world, "find", 20)) as poller:
            waiting = asyncio.create_task(poller.await_job("orders", polled()))
            await world.after(1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return (world.clock.now() - world.began) / SECOND

    assert world.run(main) == 1


def test_a_caller_who_gives_up_leaves_the_job() -> None:
    """PC-052: `asyncio.timeout` around a wait ends the wait alone."""
    world = World([RUNNING, RUNNING, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3):
                    await poller.await_job("orders", spec_of())
            await world.after(1)
            job = await poller.get("orders")
            assert (job.outcome, job.owner, job.polls) == (None, None, 2)
            return await poller.await_job("orders")

    assert world.run(main).polls == 3
    assert world.job.submits == 1


@pytest.mark.parametrize("interval", ["5s", "25s", "5m"], ids=["reserved", "held", "given up"])
def test_closing_does_not_wait_for_a_sleep(interval: str) -> None:
    """PC-053: in less than a second, and the due time stays for whoever resumes."""
    world = World([RUNNING, SUCCEEDED])
    spec = polled(strategy=Fixed(interval), until=Match("body.state", succeeded="SUCCEEDED"), limits=Limits())

    async def main() -> float:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", spec))
            await world.after(1)
            began = world.clock.now()
        took = (world.clock.now() - began) / SECOND
        with pytest.raises(TarryError, match="lives on"):
            await waiting
        async with world.poller() as poller:
            await poller.await_job("orders")
        return took

    assert world.run(main) < 1
    due = {"5s": 5, "25s": 25, "5m": 300}[interval]
    assert world.seconds() == [0, due]


def test_a_callable_knows_the_context_of_its_caller() -> None:
    """At each poll, whatever it waited between, and whoever else rouses the job."""
    world, asked = World([QUEUED]), ContextVar("asked", default="nobody")
    knew: list[str] = []

    def poll() -> Any:
        knew.append(asked.get())
        return SUCCEEDED if len(knew) == 4 else RUNNING

    async def waits(poller: Any, name: str) -> Any:
        asked.set(name)
        return await poller.await_job("orders", polled(poll=poll, result=None, strategy=Fixed("2s")))

    async def main() -> Any:
        async with world.poller() as poller:
            first = asyncio.create_task(waits(poller, "first"))
            await world.after(3)
            second = asyncio.create_task(waits(poller, "second"))
            await world.after(3)
            await poller.nudge("orders")
            return await asyncio.gather(first, second)

    assert [ended.outcome for ended in world.run(main)] == [Outcome.SUCCEEDED] * 2
    assert knew == ["first"] * 4


@pytest.mark.parametrize("late", range(0, 160, 5))
def test_a_poller_that_closes_while_callers_join_tells_them(late: int) -> None:
    """They hear of it as of any other end here; what was made for them is given back, and no poll counted that was not made."""
    world = World([RUNNING])

    async def main() -> list[Any]:
        async with world.poller(offload=Slow(world)) as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("first", polled(), wait_timeout=1)
            world.job.requests.clear()
            callers = [asyncio.create_task(poller.await_all({key: polled() for key in ("a", "b")}))]
            callers.append(asyncio.create_task(poller.await_job("c", polled())))
            await world.after(late / 1_000)
        return await asyncio.gather(*callers, return_exceptions=True)

    several, one = world.run(main)
    assert isinstance(one, TarryError)
    assert isinstance(several, TarryError) or all(isinstance(each, TarryError) for each in several.values())
    rows = [row for row in (world.store.find("default", key) for key in "abc") if row is not None]
    assert [(row.owner, row.reserved) for row in rows] == [(None, 0)] * len(rows)
    polls = [seen for seen in world.job.requests if seen.kind == "poll" and not seen.url.endswith("first")]
    assert sum(row.polls for row in rows) == len(polls)


def test_a_look_at_a_store_that_is_away_can_be_cancelled() -> None:
    """At once: nobody waits for what no one wants to know any more."""
    world = World([RUNNING], store=Away())

    async def main() -> float:
        async with world.poller() as poller:
            began = world.clock.now()
            look = asyncio.create_task(poller.get("orders"))
            await world.after(1)
            look.cancel()
            with pytest.raises(asyncio.CancelledError):
                await look
            return (world.clock.now() - began) / SECOND

    assert world.run(main) == pytest.approx(1, abs=0.5)


def test_jobs_made_together_know_the_context_of_their_own_callers() -> None:
    """Though the store was asked for all of them at once, and though another rouses one in a long wait."""
    world, asked = World([RUNNING]), ContextVar("asked", default="nobody")
    knew: dict[str, list[str]] = {"a": [], "b": []}

    def poll_of(key: str) -> Any:
        def poll() -> Any:
            knew[key].append(asked.get())
            return SUCCEEDED if len(knew[key]) == 3 else RUNNING

        return poll

    async def waits(poller: Any, key: str) -> Any:
        asked.set(key)
        return await poller.await_job(key, polled(poll=poll_of(key), result=None, strategy=Fixed("25s")))

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("first", polled(), wait_timeout=1)
            both = [asyncio.create_task(waits(poller, key)) for key in knew]
            await world.after(10)
            await poller.nudge("b")
            return await asyncio.gather(*both)

    assert [ended.outcome for ended in world.run(main)] == [Outcome.SUCCEEDED] * 2
    assert knew == {"a": ["a"] * 3, "b": ["b"] * 3}
