"""The worker: whatever is due in the store is polled, by one of those that run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tarry import Fixed, Limits, Outcome, Request, SpecError, StoreError
from tarry.store import MemoryStore
from tarry.testing import ScriptedJob
from tarry.testing.scripted import Answer
from tests.pollers import FAILED, QUEUED, RUNNING, SUCCEEDED, T, World, polled, spec_of


def knows() -> dict[str, str]:
    """A callable with an importable name."""
    return {"state": "SUCCEEDED"}


def by_key(state_of: Any) -> Any:
    """An answer that is made of the key at the end of the URL, and of how often that key was asked for."""
    asked: dict[str, int] = {}

    def answer(request: Any) -> Any:
        key = request.url.rpartition("/")[2]
        asked[key] = asked.get(key, 0) + 1
        return state_of(key, asked[key])

    return answer


def outcomes(jobs: Any) -> dict[str, str | None]:
    """How each job ended."""
    return {job.key: job.outcome for job in jobs}


def test_what_is_in_the_store_is_polled_until_none_is_left() -> None:
    """Jobs that nobody awaits are submitted, polled and ended, long sleeps and all."""
    world = World([QUEUED, RUNNING, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.add("orders", spec_of(strategy=Fixed("1m")))
            await poller.run(until_idle=True)
            return await poller.get("orders")

    job = world.run(main)
    assert (job.outcome, job.polls, job.output, job.owner) == (Outcome.SUCCEEDED, 3, {"rows": 4211}, None)
    assert world.seconds() == [0, 60, 120]


def test_many_jobs_are_polled_each_at_its_time() -> None:
    """Each is polled by its own strategy, and none waits for another."""
    world = World([by_key(lambda _, turn: SUCCEEDED if turn == 3 else RUNNING)])
    waits = {"fast": 1, "slow": 40}

    async def main() -> Any:
        async with world.poller() as poller:
            for number in range(30):
                for name, seconds in waits.items():
                    await poller.add(f"{name}-{number}", polled(strategy=Fixed(seconds)))
            await poller.run(until_idle=True)
            return await poller.jobs(limit=1000)

    jobs = world.run(main)
    assert {(job.outcome, job.polls) for job in jobs} == {(Outcome.SUCCEEDED, 3)}
    assert world.job.polls == 180
    for job in jobs:
        took = (job.finished_at - job.created_at).total_seconds()
        assert 0 <= took - 2 * waits[job.key.partition("-")[0]] < 4, job.key


def test_the_result_is_fetched_where_nobody_awaits_it(caplog: pytest.LogCaptureFixture) -> None:
    """The worker that saw the success asks for the result; one that cannot be had is left for whoever waits."""
    fetch = Request("GET", "https://api.example.com/results/{key}")
    world = World([SUCCEEDED])
    world.job = ScriptedJob(
        [SUCCEEDED], fetch=[by_key(lambda key, _: {"rows": 7} if key == "good" else 403)], clock=world.clock
    )

    async def main() -> Any:
        async with world.poller() as poller:
            for key in ("good", "bad"):
                await poller.add(key, polled(fetch=fetch, result="body.rows"))
            await poller.run(until_idle=True)
            return await poller.get("good"), await poller.get("bad")

    good, bad = world.run(main)
    assert (good.output, bad.output, bad.outcome) == (7, None, Outcome.SUCCEEDED)
    assert "its result is not available" in caplog.text


def test_a_job_that_comes_later_is_noticed_within_a_second() -> None:
    """Also one that another process stored."""
    world = World([SUCCEEDED])

    async def main() -> None:
        async with world.poller() as poller, world.poller() as other:
            running = asyncio.create_task(poller.run())
            await world.after(100)
            await other.add("orders", polled())
            await world.after(1)
            assert (await other.get("orders")).outcome is Outcome.SUCCEEDED
            running.cancel()

    world.run(main)
    assert 100 <= world.seconds()[0] <= 101


def test_two_that_run_share_the_jobs() -> None:
    """Each job is polled by one of them, at its floor and never twice."""
    world = World([by_key(lambda _, turn: SUCCEEDED if turn == 4 else RUNNING)])

    async def main() -> Any:
        async with world.poller() as one, world.poller() as other:
            for number in range(20):
                await one.add(f"job-{number}", polled(strategy=Fixed("1m")))
            await asyncio.gather(one.run(until_idle=True), other.run(until_idle=True))
            return await one.jobs()

    jobs = world.run(main)
    assert {(job.outcome, job.polls) for job in jobs} == {(Outcome.SUCCEEDED, 4)}
    assert world.job.polls == 80


def test_the_jobs_of_one_that_died_are_taken_over() -> None:
    """When its lease has ended, another goes on; a permit that may have been used counts as a poll."""
    world = World([by_key(lambda _, turn: SUCCEEDED if turn == 30 else RUNNING)])

    async def main() -> Any:
        mortal = Mortal(world)
        dying = await world.poller(transport=mortal, offload=mortal.offload).__aenter__()
        async with world.poller() as poller:
            for number in range(20):
                await poller.add(f"job-{number}", polled(strategy=Fixed("2s"), limits=Limits(max_polls=100)))
            running = asyncio.create_task(dying.run())
            await world.after(21)
            mortal.dead = True
            before = world.job.polls
            await world.after(5)
            assert world.job.polls == before
            await poller.run(until_idle=True)
            assert not running.done()
            return await poller.jobs()

    jobs = world.run(main)
    assert {job.outcome for job in jobs} == {Outcome.SUCCEEDED}
    assert world.job.polls == 600
    assert all(30 <= job.polls <= 31 for job in jobs)


class Mortal:
    """The store and the service as a process sees them; once it is dead, nothing it does reaches either."""

    def __init__(self, world: World) -> None:
        self.dead = False
        self._job = world.job

    async def offload(self, work: Any) -> Any:
        """A store call."""
        return work() if not self.dead else await asyncio.Event().wait()

    async def send(self, request: Any) -> Any:
        """A call of the service."""
        return await self._job.send(request) if not self.dead else await asyncio.Event().wait()

    async def aclose(self) -> None:
        """Nothing to close."""


def test_a_job_that_is_awaited_and_run_is_one() -> None:
    """Whoever awaits a job joins the loop that drives it, and the other way round."""
    world = World([QUEUED, RUNNING, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            running = asyncio.create_task(poller.run(until_idle=True))
            ended = await poller.await_job("orders", polled())
            await poller.add("more", polled())
            await world.after(1)
            more = await poller.await_job("more")
            await running
            return ended, more

    ended, more = world.run(main)
    assert (ended.outcome, ended.polls, more.outcome) == (Outcome.SUCCEEDED, 3, Outcome.SUCCEEDED)


def test_stopped_it_gives_everything_back_at_once() -> None:
    """A cancelled `run` leaves every job free, its due time as it was, and no permit spent."""
    world = World([RUNNING])

    async def main() -> Any:
        async with world.poller() as poller:
            for number in range(10):
                await poller.add(f"job-{number}", polled(strategy=Fixed("20s")))
            running = asyncio.create_task(poller.run())
            await world.after(5)
            held = [job.owner for job in await poller.jobs()]
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            await world.after(0.1)
            return held, await poller.jobs()

    held, jobs = world.run(main)
    assert None not in held
    assert {(job.owner, job.polls, job.reserved) for job in jobs} == {(None, 1, 0)}
    assert {(job.next_poll_at - job.created_at).total_seconds() for job in jobs} == {20}


def test_closing_the_poller_ends_the_run() -> None:
    """`run` returns, the sleeping jobs keep their due times, and it takes no second."""
    world = World([RUNNING])

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.add("orders", polled(strategy=Fixed("5m")))
            await poller.add("reports", polled(strategy=Fixed("25s")))
            running = asyncio.create_task(poller.run())
            await world.after(1)
            stopped = world.clock.now()
        took = world.clock.now() - stopped
        await running
        async with world.poller() as poller:
            return took, await poller.jobs()

    took, jobs = world.run(main)
    assert took < 1_000_000
    assert [(job.next_poll_at - job.created_at).total_seconds() for job in jobs] == [300, 25]
    assert {(job.owner, job.reserved) for job in jobs} == {(None, 0)}


def test_a_job_with_callables_of_others_is_left_to_them(caplog: pytest.LogCaptureFixture) -> None:
    """It is not claimed, said once, and hinders nobody; `until_idle` does not wait for it."""
    world = World([SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.add("known", polled(poll=knows))
            await poller.add("foreign", polled(poll=knows, strategy=Fixed("1h")))
            rename(world, "foreign")
            with caplog.at_level(logging.WARNING, "tarry.worker"):
                await poller.run(until_idle=True)
                await poller.run_once()
            return await poller.get("known"), await poller.get("foreign")

    known, foreign = world.run(main)
    assert (known.outcome, foreign.outcome, foreign.polls) == (Outcome.SUCCEEDED, None, 0)
    assert [line for line in caplog.messages if "left alone" in line] == [
        "job 'foreign' is left alone: elsewhere:knows is not known here; import elsewhere, or pass the spec with the callable"
    ]


def rename(world: World, key: str) -> None:
    """As if another program had stored the job: its callable has another module's name."""
    with world.store._database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO tarry_spec SELECT 'elsewhere', replace(s.json, ?, 'elsewhere:') FROM tarry_spec s "
            "JOIN tarry_job j ON j.spec = s.hash WHERE j.key = ?",
            (f"{__name__}:", key),
        )
        connection.exec_driver_sql("UPDATE tarry_job SET spec = 'elsewhere' WHERE key = ?", (key,))


def test_a_damaged_job_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Said once; the others are polled, and the row stays as it is."""
    world = World([SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            for key in ("bad-row", "bad-state", "good"):
                await poller.add(key, polled())
            with world.store._database.write() as connection:
                connection.exec_driver_sql("UPDATE tarry_job SET phase = 'nowhere' WHERE key = 'bad-row'")
                connection.exec_driver_sql("UPDATE tarry_job SET state = '{' WHERE key = 'bad-state'")
            await poller.run(until_idle=True)
            await poller.run_once()
            return await poller.jobs()

    assert outcomes(world.run(main)) == {"good": Outcome.SUCCEEDED}
    assert [
        record.levelname for record in caplog.records if record.name == "tarry.worker" or record.module == "backlog"
    ] == ["ERROR", "WARNING"]


def test_one_job_that_breaks_hinders_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """A fault of ours in one job is logged; that job is given back and the others go on."""
    world = World([by_key(lambda key, turn: broken() if key == "bad" and turn == 1 else SUCCEEDED)])

    def broken() -> Any:
        raise ZeroDivisionError

    async def main() -> Any:
        async with world.poller() as poller:
            for key in ("bad", "good"):
                await poller.add(key, polled())
            await poller.run_once()
            first = await poller.jobs()
            await poller.run(until_idle=True)
            return first, await poller.jobs()

    first, last = world.run(main)
    assert outcomes(first) == {"bad": None, "good": Outcome.SUCCEEDED}
    assert [(job.owner, job.reserved) for job in first] == [(None, 0)] * 2
    assert outcomes(last) == {"bad": Outcome.SUCCEEDED, "good": Outcome.SUCCEEDED}
    assert "cannot be driven here" in caplog.text


def test_other_namespaces_are_left_alone() -> None:
    """A worker is one of its namespace."""
    world = World([SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller, world.poller(namespace="other") as other:
            await other.add("orders", polled())
            await poller.run(until_idle=True)
            return await other.get("orders")

    assert world.run(main).polls == 0


def test_one_round_does_what_is_due_and_gives_it_back() -> None:
    """`run_once` says how many jobs it looked after, and leaves what is not due."""
    world = World([RUNNING])

    async def main() -> Any:
        async with world.poller() as poller:
            for number in range(5):
                await poller.add(f"job-{number}", polled(strategy=Fixed("3s")))
            await poller.add("later", polled(limits=Limits(initial_delay="1m")))
            counts = [await poller.run_once(3), await poller.run_once(), await poller.run_once()]
            await world.after(3)
            return [*counts, await poller.run_once()], await poller.jobs()

    counts, jobs = world.run(main)
    assert counts == [3, 2, 0, 5]
    assert [job.polls for job in jobs] == [2] * 5 + [0]
    assert {(job.owner, job.reserved) for job in jobs} == {(None, 0)}


def test_a_round_is_of_one_job_at_least() -> None:
    """A limit that means nothing is refused."""
    world = World([RUNNING])

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(SpecError, match="limit"):
                await poller.run_once(0)

    world.run(main)


def test_a_tick_is_one_step_for_whoever_owns_the_schedule() -> None:
    """It polls when the job is due, says when to come again, and in the end the outcome."""
    world = World([QUEUED, RUNNING, SUCCEEDED])

    async def main() -> list[Any]:
        steps = []
        async with world.poller() as poller:
            await poller.add("orders", spec_of(strategy=Fixed("1m")))
            for _ in range(10):
                steps.append(await poller.tick("orders"))
                if steps[-1].outcome is not None:
                    return steps
                assert (await poller.get("orders")).owner is None
                await world.after(30)
        return steps

    steps = world.run(main)
    assert world.seconds() == [0, 60, 120]
    assert (steps[-1].outcome, steps[-1].next_at) == (Outcome.SUCCEEDED, None)
    assert all(step.is_mine for step in steps)
    assert steps[0].next_at == steps[1].next_at


def test_a_tick_of_a_job_that_another_holds_is_not_mine() -> None:
    """It polls nothing, and neither does one of a job with callables of others."""
    world = World([RUNNING])

    async def main() -> Any:
        async with world.poller() as poller, world.poller() as other:
            waiting = asyncio.create_task(poller.await_job("orders", polled()))
            await world.after(1)
            held = await other.tick("orders")
            own = await poller.tick("orders")
            waiting.cancel()
            await poller.add("foreign", polled(poll=knows))
            rename(world, "foreign")
            return held, own, await other.tick("foreign")

    for step in world.run(main):
        assert (step.is_mine, step.outcome) == (False, None)
    assert world.job.polls == 1


def test_a_round_is_cut_short_without_a_trace() -> None:
    """Cancelled while its polls are under way, it gives the jobs back; the answers count."""
    world = World([Answer(body=RUNNING, delay=3_000_000)])

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.add("orders", polled())
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await poller.run_once()
            await world.after(5)
            return await poller.get("orders")

    job = world.run(main)
    assert (job.owner, job.polls, job.reserved, job.status) == (None, 1, 0, "RUNNING")


def test_an_old_end_is_forgotten_and_nothing_else() -> None:
    """`prune` takes what has been over for long, with its events and its spec, in any number."""
    world = World([by_key(lambda key, _: SUCCEEDED if key.startswith("done") else FAILED if key == "bad" else RUNNING)])

    async def main() -> Any:
        async with world.poller() as poller, world.poller(namespace="other") as other:
            for number in range(12):
                await poller.add(f"done-{number}", polled(labels={"n": str(number)}))
            for key in ("bad", "live"):
                await poller.add(key, polled())
            await other.add("done", polled())
            await poller.run_once()
            await other.run_once()
            early = await poller.prune("1m")
            await world.after(61)
            await poller.add("done-late", polled())
            await poller.run_once()
            return early, await poller.prune("1m"), await poller.jobs(), await other.jobs()

    early, pruned, left, others = world.run(main)
    assert (early, pruned) == (0, 13)
    assert [job.key for job in left] == ["live", "done-late"]
    assert [job.key for job in others] == ["done"]
    with world.store._database.read() as connection:
        events = connection.exec_driver_sql("SELECT DISTINCT job FROM tarry_event").scalars().all()
        specs = connection.exec_driver_sql("SELECT count(*) FROM tarry_spec").scalar()
    assert (len(events), specs) == (3, 1)


def test_a_worker_forgets_what_it_is_told_not_to_keep(caplog: pytest.LogCaptureFixture) -> None:
    """While it runs, or makes one round; by itself it keeps all. What a store cannot do now, it does later."""
    world = World([SUCCEEDED])

    async def ended() -> None:
        async with world.poller() as poller:
            for number in range(700):
                await poller.add(f"done-{number}", polled(limits=Limits(min_interval="10ms")))
            await poller.run(until_idle=True)
            await world.after(3 * 3600)
            await poller.add("fresh", polled())
            await poller.run(until_idle=True)

    async def kept(**options: Any) -> list[int]:
        async with world.poller(**options) as poller, asyncio.TaskGroup() as group:
            running = group.create_task(poller.run())
            counts = []
            for _ in range(4):
                await world.after(40)
                counts.append(len(await poller.jobs(limit=1000)))
            running.cancel()
            return counts

    async def main() -> list[list[int]]:
        await ended()
        by_itself, told = await kept(), await kept(keep_finished="2h")
        await world.after(3 * 3600)
        async with world.poller(keep_finished="2h") as poller:
            await poller.run_once()
            return [by_itself, told, [len(await poller.jobs())]]

    assert world.run(main) == [[701] * 4, [1] * 4, [0]]
    assert not caplog.messages


def test_a_store_that_cannot_forget_stops_no_worker(caplog: pytest.LogCaptureFixture) -> None:
    """It is said, and tried again a minute later; the jobs are polled."""
    world = World([RUNNING, SUCCEEDED])

    class Grudging(MemoryStore):
        def prune(self, *_: Any) -> Any:
            raise StoreError("not today")

    async def main() -> Any:
        async with world.poller(store=Grudging(), keep_finished="1m") as poller:
            await poller.add("orders", polled(strategy=Fixed("100s")))
            await poller.run(until_idle=True)
            return await poller.get("orders")

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert caplog.messages == ["finished jobs cannot be forgotten for now: not today"] * 2


@pytest.mark.parametrize("keep", ["59s", "soon", -1])
def test_a_time_to_keep_that_is_none_is_refused(keep: Any) -> None:
    """A minute at least: whoever waits for a job has to hear of its end."""
    with pytest.raises(SpecError, match=r"Poller\.keep_finished"):
        World([RUNNING]).poller(keep_finished=keep)


@pytest.mark.parametrize("age", ["-1s", "soon", None])
def test_an_age_that_is_none_is_refused(age: Any) -> None:
    """The argument is named."""
    world = World([RUNNING])

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(SpecError, match="older_than"):
                await poller.prune(age)

    world.run(main)


@pytest.mark.parametrize("meanwhile", [False, True], ids=["afterwards", "meanwhile"])
def test_a_worker_that_becomes_one_too_late_is_none(meanwhile: bool) -> None:
    """Asked for once the poller closes, or just before, it leaves no lease and no rounds behind."""
    world = World([RUNNING])
    gate = asyncio.Event()
    gate.set()

    async def slowly(work: Callable[[], T]) -> T:
        await gate.wait()
        return work()

    async def later() -> None:
        await world.after(2)
        gate.set()

    async def main() -> set[str]:
        async with world.poller(offload=slowly) as poller:
            engine, begun = poller._inside.engine, []
            if meanwhile:
                gate.clear()
                begun = [asyncio.create_task(engine.ready()), asyncio.create_task(later())]
                await world.after(1)
        await asyncio.gather(*begun)
        await engine.ready()
        return {each.get_name() for each in asyncio.all_tasks()}

    assert "tarry rounds" not in world.run(main)
    database = world.store._database
    with database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM tarry_worker WHERE released = 0").scalar() == 0
