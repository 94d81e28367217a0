"""The rest of the front door: adding, listing, watching, cancelling, callbacks."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from tarry import Fixed, JobCancelled, JobSpec, Limits, Outcome, Poller, SpecError, StoreError
from tarry.testing import FakeClock, ScriptedJob
from tarry.words import Phase
from tests.pollers import QUEUED, RUNNING, SUCCEEDED, World, polled, spec_of


def checks() -> dict[str, str]:
    """A callable with an importable name."""
    return {"state": "SUCCEEDED"}


def test_adding_creates_and_does_not_poll() -> None:
    """The job is durable at once, with an event; whoever awaits it polls it."""
    world = World([SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            job = await poller.add("orders", polled())
            again = await poller.add("orders", polled())
            await world.after(60)
            return job, again, await poller.get("orders")

    job, again, later = world.run(main)
    assert job == again == later
    assert (job.phase, job.polls, world.job.polls, world.kinds()) == (Phase.WAITING, 0, 0, ["created"])


def test_a_callable_that_cannot_travel_cannot_be_added() -> None:
    """The reason and the way out are said; awaiting it inline is fine."""
    world = World([QUEUED])
    inline = polled(poll=lambda: {"state": "SUCCEEDED"})

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(SpecError, match="cannot be imported"):
                await poller.add("inline", inline)
            await poller.add("named", polled(poll=checks))
            return await poller.await_job("inline", inline), await poller.await_job("named")

    assert {ended.outcome for ended in world.run(main)} == {Outcome.SUCCEEDED}


def test_jobs_are_listed_in_pages_by_what_they_are() -> None:
    """Filters combine, pages follow the order of creation, namespaces are apart."""
    world = World([SUCCEEDED])

    async def main() -> None:
        async with world.poller() as poller, world.poller(namespace="other") as other:
            for number in range(5):
                await poller.add(f"job-{number}", polled(labels={"even": str(number % 2 == 0)}))
            await other.add("job-9", polled())
            await poller.await_job("job-3")
            first = await poller.jobs(limit=2)
            assert [job.key for job in first] == ["job-0", "job-1"]
            assert [job.key for job in await poller.jobs(after=first[-1].id)] == ["job-2", "job-3", "job-4"]
            assert [job.key for job in await poller.jobs(outcomes=[Outcome.SUCCEEDED])] == ["job-3"]
            assert [job.key for job in await poller.jobs(labels={"even": "True"}, phases=[Phase.WAITING])] == [
                "job-0",
                "job-2",
                "job-4",
            ]
            assert [job.key for job in await poller.jobs(prefix="job-4")] == ["job-4"]
            assert [job.key for job in await other.jobs()] == ["job-9"]

    world.run(main)


def test_watching_brings_every_event_once_across_pollers() -> None:
    """From a cursor, as they come, until the job is over; also for one who only watches."""
    world = World([QUEUED, RUNNING, SUCCEEDED])

    async def main() -> tuple[list[Any], list[Any], list[Any]]:
        async with world.poller() as poller, world.poller(on_event=None) as other:
            await poller.add("orders", spec_of())

            async def collect(who: Any, after: tuple[int, int]) -> list[Any]:
                return [event async for event in who.watch("orders", after)]

            near, far, _ = await asyncio.gather(
                collect(poller, (0, 0)), collect(other, (1, 3)), poller.await_job("orders")
            )
            return near, far, await poller.history("orders", after=(1, 4))

    near, far, rest = world.run(main)
    assert [event.seq for event in near] == list(range(1, 8))
    assert far == near[3:]
    assert rest == near[4:]


def test_cancelling_ends_the_job_for_everybody() -> None:
    """The waiters hear of it, nothing is polled afterwards, and a job that is over stays as it ended."""
    world = World([RUNNING])

    async def main() -> Any:
        async with world.poller() as poller, world.poller() as other:
            waiting = asyncio.create_task(poller.await_job("orders", spec_of()))
            await world.after(3)
            job = await other.cancel("orders")
            with pytest.raises(JobCancelled, match="cancelled"):
                await waiting
            assert await other.cancel("orders") == job
            await world.after(30)
            return job

    job = world.run(main)
    assert (job.outcome, job.polls, job.owner) == (Outcome.CANCELLED, 2 + job.reserved, None) or job.polls == 3
    assert world.seconds() == [0, 2]
    assert world.kinds()[-1] == "finished"


def test_cancelling_at_home_is_heard_at_once() -> None:
    """The poller that cancels rouses its own loop: no second passes."""
    world = World([RUNNING])

    async def main() -> float:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", spec_of(strategy=Fixed("1h"))))
            await world.after(3)
            await poller.cancel("orders")
            with pytest.raises(JobCancelled):
                await waiting
            return world.clock.now() - world.began

    assert world.run(main) == 3_000_000


def test_a_callback_that_raises_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, the job goes on, and later events are still told."""
    world = World([QUEUED, SUCCEEDED])
    told: list[str] = []

    def spoil(event: Any) -> None:
        told.append(event.kind)
        raise ValueError("spoiled")

    async def main() -> Any:
        async with world.poller(on_event=spoil) as poller:
            return await poller.await_job("orders", spec_of())

    with caplog.at_level(logging.ERROR, logger="tarry.events"):
        assert world.run(main).outcome is Outcome.SUCCEEDED
    assert told[-1] == "finished"
    assert len(caplog.records) == len(told)


@pytest.mark.parametrize(
    ("poll", "error"),
    [
        (object, "TypeError"),
        (lambda: float("nan"), "ValueError"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: asyncio.Event().wait(), "took too long"),
    ],
    ids=["not JSON", "NaN", "raises", "hangs"],
)
def test_a_callable_that_fails_is_a_failed_poll(poll: Any, error: str) -> None:
    """Whatever it does, the job has a failed poll with the reason, and goes on."""
    world = World([QUEUED])
    turns: list[int] = []

    def sometimes() -> Any:
        turns.append(1)
        return poll() if len(turns) == 1 else {"state": "SUCCEEDED"}

    async def main() -> Any:
        async with world.poller() as poller:
            return await poller.await_job("orders", polled(poll=sometimes))

    assert world.run(main).polls == 2
    (failed,) = [event for event in world.told if event.kind == "poll_failed"]
    assert error in str(failed.data["error"])


def test_a_callable_that_never_ends_hurts_only_its_job() -> None:
    """Others go on; its own next call waits for the last one's end, as a failed poll."""
    release = threading.Event()

    def hang() -> Any:
        release.wait(60)
        return {"state": "SUCCEEDED"}

    async def main() -> tuple[Any, Any]:
        async with Poller("sqlite://", transport=ScriptedJob([200], clock=FakeClock())) as poller:
            limits = Limits(poll_timeout="50ms", min_interval="10ms", max_polls=3)
            slow = polled(poll=hang, strategy=Fixed("10ms"), limits=limits)
            waits = [poller.await_job(f"slow-{number}", slow, raises=False) for number in range(40)]
            quick = poller.await_job("quick", polled(poll=checks))
            *ended, other = await asyncio.gather(*waits, quick)
            return ended, other, (await poller.get("slow-0")).error

    ended, other, error = asyncio.run(main())
    release.set()
    assert {one.outcome for one in ended} == {Outcome.EXHAUSTED}
    assert other.outcome is Outcome.SUCCEEDED
    assert "still runs" in error


@pytest.mark.parametrize("fault", [StopIteration, asyncio.CancelledError, TimeoutError])
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_callable_raises_is_never_taken_for_a_word_of_the_loops(fault: Any, *, is_async: bool) -> None:
    """It is a failed poll that names what was raised."""
    world = World([QUEUED])
    turns: list[int] = []

    def plain() -> Any:
        turns.append(1)
        if len(turns) == 1:
            raise fault
        return {"state": "SUCCEEDED"}

    async def coroutine() -> Any:
        return plain()

    async def main() -> Any:
        async with world.poller() as poller:
            return await poller.await_job("orders", polled(poll=coroutine if is_async else plain))

    assert world.run(main).polls == 2
    (failed,) = [event for event in world.told if event.kind == "poll_failed"]
    named = "RuntimeError" if is_async and fault is StopIteration else fault.__name__
    assert named in str(failed.data["error"])


def test_a_large_answer_to_the_submit_is_kept_whole() -> None:
    """Else the job that was started could not be polled."""
    world = World([SUCCEEDED])
    world.job = ScriptedJob([SUCCEEDED], submit={"jobId": "j1", "log": "x" * 900_000}, clock=world.clock)

    async def main() -> Any:
        async with world.poller() as poller:
            return await poller.await_job("orders", spec_of())

    assert world.run(main).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("fault", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("field", ["poll", "until"])
def test_a_plain_callable_cannot_end_the_process(fault: Any, field: str) -> None:
    """An exit that it raises is its job's failed poll; the others go on."""
    world = World([SUCCEEDED, SUCCEEDED])

    def exits(*_: Any) -> Any:
        raise fault

    async def main() -> Any:
        async with world.poller() as poller:
            quits = polled(**{field: exits}, limits=Limits(max_polls=1))
            return await poller.await_all({"quits": quits, "other": polled()})

    ended = world.run(main)
    assert ended["other"].outcome is Outcome.SUCCEEDED
    assert fault.__name__ in str(ended["quits"])


def test_an_exit_in_an_async_callable_is_a_failed_poll() -> None:
    """It runs on the loop that all jobs share, and that goes on."""
    world = World([SUCCEEDED])

    async def exits() -> Any:
        raise SystemExit(3)

    async def main() -> Any:
        async with world.poller() as poller:
            quits = polled(poll=exits, limits=Limits(max_polls=1))
            return await poller.await_all({"quits": quits, "other": polled()})

    ended = world.run(main)
    assert ended["other"].outcome is Outcome.SUCCEEDED
    assert "SystemExit" in str(ended["quits"])


@pytest.mark.parametrize("fault", [asyncio.CancelledError, StopIteration, LookupError])
def test_what_a_condition_raises_is_a_failed_poll(fault: Any) -> None:
    """Whatever it is, and with its name."""
    world = World([QUEUED, SUCCEEDED])

    def until(seen: dict[str, Any]) -> bool:
        if seen["body"]["state"] == "QUEUED":
            raise fault
        return True

    async def main() -> Any:
        async with world.poller() as poller:
            return await poller.await_job("orders", polled(until=until))

    assert world.run(main).polls == 2
    assert fault.__name__ in str([event.data for event in world.told if event.kind == "poll_failed"])


def test_a_condition_that_never_ends_is_a_failed_poll() -> None:
    """In the time of a call; it does not hold up its own deadline."""
    release = threading.Event()

    def until(seen: dict[str, Any]) -> bool:
        release.wait(60)
        return True

    async def main() -> Any:
        async with Poller("sqlite://", transport=ScriptedJob([SUCCEEDED], clock=FakeClock())) as poller:
            limits = Limits(poll_timeout="500ms", min_interval="10ms", max_polls=2)
            spec = polled(poll=checks, until=until, strategy=Fixed("10ms"), limits=limits)
            return await poller.await_job("orders", spec, raises=False), (await poller.get("orders")).error

    ended, error = asyncio.run(main())
    release.set()
    assert ended.outcome is Outcome.EXHAUSTED
    assert "condition" in error


def test_a_callable_gets_its_arguments_filled_in() -> None:
    """Async or plain; a placeholder alone keeps its type, and a missing value is a failed poll that names it."""
    world = World([QUEUED])
    seen: list[Any] = []

    async def check(number: int, text: str) -> dict[str, str]:
        seen.append((number, text))
        return {"state": "SUCCEEDED"}

    def submit(number: int, text: str) -> dict[str, int]:
        return {"id": number}

    spec = polled(poll=check, submit=submit, input={"n": 7}, args={"number": "{input.n}", "text": "job {key}"})
    lacking = polled(poll=check, input={}, args={"number": "{input.n}", "text": ""}, result=None)

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(TimeoutError):
                await poller.await_job("lacking", lacking, wait_timeout=0)
            assert "input.n" in ((await poller.get("lacking")).error or "")
            return await poller.await_job("orders", spec)

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert seen == [(7, "job orders")]


def test_a_callable_unknown_here_leaves_the_job_to_others(caplog: pytest.LogCaptureFixture) -> None:
    """A stored name imports nothing: the job is watched, not polled, and the log says why."""
    world = World([QUEUED])
    there = JobSpec.model_validate(
        {"poll": {"function": "elsewhere.module:check"}, "until": {"type": "expression", "expression": "body.done"}}
    )
    wrong = JobSpec.model_validate(
        {"poll": {"function": "tests.pollers:QUEUED"}, "until": {"type": "expression", "expression": "body.done"}}
    )

    async def main() -> None:
        async with world.poller() as poller:
            for key, spec in (("there", there), ("wrong", wrong)):
                await poller.add(key, spec)
                with pytest.raises(TimeoutError):
                    await poller.await_job(key, wait_timeout="3s")
                assert (await poller.get(key)).polls == 0

    with caplog.at_level(logging.WARNING, logger="tarry.runtime"):
        world.run(main)
    assert "elsewhere.module" in caplog.text
    assert "tests.pollers" in caplog.text


def test_a_callable_condition_judges_off_the_loop() -> None:
    """A condition of the caller's own may block; one that raises is a failed poll of its job alone."""
    world = World([QUEUED, RUNNING, SUCCEEDED])

    def until(seen: dict[str, Any]) -> bool:
        if seen["body"]["state"] == "RUNNING":
            raise LookupError("spoiled")
        return bool(seen["body"]["state"] == "SUCCEEDED")

    async def main() -> Any:
        async with world.poller() as poller:
            return await poller.await_job("orders", spec_of(until=until))

    assert world.run(main).polls == 3
    assert "spoiled" in str([event.data for event in world.told if event.kind == "poll_failed"])


def test_an_entry_that_is_cancelled_leaves_the_store_closed(tmp_path: Path) -> None:
    """Cancelled while the database opens, the poller closes it again, and its thread ends."""

    async def main() -> None:
        poller = Poller(f"sqlite:///{tmp_path / 'jobs.db'}")
        entering = asyncio.create_task(poller.__aenter__())
        asyncio.get_running_loop().call_soon(entering.cancel)
        with pytest.raises(asyncio.CancelledError):
            await entering
        with pytest.raises(StoreError, match="not open"):
            poller._store.version()

    asyncio.run(main())
