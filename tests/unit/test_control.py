"""Commands to a job that goes on: nudge, update, pause and resume, wherever it is held."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tarry import Fixed, Job, JobTimedOut, Limits, Outcome, StoreError, WaitTimeout
from tarry.testing import Answer
from tarry.words import SECOND
from tests.pollers import QUEUED, RUNNING, SUCCEEDED, World, polled, spec_of

HOURLY = polled(strategy=Fixed("1h"))


async def awaited(world: World, spec: Any, control: Any, seconds: float = 3) -> Any:
    """The result of a job awaited in one process, while `control` acts in another after some seconds."""
    async with world.poller() as poller, world.poller() as other:
        waiting = asyncio.create_task(poller.await_job("orders", spec, raises=False))
        await world.after(seconds)
        await control(other)
        return await waiting


@pytest.mark.parametrize("interval", ["5s", "20s", "1h"], ids=["reserved", "held", "given up"])
@pytest.mark.parametrize("is_here", [True, False], ids=["here", "elsewhere"])
def test_a_nudge_brings_the_next_poll_forward(interval: str, *, is_here: bool) -> None:
    """At once in the process that polls, within a second in another; also where nobody holds the job."""
    world = World([QUEUED, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller, world.poller() as other:
            waiting = asyncio.create_task(poller.await_job("orders", polled(strategy=Fixed(interval))))
            await world.after(3)
            await (poller if is_here else other).nudge("orders")
            return await waiting, await poller.get("orders")

    ended, job = world.run(main)
    first, second = world.seconds()
    assert (ended.polls, first) == (2, 0)
    assert 3 <= second <= (3.01 if is_here else 4)
    assert [tick.wait_source for tick in job.timeline] == ["nudge", None]
    assert world.kinds().count("nudged") == 1


def test_a_nudge_never_goes_through_the_floor() -> None:
    """However many there are."""
    world = World([QUEUED, QUEUED, SUCCEEDED])
    spec = polled(strategy=Fixed("1h"), limits=Limits(min_interval="4s"))

    async def main() -> Any:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", spec))
            for _ in range(60):
                await world.after(0.15)
                await poller.nudge("orders")
            return await waiting

    world.run(main)
    assert world.seconds() == [0, 4, 8]


def test_a_nudge_does_not_go_through_a_429() -> None:
    """The wait that a busy service asked for is a lower bound for everybody."""
    world = World([Answer(429, headers={"Retry-After": "30"}), SUCCEEDED])

    async def nudge(poller: Any) -> None:
        await poller.nudge("orders")

    world.run(lambda: awaited(world, HOURLY, nudge))
    assert world.seconds() == [0, 30]


def test_a_nudge_during_a_poll_asks_for_another_one() -> None:
    """The answer on its way may be older than what the nudge is about; it is judged all the same."""
    world = World([Answer(delay=5 * SECOND, body=RUNNING), SUCCEEDED])

    async def nudge(poller: Any) -> None:
        await poller.nudge("orders")

    ended = world.run(lambda: awaited(world, HOURLY, nudge))
    assert (ended.polls, world.seconds()) == (2, [0, 5])
    assert [event.data["to"] for event in world.told if event.kind == "status"] == ["RUNNING", "SUCCEEDED"]


def test_a_nudge_moves_a_job_that_nobody_awaits() -> None:
    """It is due now for whoever comes."""
    world = World([QUEUED, SUCCEEDED])

    async def main() -> tuple[Job, Any]:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", HOURLY, wait_timeout=0)
            await world.after(10)
            job = await poller.nudge("orders")
            return job, await poller.await_job("orders", wait_timeout=0)

    job, ended = world.run(main)
    assert job.next_poll_at is not None
    assert job.next_poll_at.timestamp() * SECOND == world.began + 10 * SECOND
    assert (ended.outcome, world.seconds()) == (Outcome.SUCCEEDED, [0, 10])


@pytest.mark.parametrize("command", ["nudge", "pause", "resume", "update", "cancel"])
def test_a_job_that_is_over_stays_as_it_ended(command: str) -> None:
    """A late command says how the job stands, and adds no event."""
    world = World([SUCCEEDED])

    async def main() -> tuple[Any, Any]:
        async with world.poller() as poller:
            await poller.await_job("orders", polled())
            options = {"limits": Limits(max_polls=9)} if command == "update" else {}
            return await poller.get("orders"), await getattr(poller, command)("orders", **options)

    before, after = world.run(main)
    assert before == after
    assert world.kinds()[-1] == "finished"


def test_a_command_that_comes_during_a_poll_loses_no_answer() -> None:
    """What the poll saw is judged again on what the command made of the job: one poll, one success."""
    world = World([Answer(delay=5 * SECOND, body=SUCCEEDED)])

    async def control(poller: Any) -> None:
        await poller.update("orders", strategy=Fixed("9s"), limits=Limits(max_polls=7))
        await poller.pause("orders")

    ended = world.run(lambda: awaited(world, polled(limits=Limits(max_polls=1)), control))
    assert (ended.outcome, ended.polls, world.job.polls) == (Outcome.SUCCEEDED, 1, 1)
    assert (ended.output, ended.last.body) == (SUCCEEDED["result"], SUCCEEDED)
    assert [kind for kind in world.kinds() if kind != "status"] == ["created", "spec_changed", "paused", "finished"]
    assert [event.seq for event in world.told] == list(range(1, 6))


@pytest.mark.parametrize("is_taken", [False, True], ids=["awaited", "taken"])
def test_a_pause_that_comes_during_a_poll_is_heeded(*, is_taken: bool) -> None:
    """The poll under way is the last, also where the next would follow within a second; then the job is given up."""
    world = World([QUEUED, Answer(delay=5 * SECOND, body=RUNNING)])
    spec = polled(strategy=Fixed("0.5s"), limits=Limits(min_interval="0.5s"))

    async def main() -> Any:
        async with world.poller() as poller, world.poller() as other:
            await other.add("orders", spec)
            work = poller.run() if is_taken else poller.await_job("orders")
            working = asyncio.create_task(work)
            await world.after(3)
            await other.pause("orders")
            await world.after(60)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            (listed,) = await other.jobs()
            return listed.polls, listed.owner

    assert world.run(main) == (2, None)


def test_a_look_that_failed_is_made_again() -> None:
    """Also where nothing changes after it: the pause that it did not come to is heard of by the next round."""
    world = World([RUNNING])

    async def main() -> int:
        async with world.poller() as poller, world.poller() as other:
            waiting = asyncio.create_task(poller.await_job("orders", polled(strategy=Fixed("4s"))))
            await world.after(2)
            await other.pause("orders")
            moved = world.store.moved

            def broken(_: Any) -> list[int]:
                world.store.moved = moved  # type: ignore[method-assign]  # one call of it fails
                raise StoreError("lost")

            world.store.moved = broken  # type: ignore[method-assign]  # one call of it fails
            with pytest.raises(StoreError):
                await poller._inside.engine._look()
            await world.after(60)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return world.job.polls

    assert world.run(main) == 1


def test_a_command_that_came_during_a_poll_is_not_looked_for_again() -> None:
    """A worker reads the row of the job once for it, and not with each change of another job."""
    world = World([QUEUED, Answer(delay=5 * SECOND, body=RUNNING), RUNNING])
    read: list[Any] = []

    async def noting(work: Any, /) -> Any:
        if work.func.__name__ == "rows":
            read.append(work)
        return work()

    async def main() -> None:
        async with world.poller(offload=noting) as poller, world.poller() as other:
            await other.add("orders", polled())
            working = asyncio.create_task(poller.run())
            await world.after(3)
            await other.nudge("orders")
            await world.after(6)
            read.clear()
            for number in range(20):
                await other.add(f"more-{number}", HOURLY)
                await world.after(1)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    world.run(main)
    assert not read


def test_a_command_that_comes_during_a_submit_loses_no_answer() -> None:
    """The submit is not sent twice, and the job goes on with what was changed."""
    world = World([QUEUED, SUCCEEDED])
    world.job = type(world.job)(
        [QUEUED, SUCCEEDED], submit=[Answer(201, {"jobId": "j1"}, delay=5 * SECOND)], clock=world.clock
    )

    async def control(poller: Any) -> None:
        await poller.update("orders", strategy=Fixed("9s"))

    ended = world.run(lambda: awaited(world, spec_of(), control))
    assert (ended.outcome, world.job.submits, world.seconds()) == (Outcome.SUCCEEDED, 1, [5, 14])


def test_a_command_between_judging_and_a_local_end_is_heard() -> None:
    """A job about to end by its limits goes on when the limits were raised a moment before."""
    world = World([Answer(delay=5 * SECOND, body=RUNNING), SUCCEEDED])

    async def control(poller: Any) -> None:
        await poller.update("orders", limits=Limits(max_polls=2))

    ended = world.run(lambda: awaited(world, polled(limits=Limits(max_polls=1)), control))
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 2)


def test_a_strategy_is_changed_from_the_next_poll_on() -> None:
    """The wait under way stays as it was; an event says which fields were changed."""
    world = World([QUEUED, QUEUED, QUEUED, SUCCEEDED])

    async def control(poller: Any) -> None:
        await poller.update("orders", strategy=Fixed("20s"))

    world.run(lambda: awaited(world, polled(strategy=Fixed("5s")), control))
    assert world.seconds() == [0, 5, 25, 45]
    (change,) = [event for event in world.told if event.kind == "spec_changed"]
    assert change.data == {"fields": ["strategy.interval"]}


def test_a_change_that_changes_nothing_is_no_command() -> None:
    """No event, no write."""
    world = World([QUEUED])

    async def main() -> tuple[Job, Job]:
        async with world.poller() as poller:
            before = await poller.add("orders", polled())
            return before, await poller.update("orders", strategy=Fixed("2s"), limits=Limits())

    before, after = world.run(main)
    assert before == after
    assert world.kinds() == ["created"]


def test_a_deadline_is_counted_from_the_creation() -> None:
    """A shorter one cuts the wait under way to a closing poll."""
    world = World([RUNNING])

    async def control(poller: Any) -> None:
        job = await poller.update("orders", limits=Limits(total_duration="100s"))
        assert (job.deadline - job.created_at).total_seconds() == 100

    ended = world.run(lambda: awaited(world, HOURLY, control))
    assert (ended.outcome, world.seconds()) == (Outcome.TIMED_OUT, [0, 90])


def test_a_later_deadline_takes_the_place_of_a_closing_poll() -> None:
    """The poll that would have been the last is not; the job goes on."""
    world = World([RUNNING, RUNNING, SUCCEEDED])

    async def control(poller: Any) -> None:
        await poller.update("orders", limits=Limits(total_duration="1h"))

    spec = polled(strategy=Fixed("30s"), limits=Limits(total_duration="20s"))
    ended = world.run(lambda: awaited(world, spec, control))
    assert (ended.outcome, world.seconds()) == (Outcome.SUCCEEDED, [0, 18, 48])


@pytest.mark.parametrize(
    ("answer", "outcome"), [(RUNNING, Outcome.TIMED_OUT), (SUCCEEDED, Outcome.SUCCEEDED)], ids=["running", "done"]
)
def test_a_deadline_that_has_passed_leaves_one_closing_poll(answer: Any, outcome: Outcome) -> None:
    """Now, although the job was polled after that deadline; what it sees counts."""
    world = World([RUNNING, RUNNING, answer])

    async def control(poller: Any) -> None:
        await poller.update("orders", limits=Limits(total_duration="1s"))

    ended = world.run(lambda: awaited(world, polled(strategy=Fixed("8s")), control, 10))
    assert (ended.outcome, ended.polls) == (outcome, 3)
    assert 10 <= world.seconds()[-1] <= 11


@pytest.mark.parametrize("interval", ["4s", "20s", "1h"], ids=["reserved", "held", "given up"])
def test_a_limit_that_is_spent_leaves_no_poll(interval: str) -> None:
    """Not even one that was permitted already and has not left: the job is exhausted now."""
    world = World([RUNNING])

    async def control(poller: Any) -> None:
        await poller.update("orders", limits=Limits(max_polls=1))

    ended = world.run(lambda: awaited(world, polled(strategy=Fixed(interval)), control))
    assert (ended.outcome, ended.polls, world.job.polls) == (Outcome.EXHAUSTED, 1, 1)
    assert ended.elapsed.total_seconds() <= 4


def test_a_limit_below_a_poll_on_its_way_counts_it() -> None:
    """Its answer is judged, and it is the last."""
    world = World([RUNNING, Answer(delay=3 * SECOND, body=RUNNING)])

    async def control(poller: Any) -> None:
        job = await poller.update("orders", limits=Limits(max_polls=1))
        assert (job.polls, job.reserved, job.max_polls) == (1, 1, 2)

    ended = world.run(lambda: awaited(world, polled(), control))
    assert (ended.outcome, ended.polls, world.job.polls) == (Outcome.EXHAUSTED, 2, 2)


def test_a_callable_that_cannot_travel_is_kept_through_an_update() -> None:
    """The process that brought it goes on with it."""
    world = World([QUEUED])
    turns: list[int] = []

    def poll() -> dict[str, str]:
        turns.append(1)
        return {"state": "SUCCEEDED" if len(turns) == 4 else "RUNNING"}

    async def control(poller: Any) -> None:
        await poller.update("orders", strategy=Fixed("20s"))

    assert world.run(lambda: awaited(world, polled(poll=poll), control)).elapsed.total_seconds() == 24


@pytest.mark.parametrize("interval", ["4s", "20s", "40s"], ids=["reserved", "held", "given up"])
def test_a_paused_job_is_not_polled(interval: str) -> None:
    """Whoever awaits it waits on; it goes on where it was, and what passed is due at once."""
    world = World([RUNNING, SUCCEEDED])
    spec = polled(strategy=Fixed(interval), limits=Limits(total_duration="9h"))

    async def control(poller: Any) -> None:
        job = await poller.pause("orders")
        assert job.paused
        assert await poller.pause("orders") == job
        await world.after(60)
        (listed,) = await poller.jobs()
        assert (listed.paused, listed.polls, listed.owner, listed.reserved) == (True, 1, None, 0)
        with pytest.raises(WaitTimeout):
            await poller.await_job("orders", wait_timeout=0)
        assert not (await poller.resume("orders")).paused

    ended = world.run(lambda: awaited(world, spec, control))
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 2)
    assert 63 <= world.seconds()[-1] <= 64
    assert [kind for kind in world.kinds() if kind in {"paused", "resumed"}] == ["paused", "resumed"]


def test_a_paused_job_ends_only_when_it_goes_on() -> None:
    """Its deadline passes meanwhile; then it has one closing poll."""
    world = World([RUNNING])

    async def control(poller: Any) -> None:
        await poller.pause("orders")
        await world.after(100)
        assert (await poller.get("orders")).outcome is None
        await poller.resume("orders")

    spec = polled(strategy=Fixed("8s"), limits=Limits(total_duration="20s"))
    ended = world.run(lambda: awaited(world, spec, control))
    assert (ended.outcome, ended.polls) == (Outcome.TIMED_OUT, 2)
    assert 103 <= world.seconds()[-1] <= 104


def test_a_nudge_to_a_paused_job_waits_until_it_goes_on() -> None:
    """Paused is stronger; but the nudge is not forgotten."""
    world = World([RUNNING, SUCCEEDED])

    async def control(poller: Any) -> None:
        await poller.pause("orders")
        await poller.nudge("orders")
        await world.after(60)
        assert world.job.polls == 1
        await poller.resume("orders")

    assert world.run(lambda: awaited(world, HOURLY, control)).polls == 2
    assert world.seconds()[-1] < 65


def test_a_paused_job_can_be_cancelled() -> None:
    """At once, for everybody who waits."""
    world = World([RUNNING])

    async def control(poller: Any) -> None:
        await poller.pause("orders")
        assert not (await poller.cancel("orders")).paused

    assert world.run(lambda: awaited(world, HOURLY, control)).outcome is Outcome.CANCELLED


def test_a_pause_before_anything_left_sends_nothing() -> None:
    """A job that was added and paused is neither submitted nor polled."""
    world = World([SUCCEEDED])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.add("orders", spec_of())
            await poller.pause("orders")
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", wait_timeout="1m")
            assert world.job.requests == []
            await poller.resume("orders")
            await poller.await_job("orders")

    world.run(main)
    assert (world.job.submits, world.job.polls) == (1, 1)


def test_another_callers_spec_is_adopted_in_the_process_that_polls() -> None:
    """A changed spec goes the way of a command: the holder has it within a second, with one event."""
    world = World([QUEUED, QUEUED, QUEUED, SUCCEEDED])

    async def main() -> None:
        async with world.poller() as poller, world.poller() as other:
            waiting = asyncio.create_task(poller.await_job("orders", polled()))
            await world.after(3)
            with pytest.raises(WaitTimeout):
                await other.await_job("orders", polled(strategy=Fixed("10s")), wait_timeout=0)
            await waiting

    world.run(main)
    assert world.seconds() == [0, 2, 4, 14]
    assert world.kinds().count("spec_changed") == 1


def test_a_job_that_never_stands_still_is_said_so() -> None:
    """A command that loses every race gives up with an error, instead of trying for ever."""
    world = World([QUEUED])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.add("orders", polled())
            world.store.command = lambda _: False  # type: ignore[method-assign]  # always too late
            with pytest.raises(StoreError, match="faster"):
                await poller.nudge("orders")

    world.run(main)


def test_a_command_heard_at_the_end_of_patience_changes_no_wait() -> None:
    """A deadline moved while nobody looks is there for the next one."""
    world = World([RUNNING])

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", HOURLY, wait_timeout=0)
            await poller.update("orders", limits=Limits(total_duration="5s"))
            await world.after(60)
            with pytest.raises(JobTimedOut):
                await poller.await_job("orders")

    world.run(main)
    assert world.seconds() == [0, 60]
