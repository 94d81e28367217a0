"""S22 to S28: what is committed when, who may write, and what a restart finds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import text

from tarry import (
    CheckpointError,
    Fixed,
    KeyConflict,
    Outcome,
    Poller,
    Request,
    ResultUnavailable,
    SubmitUnknown,
)
from tarry.testing import Answer
from tarry.words import HOUR, SECOND, ErrorKind
from tests.worlds import DONE, RUNNING, MakeScene, Scene, spec_of

POST = Request("POST", "https://api.example.com/jobs", json={"dataset": "orders"})
POLL = Request("GET", "https://api.example.com/jobs/{submit.body.jobId}")


def test_s22_a_checkpoint_is_committed_before_every_sleep(scene: MakeScene) -> None:
    """With its events: whatever another poller reads while the job sleeps is what the last poll saw."""
    world = scene(RUNNING, {"state": "QUEUED"}, DONE)
    seen: list[tuple[int, str | None, str]] = []

    async def main() -> None:
        async with world.poller() as poller, world.poller(on_event=None) as other:
            waiting = asyncio.create_task(poller.await_job("orders", spec_of(strategy=Fixed("10s"))))
            for second in (1, 11):
                await world.at(second)
                job = await other.get("orders")
                seen.append((job.polls, job.status, (await other.history("orders"))[-1].kind))
            await waiting

    world.run(main)
    assert seen == [(1, "RUNNING", "status"), (2, "QUEUED", "status")]


def test_s22_an_outcome_is_committed_before_anyone_hears_and_once(scene: MakeScene) -> None:
    """Whoever is told finds it stored, and a later wait returns it without a poll."""
    world = scene(RUNNING, DONE)
    stored: list[Any] = []

    def told(event: Any) -> None:
        if event.kind == "finished":
            stored.append(world.store.find("default", event.key).outcome)

    async def main() -> list[Any]:
        async with world.poller(on_event=told) as poller:
            return [await poller.await_job("orders", spec_of()), await poller.await_job("orders", spec_of())]

    first, again = world.run(main)
    assert (stored, first) == ([Outcome.SUCCEEDED], again)
    assert world.job.polls == 2


@pytest.mark.parametrize(("down", "seconds"), [(20, [0, 60]), (300, [0, 300])], ids=["due later", "overdue"])
def test_s23_a_restart_polls_at_the_stored_time(durable: MakeScene, down: float, seconds: list[float]) -> None:
    """Not sooner than due; overdue means now, once."""
    world = durable(RUNNING, DONE)

    async def main() -> Any:
        await world.process().killed_at(5, "orders", spec_of(strategy=Fixed("60s")))
        await world.at(down)
        return await (await world.process().awaiting("orders"))

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert world.seconds() == seconds


def test_s24_several_waiters_share_one_loop(scene: MakeScene) -> None:
    """In one process and in two: one polls, all hear of the outcome within a second."""
    world = scene(RUNNING, RUNNING, DONE)

    async def one(poller: Poller) -> float:
        await poller.await_job("orders", spec_of())
        return world.elapsed()

    async def main() -> list[float]:
        async with world.poller() as first, world.poller() as second:
            return await asyncio.gather(*(one(poller) for poller in (first, first, second, second)))

    heard = world.run(main)
    assert world.seconds() == [0, 2, 4]
    assert max(heard) <= 5


def test_s24_a_process_that_lost_its_lease_writes_nothing(scene: MakeScene) -> None:
    """What it saw is refused; the one that took the job ends it, and both hear the same."""
    world = scene(Answer(200, {"state": "FAILED"}, delay=20 * SECOND), DONE)

    async def main() -> list[Any]:
        async with world.poller() as slow, world.poller() as quick:
            waiting = asyncio.create_task(slow.await_job("orders", spec_of(), raises=False))
            await world.at(1)
            world.store.bury(0, world.clock.now() + HOUR)  # as another worker would declare it dead
            return [await quick.await_job("orders"), await waiting]

    first, second = world.run(main)
    assert first == second
    assert first.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("how", ["timeout", "cancel", "close"])
def test_s25_leaving_leaves_the_job_and_gives_the_lease_back(scene: MakeScene, how: str) -> None:
    """Whichever way a caller stops, the job has no owner afterwards and no outcome."""
    world = scene(RUNNING)

    async def main() -> Any:
        async with world.poller() as poller:
            waiting = asyncio.create_task(
                poller.await_job("orders", spec_of(), wait_timeout="3s" if how == "timeout" else None)
            )
            await world.at(3)
            if how == "cancel":
                waiting.cancel()
            if how != "close":
                await asyncio.gather(waiting, return_exceptions=True)
                await world.after(1)
        await asyncio.gather(waiting, return_exceptions=True)
        async with world.poller() as poller:
            return await poller.get("orders")

    job = world.run(main)
    assert (job.owner, job.outcome, job.polls) == (None, None, 2)


def test_s25b_one_key_is_one_job(scene: MakeScene) -> None:
    """Another submit or input under the same key is a conflict that shows the difference; other changes are adopted."""
    world = scene(RUNNING, DONE)
    spec = spec_of(submit=POST, poll=POLL, input={"rows": 1})

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.add("orders", spec)
            with pytest.raises(KeyConflict, match="input"):
                await poller.await_job("orders", spec.model_copy(update={"input": {"rows": 2}}))
            changed = spec_of(submit=POST, poll=POLL, input={"rows": 1}, strategy=Fixed("9s"))
            return await poller.await_job("orders", changed)

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert world.seconds() == [0, 9]
    assert [each for told in world.event("spec_changed") for each in told["fields"]] == ["strategy.interval"]


def test_s25b_without_a_submit_the_poll_is_what_counts(scene: MakeScene) -> None:
    """Two different status URLs are two jobs."""
    world = scene(RUNNING)

    async def main() -> None:
        async with world.poller() as poller:
            await poller.add("orders", spec_of())
            with pytest.raises(KeyConflict, match=r"poll\.url"):
                await poller.add("orders", spec_of(poll=Request("GET", "https://api.example.com/other")))

    world.run(main)


@pytest.mark.parametrize("damage", ["{", '{"v": 99}', "null", ""], ids=["broken", "newer", "null", "empty"])
def test_s26_a_damaged_checkpoint_fails_loudly_and_stays(scene: MakeScene, damage: str) -> None:
    """It is never polled from the beginning, nor mended."""
    world = scene(RUNNING)

    def stored() -> str:
        with world.store._database.read() as connection:
            return str(connection.scalar(text("SELECT state FROM tarry_job")))

    async def main() -> None:
        async with world.poller() as poller:
            await poller.add("orders", spec_of())
            with world.store._database.write() as connection:
                connection.execute(text("UPDATE tarry_job SET state = :damage"), {"damage": damage})
            with pytest.raises(CheckpointError, match="orders"):
                await poller.await_job("orders", spec_of())

    world.run(main)
    assert (stored(), world.job.polls) == (damage, 0)


def submitted(world: Scene, *answers: Any, idempotent: bool = False) -> Any:
    """How a job ends whose submits are answered so."""
    world.play([DONE], submit=list(answers))
    post = Request("POST", "https://api.example.com/jobs", json={"a": 1}, idempotent=idempotent)
    return world.ends(spec_of(submit=post, poll=POLL))


ACCEPTED = Answer(202, {"jobId": "j1"})


@pytest.mark.parametrize(
    ("answers", "idempotent", "outcome", "submits"),
    [
        ([ErrorKind.CONNECT, ACCEPTED], False, "succeeded", 2),
        ([Answer(429, headers={"Retry-After": "3"}), ACCEPTED], False, "succeeded", 2),
        ([ErrorKind.TIMEOUT], False, "submit_unknown", 1),
        ([500], False, "submit_unknown", 1),
        ([408], False, "submit_unknown", 1),
        ([ErrorKind.TIMEOUT, 500, ACCEPTED], True, "succeeded", 3),
        ([ErrorKind.TIMEOUT, Answer(409, {"jobId": "j1"})], True, "succeeded", 2),
        ([409], False, "failed", 1),
        ([422], False, "failed", 1),
    ],
    ids=[
        "never left",
        "429",
        "answer lost",
        "500",
        "408",
        "sent again",
        "adopted",
        "409 at first",
        "refused",
    ],
)
def test_s27_a_submit_is_repeated_only_where_that_is_safe(
    scene: MakeScene, answers: list[Any], idempotent: bool, outcome: str, submits: int
) -> None:
    """What never left is sent again, a lost answer only where the service honours the key; else a person decides."""
    world = scene()
    assert submitted(world, *answers, idempotent=idempotent).outcome == outcome
    assert world.job.submits == submits
    keys = {seen.headers["idempotency-key"] for seen in world.job.requests if seen.kind == "submit"}
    assert len(keys) == 1


def test_s27_a_person_settles_a_submit_that_nobody_knows_of(scene: MakeScene) -> None:
    """With the answer that was lost, once it is known: the job goes on, submitted once."""
    world = scene()
    world.play([DONE], submit=[ErrorKind.TIMEOUT])
    spec = spec_of(submit=POST, poll=POLL)

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(SubmitUnknown):
                await poller.await_job("orders", spec)
            await poller.reset("orders", submit_answer={"jobId": "j7"})
            return await poller.await_job("orders", spec)

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert [seen.url.rpartition("/")[2] for seen in world.job.requests if seen.kind == "poll"] == ["j7"]
    assert world.job.submits == 1


def test_s27_the_intent_is_committed_before_the_first_byte(durable: MakeScene) -> None:
    """Killed while the submit is under way, the next process knows that it may have arrived."""
    world = durable()
    world.play([DONE], submit=[Answer(202, {"jobId": "j1"}, delay=HOUR)])

    async def main() -> None:
        await world.process().killed_at(1, "orders", spec_of(submit=POST, poll=POLL))
        with pytest.raises(SubmitUnknown):
            await (await world.process().awaiting("orders"))

    world.run(main)
    assert world.job.submits == 1


RESULT = Request("GET", "https://api.example.com/jobs/{key}/result")


def test_s27b_success_is_committed_before_the_result_is_fetched(scene: MakeScene) -> None:
    """A result that cannot be had is an error of its own; the next wait fetches again, and polls no more."""
    world = scene()
    world.play([RUNNING, DONE], fetch=[404] * 5 + [{"rows": 3}])
    spec = spec_of(fetch=RESULT)
    error = world.fails(spec)
    assert isinstance(error, ResultUnavailable)
    assert (error.outcome, world.job.polls) == (Outcome.SUCCEEDED, 2)
    assert world.ends(spec).output == {"rows": 3}
    assert world.ends(spec).output == {"rows": 3}
    assert (world.job.polls, world.job.fetches) == (2, 6)


def test_s28_storage_is_bounded(scene: MakeScene) -> None:
    """A poll that changed nothing adds no event; the timeline keeps 64 polls; `keep` says what of a body is stored."""
    world = scene(*[{"state": "RUNNING", "padding": "x" * 10_000}] * 100, {**DONE, "padding": "x"})

    async def main() -> tuple[Any, Any]:
        async with world.poller() as poller:
            await poller.await_job("orders", spec_of(keep="{state: state}"))
            return await poller.get("orders"), await poller.history("orders")

    job, events = world.run(main)
    assert job.polls == 101
    assert len(events) == 4
    assert len(job.timeline) == 64
    assert job.last.body == DONE


def test_s28_events_before_the_oldest_kept_are_a_gap(scene: MakeScene) -> None:
    """Of many events the latest are kept; whoever reads from before them is told how many are missing."""
    states = [{"state": "RUNNING" if n % 2 else "QUEUED"} for n in range(260)]
    world = scene(*states, DONE)

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.await_job("orders", spec_of())
            return await poller.history("orders")

    gap, *kept = world.run(main)
    told = world.told[-1].seq
    assert (gap.kind, gap.data["missed"]) == ("gap", told - len(kept))
    assert [event.seq for event in kept] == list(range(told - len(kept) + 1, told + 1))
    assert len(kept) <= 200
