"""Awaiting a job through the front door, in virtual time."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
from sqlalchemy import text

from tarry import (
    CheckpointError,
    ConditionError,
    Expression,
    Fixed,
    JobCancelled,
    JobExhausted,
    JobFailed,
    JobLost,
    JobNotFound,
    JobTimedOut,
    JobUnreachable,
    KeyConflict,
    Limits,
    Match,
    Outcome,
    Poller,
    Request,
    SpecError,
    SubmitUnknown,
    TarryError,
    WaitTimeout,
    await_job,
)
from tarry.core.policies import Errors
from tarry.store import MemoryStore
from tarry.testing import Answer, FakeClock, ScriptedJob
from tarry.words import ErrorKind
from tests.pollers import FAILED, QUEUED, RUNNING, SUCCEEDED, World, polled, spec_of


def test_it_returns_the_result() -> None:
    """Submitted once, polled on the strategy's beat, the output selected, the events told in order."""
    world = World([QUEUED, RUNNING, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            return await poller.await_job("orders", spec_of())

    ended = world.run(main)
    assert (ended.key, ended.outcome, ended.output, ended.polls) == ("orders", "succeeded", {"rows": 4211}, 3)
    assert ended.elapsed.total_seconds() == 4
    assert ended.last.body == SUCCEEDED
    assert world.seconds() == [0, 2, 4]
    assert world.job.submits == 1
    assert world.kinds() == ["created", "submit_sent", "submitted", "status", "status", "status", "finished"]
    assert [event.seq for event in world.told] == list(range(1, 8))


def test_a_job_that_is_over_is_not_polled_again() -> None:
    """A later wait, also by another poller, returns what was committed."""
    world = World([SUCCEEDED])

    async def main() -> tuple[Any, Any]:
        async with world.poller() as poller:
            first = await poller.await_job("orders", spec_of())
        async with world.poller() as poller:
            return first, await poller.await_job("orders")

    first, second = world.run(main)
    assert first == second
    assert world.seconds() == [0]


def test_the_next_process_goes_on() -> None:
    """After a clean stop half-way: same deadline, counters and beat, nothing submitted twice."""
    world = World([QUEUED, RUNNING, RUNNING, SUCCEEDED])

    async def main() -> tuple[Any, Any, Any]:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", spec_of(), wait_timeout="3s")
            before = await poller.get("orders")
        async with world.poller() as poller:
            between = await poller.get("orders")
            return before, between, await poller.await_job("orders", spec_of())

    before, between, ended = world.run(main)
    assert (between.polls, between.deadline, between.owner) == (2, before.deadline, None)
    assert (ended.polls, world.job.submits) == (4, 1)
    assert world.seconds() == [0, 2, 4, 6]


def test_several_waiters_share_one_loop() -> None:
    """Ten waits for one key make the polls of one, and all get the result."""
    world = World([QUEUED, SUCCEEDED])

    async def main() -> list[Any]:
        async with world.poller() as poller:
            return await asyncio.gather(*(poller.await_job("orders", spec_of()) for _ in range(10)))

    assert {ended.polls for ended in world.run(main)} == {2}
    assert (world.job.submits, world.job.polls) == (1, 2)


def test_two_pollers_on_one_store_share_the_work() -> None:
    """One polls, the other hears of the outcome within a second."""
    world = World([QUEUED, RUNNING, SUCCEEDED])

    async def main() -> float:
        async with world.poller() as first, world.poller() as second:
            await asyncio.gather(
                first.await_job("orders", spec_of()),
                second.await_job("orders", spec_of()),
            )
            return (world.clock.now() - world.began) / 1_000_000

    assert world.run(main) <= 5
    assert world.job.polls == 3


def test_patience_ends_a_wait_and_never_the_job() -> None:
    """WaitTimeout names the key; with nobody waiting, polling stops and the lease is given back."""
    world = World([QUEUED])

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout, match="orders") as caught:
                await poller.await_job("orders", spec_of(), wait_timeout="5s")
            assert isinstance(caught.value, TimeoutError)
            await world.after(60)
            return await poller.get("orders")

    job = world.run(main)
    assert (job.outcome, job.owner, world.seconds()) == (None, None, [0, 2, 4])


def test_no_patience_looks_once() -> None:
    """wait_timeout=0 does what is due now: it submits and polls, and reports what it knows."""
    world = World([QUEUED, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", spec_of(), wait_timeout=0)
            assert world.job.polls == 1
            await world.after(10)
            return await poller.await_job("orders", wait_timeout=0)

    assert world.run(main).polls == 2


def test_a_waiter_that_comes_while_the_last_one_leaves_is_served() -> None:
    """Leaving and coming in the same turn loses nothing."""
    world = World([QUEUED, QUEUED, QUEUED, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", spec_of()))
            await world.after(3)
            waiting.cancel()
            return await poller.await_job("orders", spec_of())

    assert world.run(main).polls == 4


def test_cancelling_the_waiter_leaves_the_job() -> None:
    """Cancellation by asyncio is no cancellation of the job, which another poller takes at its due time."""
    world = World([QUEUED, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", spec_of()))
            await world.after(1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            async with world.poller() as other:
                return await other.await_job("orders", spec_of())

    assert world.run(main).polls == 2
    assert world.seconds() == [0, 2]


def test_a_long_wait_gives_the_job_up_and_takes_it_back_in_time() -> None:
    """Between polls ten minutes apart nobody owns the job, and the poll is not late."""
    world = World([QUEUED, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", spec_of(strategy=Fixed("10m"))))
            await world.after(60)
            between = await poller.get("orders")
            await waiting
            return between

    between = world.run(main)
    assert (between.owner, between.reserved) == (None, 0)
    assert world.seconds() == [0, 600]


ENDS: list[tuple[type[Exception], Outcome, dict[str, Any], list[Any], str]] = [
    (JobFailed, Outcome.FAILED, {}, [FAILED], "disk full"),
    (
        JobExhausted,
        Outcome.EXHAUSTED,
        {"limits": Limits(max_polls=3)},
        [{"state": "DONE"}],
        "`body.state` was `DONE` in all 3 polls",
    ),
    (JobTimedOut, Outcome.TIMED_OUT, {"limits": Limits(total_duration="10s")}, [RUNNING], "RUNNING"),
    (
        JobUnreachable,
        Outcome.UNREACHABLE,
        {"errors": Errors(max_consecutive=2, min_outage=0)},
        [502],
        "502",
    ),
    (JobLost, Outcome.LOST, {}, [410], "410"),
    (ConditionError, Outcome.INVALID, {"until": Expression("body.state")}, [RUNNING], "RUNNING"),
    (
        JobCancelled,
        Outcome.CANCELLED,
        {"until": Match("body.state", succeeded="OK", cancelled="GONE")},
        [{"state": "GONE"}],
        "GONE",
    ),
]


@pytest.mark.parametrize(("error", "outcome", "changes", "answers", "words"), ENDS, ids=lambda value: str(value)[:30])
def test_each_end_has_its_error(
    error: type[Exception], outcome: Outcome, changes: dict[str, Any], answers: list[Any], words: str
) -> None:
    """The error tells the key, the outcome, what was seen; it pickles, and `raises=False` returns instead."""
    world = World(answers)

    async def main() -> tuple[Any, Any]:
        async with world.poller() as poller:
            with pytest.raises(error) as caught:
                await poller.await_job("orders", spec_of(**changes))
            return caught.value, await poller.await_job("orders", raises=False)

    raised, quiet = world.run(main)
    assert (raised.key, raised.outcome, quiet.outcome) == ("orders", outcome, outcome)
    assert "orders" in str(raised)
    assert words in str(raised)
    assert raised.last is not None
    assert raised.job.outcome is outcome
    again = pickle.loads(pickle.dumps(raised))  # our own bytes
    assert (str(again), again.job, again.last) == (str(raised), raised.job, raised.last)


def test_a_lost_submit_is_sent_again_only_where_that_is_safe() -> None:
    """Without the promise of idempotency the job stops for a person to decide."""
    world = World([SUCCEEDED])
    world.job = ScriptedJob([SUCCEEDED], submit=[ErrorKind.TIMEOUT, {"jobId": "j1"}], clock=world.clock)
    unsafe = Request("POST", "https://api.example.com/jobs", json={"dataset": "orders"})

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(SubmitUnknown):
                await poller.await_job("unsafe", spec_of(submit=unsafe))
            first = world.job.submits
            world.job = ScriptedJob([SUCCEEDED], submit=[ErrorKind.TIMEOUT, {"jobId": "j1"}], clock=world.clock)
        async with world.poller() as poller:
            await poller.await_job("safe", spec_of())
        return first

    assert world.run(main) == 1
    keys = {dict(seen.headers).get("Idempotency-Key") for seen in world.job.requests if seen.kind == "submit"}
    assert (world.job.submits, len(keys)) == (2, 1)


def test_another_spec_for_the_same_key_is_refused() -> None:
    """The conflict shows what differs; nothing is polled for it."""
    world = World([QUEUED, SUCCEEDED])
    other = Request("POST", "https://api.example.com/jobs", json={"dataset": "other"}, idempotent=True)

    async def main() -> None:
        async with world.poller() as poller:
            await poller.add("orders", spec_of())
            with pytest.raises(KeyConflict, match=r"submit\.json"):
                await poller.await_job("orders", spec_of(submit=other))

    world.run(main)
    assert world.job.requests == []


def test_other_limits_are_adopted() -> None:
    """The next run may bring another strategy and other limits: an event says so, the job is the same."""
    world = World([QUEUED, QUEUED, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", spec_of(), wait_timeout="1s")
            changed = spec_of(strategy=Fixed("7s"), limits=Limits(total_duration="1h", max_polls=9))
            await poller.await_job("orders", changed)
            return await poller.get("orders")

    job = world.run(main)
    assert world.seconds() == [0, 2, 9]
    (change,) = [event for event in world.told if event.kind == "spec_changed"]
    assert set(change.data["fields"]) == {"strategy.interval", "limits.total_duration", "limits.max_polls"}
    assert (job.max_polls, (job.deadline - job.created_at).total_seconds()) == (9, 3600)


def spoil(store: MemoryStore, key: str, state: str) -> None:
    """Overwrite the stored state of a job, as only an accident does."""
    with store._database.write() as connection:
        connection.execute(text("UPDATE tarry_job SET state = :state WHERE key = :key"), {"state": state, "key": key})


def test_a_damaged_row_is_refused_and_left_alone() -> None:
    """CheckpointError for that job; its row stays as it was, and other jobs go on."""
    world = World([SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.add("broken", polled())
            row = world.store.find("default", "broken")
            assert row is not None
            spoil(world.store, "broken", '{"v": 99}')
            with pytest.raises(CheckpointError, match="version 99"):
                await poller.await_job("broken")
            with pytest.raises(CheckpointError):
                await poller.get("broken")
            await poller.await_job("fine", polled())
            return row, world.store.find("default", "broken")

    before, after = world.run(main)
    assert after.state == '{"v": 99}'
    assert (after.fence, after.step, after.polls) == (before.fence, before.step, 0)


def test_an_unknown_key_without_a_spec_is_not_found() -> None:
    """There is nothing to wait for, and nothing is made up."""
    world = World([QUEUED])

    async def main() -> None:
        async with world.poller() as poller:
            for ask in (poller.await_job, poller.get, poller.cancel, poller.history):
                with pytest.raises(JobNotFound, match="nobody"):
                    await ask("nobody")

    world.run(main)


@pytest.mark.parametrize(
    "key", ["", " ", "a ", "a\nb", "\x00", "\ud800", "x" * 513, "é" * 257, "\u202egnp.exe", None, 5, b"k"]
)
def test_a_key_is_plain_text(key: Any) -> None:
    """Anything else is refused by name, before the store is asked."""
    world = World([QUEUED])

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(SpecError, match="key"):
                await poller.add(key, polled())

    world.run(main)


def test_the_poller_is_entered_once() -> None:
    """Used before it is entered, or entered twice, it says what to do."""
    world = World([QUEUED])

    async def main() -> None:
        poller = world.poller()
        with pytest.raises(TarryError, match="enter the poller"):
            await poller.get("orders")
        async with poller:
            with pytest.raises(TarryError, match="entered once"):
                await poller.__aenter__()

    world.run(main)


def test_a_client_and_a_transport_exclude_each_other() -> None:
    """Two ways to send are one too many."""
    with pytest.raises(SpecError, match="client"):
        Poller(MemoryStore(), client=object(), transport=ScriptedJob([200], clock=FakeClock()))  # type: ignore[arg-type]  # wrong on purpose


async def later(event: Any) -> None:
    """An async callback, which nobody would await."""


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"lease": "1ms"}, "Poller.lease"),
        ({"lease": "99h"}, "Poller.lease"),
        ({"lease": "soon"}, "Poller.lease"),
        ({"secrets": 5}, "secrets"),
        ({"on_event": 5}, "Poller.on_event"),
        ({"on_event": later}, "Poller.on_event"),
        ({"namespace": "n" * 256}, "Poller.namespace"),
    ],
)
def test_an_option_that_can_never_work_is_named(options: dict[str, Any], field: str) -> None:
    """Before anything is opened."""
    with pytest.raises(SpecError) as caught:
        World([QUEUED]).poller(**options)
    assert caught.value.field == field


def test_a_patience_that_is_none_is_refused() -> None:
    """By name, with the way out."""
    world = World([QUEUED])

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(SpecError, match="wait_timeout"):
                await poller.await_job("orders", polled(), wait_timeout="5 parsecs")

    world.run(main)


def test_a_result_that_cannot_be_had_leaves_the_success() -> None:
    """The output is None and the job says why; the outcome stands."""
    world = World([SUCCEEDED])

    async def main() -> tuple[Any, Any]:
        async with world.poller() as poller:
            ended = await poller.await_job("orders", polled(result="length(body.missing)"))
            return ended, await poller.get("orders")

    ended, job = world.run(main)
    assert (ended.outcome, ended.output) == (Outcome.SUCCEEDED, None)
    assert "JMESPathTypeError" in job.error


def test_a_spec_changed_by_another_waiter_holds_from_the_next_poll() -> None:
    """In one process, without waiting for the job to change hands."""
    world = World([QUEUED])

    async def main() -> None:
        async with world.poller() as poller:
            first = asyncio.create_task(poller.await_job("orders", spec_of()))
            await world.after(3)
            second = asyncio.create_task(poller.await_job("orders", spec_of(strategy=Fixed("20s"))))
            await world.after(50)
            first.cancel()
            second.cancel()

    world.run(main)
    assert world.seconds() == [0, 2, 4, 24, 44]
    assert world.kinds().count("spec_changed") == 1


def test_a_closed_poller_says_so() -> None:
    """Every method, also those that only read."""
    world = World([QUEUED])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.add("orders", polled())
        for ask in (poller.get("orders"), poller.jobs(), poller.history("orders"), poller.await_job("orders")):
            with pytest.raises(TarryError, match="closed"):
                await ask

    world.run(main)


def test_closing_ends_waits_and_leaves_jobs() -> None:
    """A wait that is under way when the poller closes ends with an error that says the job lives on."""
    world = World([QUEUED])

    async def main() -> Any:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", spec_of()))
            await world.after(1)
        with pytest.raises(TarryError, match="lives on"):
            await waiting
        with pytest.raises(TarryError, match="closed"):
            await poller.await_job("orders")
        return world.store.find("default", "orders")

    row = world.run(main)
    assert (row.owner, row.reserved, row.polls) == (None, 0, 1)


def test_a_close_that_is_cut_short_still_gives_everything_back() -> None:
    """Cancelled while it drains, it drops its grace, not its work."""
    world = World([Answer(delay=29_000_000, body=SUCCEEDED)])

    async def body() -> None:
        async with world.poller() as poller:
            waits.append(asyncio.create_task(poller.await_job("orders", polled())))
            await world.after(1)

    waits: list[Any] = []

    async def main() -> Any:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await body()
        with pytest.raises(TarryError, match="lives on"):
            await waits[0]
        return world.store.find("default", "orders"), world.clock.now() - world.began

    row, took = world.run(main)
    assert took < 3_000_000
    assert (row.owner, row.reserved, row.polls) == (None, 0, 1)


def test_an_interval_shorter_than_a_commit_keeps_nobody() -> None:
    """Patience is looked at after every poll, also where the next one is due already."""
    world = World([Answer(delay=50_000, body=QUEUED)])
    fast = polled(strategy=Fixed("1ms"), limits=Limits(min_interval="1ms"))

    async def main() -> int:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", fast, wait_timeout=0)
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", fast, wait_timeout="0.5s")
            await world.after(0.2)
            polls = world.job.polls
            await world.after(60)
            return world.job.polls - polls

    assert world.run(main) == 0


def test_a_clock_set_back_between_two_runs_stalls_nothing() -> None:
    """The wait is as long as it was meant to be, whatever the stored instants say."""
    world = World([QUEUED])

    async def wait() -> None:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", polled(), wait_timeout="5s")

    world.run(wait)
    polls, world.clock = world.job.polls, FakeClock(world.clock.now() - 600_000_000)
    world.job = ScriptedJob([QUEUED], clock=world.clock)
    world.run(wait)
    assert world.job.polls >= polls - 1


def test_closing_cuts_a_call_that_hangs() -> None:
    """A call in flight gets five seconds; then its permit counts as a poll, and the job is free."""
    world = World([Answer(delay=29_000_000, body=SUCCEEDED)])

    async def main() -> Any:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", polled()))
            await world.after(1)
        with pytest.raises(TarryError):
            await waiting
        return world.store.find("default", "orders"), world.clock.now() - world.began

    row, took = world.run(main)
    assert took <= 7_000_000
    assert (row.owner, row.reserved, row.polls) == (None, 0, 1)


def test_one_call_does_it_all() -> None:
    """`tarry.await_job` opens, waits and closes."""
    world = World([SUCCEEDED])

    async def main() -> Any:
        return await await_job("orders", polled(), store=world.store, transport=world.job, clock=world.clock)

    assert world.run(main).outcome is Outcome.SUCCEEDED


def test_only_what_is_to_be_kept_is_stored() -> None:
    """`keep` selects what of the body stays with the job; the output is selected from all of it."""
    world = World([{**SUCCEEDED, "log": "x" * 1000}])

    async def main() -> Any:
        async with world.poller() as poller:
            return await poller.await_job("orders", polled(keep="{state: state}"))

    ended = world.run(main)
    assert (ended.last.body, ended.output) == ({"state": "SUCCEEDED"}, {"rows": 4211})
