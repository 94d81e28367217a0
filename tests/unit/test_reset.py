"""New runs of a job: `reset`, and `reuse` of a key whose job is over."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tarry import (
    Fixed,
    JobSpec,
    KeyConflict,
    Limits,
    Match,
    Outcome,
    Request,
    SpecError,
    StoreError,
    SubmitUnknown,
    WaitTimeout,
)
from tarry.testing import Answer, ScriptedJob
from tarry.words import SECOND, ErrorKind
from tests.pollers import FAILED, QUEUED, RUNNING, SUCCEEDED, World, polled, spec_of

SHORT = spec_of(limits=Limits(total_duration="10s"))


def unsafe() -> JobSpec:
    """A job whose submit must not be sent again."""
    return spec_of(submit=Request("POST", "https://api.example.com/jobs", json={"dataset": "orders"}))


def keys(world: World) -> list[str]:
    """The idempotency keys that were sent."""
    return [dict(seen.headers)["idempotency-key"] for seen in world.job.requests if seen.kind == "submit"]


def test_a_job_that_timed_out_is_followed_anew() -> None:
    """PC-046: the same remote job, with a new deadline and counters; nothing is submitted twice."""
    world = World([RUNNING] * 6 + [SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            first = await poller.await_job("orders", SHORT, raises=False)
            await world.after(1)
            job = await poller.reset("orders")
            assert (job.outcome, job.polls, job.timeline, job.output) == (None, 0, (), None)
            return first, await poller.await_job("orders")

    first, second = world.run(main)
    assert (first.outcome, second.outcome, world.job.submits) == (Outcome.TIMED_OUT, Outcome.SUCCEEDED, 1)
    assert second.started_at > first.finished_at
    (reset,) = [event for event in world.told if event.kind == "reset"]
    assert (reset.run, reset.data) == (2, {"by": "poll", "outcome": "timed_out", "polls": first.polls})
    assert [event.run for event in world.told] == sorted(event.run for event in world.told)


def test_a_reset_keeps_the_floor() -> None:
    """Also against the last poll of the run before."""
    world = World([RUNNING, SUCCEEDED])
    spec = polled(limits=Limits(min_interval="30s", max_polls=1))

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.await_job("orders", spec, raises=False)
            await poller.reset("orders")
            return await poller.await_job("orders")

    world.run(main)
    assert world.seconds() == [0, 30]


def test_the_floor_holds_when_a_poll_was_out_as_the_job_was_cancelled() -> None:
    """It may have reached the service, so the next run keeps its distance from it."""
    world = World([Answer(delay=SECOND // 2, body=RUNNING), SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller, world.poller() as other:
            wait = asyncio.create_task(poller.await_job("orders", polled(limits=Limits(min_interval="30s"))))
            await world.after(0.2)
            await other.cancel("orders")
            await other.reset("orders")
            return await wait

    assert world.run(main).outcome is Outcome.SUCCEEDED
    first, second = world.seconds()
    assert second - first >= 30


def test_a_resubmit_has_a_key_of_its_own() -> None:
    """Another remote job is asked for, and its answer takes the place of the first."""
    world = World([FAILED, SUCCEEDED])
    world.job = ScriptedJob([FAILED, SUCCEEDED], submit=[{"jobId": "j1"}, {"jobId": "j2"}], clock=world.clock)

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.await_job("orders", spec_of(), raises=False)
            await poller.reset("orders", resubmit=True)
            return await poller.await_job("orders")

    assert world.run(main).outcome is Outcome.SUCCEEDED
    first, second = keys(world)
    assert first != second
    assert [seen.url.rpartition("/")[2] for seen in world.job.requests if seen.kind == "poll"] == ["j1", "j2"]


def test_a_live_job_is_reset_wherever_it_is_held() -> None:
    """What the holder of the last run sees is refused; those who wait, wait on for the new run."""
    world = World([RUNNING, Answer(delay=4 * SECOND, body=FAILED), SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller, world.poller() as other:
            waits = [asyncio.create_task(one.await_job("orders", spec_of())) for one in (poller, other)]
            await world.after(3)
            job = await other.reset("orders")
            assert (job.polls, job.reserved, job.owner) == (0, 0, None)
            return await asyncio.gather(*waits)

    first, second = world.run(main)
    assert first == second
    assert (first.outcome, first.polls) == (Outcome.SUCCEEDED, 1)
    assert world.kinds().count("finished") == 1
    *_, before, after = world.seconds()
    assert after - before >= 1


@pytest.mark.parametrize(
    "answer",
    [
        {"jobId": "j7"},
        {
            "status": 202,
            "headers": {"Location": "/jobs/j7"},
            "body": {"jobId": "j7"},
            "url": "https://api.example.com/jobs",
        },
    ],
    ids=["a body", "a whole answer"],
)
def test_a_person_settles_a_submit_that_was_lost(answer: dict[str, Any]) -> None:
    """With the answer it must have had: the job is polled, and nothing is sent twice."""
    world = World([SUCCEEDED])
    world.job = ScriptedJob([SUCCEEDED], submit=[ErrorKind.TIMEOUT], clock=world.clock)

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(SubmitUnknown, match="reset"):
                await poller.await_job("orders", unsafe())
            with pytest.raises(SubmitUnknown):
                await poller.await_job("orders", unsafe(), reuse="restart_failed")
            with pytest.raises(StoreError, match="submit_answer"):
                await poller.reset("orders")
            await poller.reset("orders", submit_answer=answer)
            with pytest.raises(StoreError, match="answered already"):
                await poller.reset("orders", submit_answer=answer)
            return await poller.await_job("orders")

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert world.job.submits == 1
    assert world.job.requests[-1].url.endswith("/j7")


def test_a_submit_that_was_refused_is_not_followed() -> None:
    """There is no remote job; only another submit can make one."""
    world = World([SUCCEEDED])
    world.job = ScriptedJob([SUCCEEDED], submit=[422, {"jobId": "j1"}], clock=world.clock)

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.await_job("orders", unsafe(), raises=False)
            with pytest.raises(StoreError, match="resubmit=True"):
                await poller.reset("orders")
            await poller.reset("orders", resubmit=True)
            return await poller.await_job("orders")

    assert world.run(main).outcome is Outcome.SUCCEEDED


def test_a_submit_that_never_left_is_sent_in_the_new_run() -> None:
    """Under the key that it has, since nothing is lost by that."""
    world = World([SUCCEEDED])
    world.job = ScriptedJob([SUCCEEDED], submit=[503, 503, 503, 503, {"jobId": "j1"}], clock=world.clock)

    async def main() -> Any:
        async with world.poller() as poller:
            first = await poller.await_job("orders", SHORT, raises=False)
            await poller.reset("orders")
            return first, await poller.await_job("orders", spec_of())

    first, second = world.run(main)
    assert (first.outcome, second.outcome) == (Outcome.TIMED_OUT, Outcome.SUCCEEDED)
    assert len(set(keys(world))) == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"resubmit": True}, "no submit"),
        ({"submit_answer": {}}, "no submit"),
        ({"resubmit": True, "submit_answer": {}}, "not both"),
    ],
    ids=["resubmit", "answer", "both"],
)
def test_a_reset_that_makes_no_sense_is_refused(options: dict[str, Any], problem: str) -> None:
    """And changes nothing."""
    world = World([SUCCEEDED])

    async def main() -> None:
        async with world.poller() as poller:
            before = await poller.add("orders", polled())
            with pytest.raises(SpecError, match=problem):
                await poller.reset("orders", **options)
            assert await poller.get("orders") == before

    world.run(main)


@pytest.mark.parametrize("answer", ["j7", {"body": {1: 2}}, {"a": float("nan")}], ids=["text", "names", "NaN"])
def test_an_answer_that_is_none_is_refused(answer: Any) -> None:
    """By its name."""
    world = World([SUCCEEDED])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.add("orders", spec_of())
            with pytest.raises(SpecError, match="submit_answer"):
                await poller.reset("orders", submit_answer=answer)

    world.run(main)


def test_a_paused_job_that_is_reset_goes_on() -> None:
    """A new run is not paused."""
    world = World([SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.add("orders", polled())
            await poller.pause("orders")
            await poller.reset("orders")
            return await poller.await_job("orders")

    assert world.run(main).outcome is Outcome.SUCCEEDED


def test_a_job_that_never_stands_still_cannot_be_reset() -> None:
    """It is said so."""
    world = World([QUEUED])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.add("orders", polled())
            world.store.restart = lambda _: False  # type: ignore[method-assign]  # always too late
            with pytest.raises(StoreError, match="faster"):
                await poller.reset("orders")

    world.run(main)


# Reuse of a key.


def test_a_key_may_be_refused_when_it_exists() -> None:
    """By `await_job` and `add` alike; a new one is made."""
    world = World([SUCCEEDED])

    async def main() -> None:
        async with world.poller() as poller:
            assert (await poller.await_job("orders", polled(), reuse="refuse")).polls == 1
            for again in (
                poller.await_job("orders", polled(), reuse="refuse"),
                poller.add("orders", polled(), reuse="refuse"),
            ):
                with pytest.raises(KeyConflict, match="exists"):
                    await again
            with pytest.raises(SpecError, match="restart_failed"):
                await poller.await_job("orders", polled(), reuse="again")  # type: ignore[arg-type]  # no such word

    world.run(main)


@pytest.mark.parametrize(
    ("answers", "submits", "outcome"),
    [
        ([SUCCEEDED], 1, Outcome.SUCCEEDED),
        ([FAILED, SUCCEEDED], 2, Outcome.SUCCEEDED),
        ([RUNNING] * 6 + [SUCCEEDED], 1, Outcome.SUCCEEDED),
        ([404, 404, 404, SUCCEEDED], 1, Outcome.SUCCEEDED),
    ],
    ids=["ended well", "failed there", "timed out here", "lost"],
)
def test_what_failed_begins_anew(answers: list[Any], submits: int, outcome: Outcome) -> None:
    """A remote job that may still run is followed on; one that is over is submitted anew; a success stands."""
    world = World(answers)
    spec = spec_of(limits=Limits(total_duration="10s"), errors={"not_found_grace": 0})

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.await_job("orders", spec, raises=False)
            return await poller.await_job("orders", spec, reuse="restart_failed")

    assert (world.run(main).outcome, world.job.submits) == (outcome, submits)


def test_what_is_over_begins_anew_with_another_spec() -> None:
    """`restart` submits anew, whatever the end was; a job that goes on is refused."""
    world = World([SUCCEEDED])
    other = spec_of(submit=Request("POST", "https://api.example.com/jobs", json={"dataset": "invoices"}))

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.await_job("orders", spec_of())
            with pytest.raises(KeyConflict):
                await poller.await_job("orders", other)
            job = await poller.add("orders", other, reuse="restart")
            assert (job.outcome, job.polls) == (None, 0)
            with pytest.raises(KeyConflict, match="still goes on"):
                await poller.await_job("orders", other, reuse="restart")
            return await poller.await_job("orders", other, reuse="restart_failed")

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert [b"invoices" in (seen.content or b"") for seen in world.job.requests if seen.kind == "submit"] == [
        False,
        True,
    ]


def test_another_remote_job_is_not_followed_in_place_of_the_first() -> None:
    """A job that timed out here belongs to its submit; another one is a conflict, not a restart."""
    world = World([RUNNING])
    other = spec_of(submit=Request("POST", "https://api.example.com/jobs", json={"dataset": "invoices"}))

    async def main() -> None:
        async with world.poller() as poller:
            await poller.await_job("orders", SHORT, raises=False)
            with pytest.raises(KeyConflict):
                await poller.await_job("orders", other, reuse="restart_failed")

    world.run(main)


def test_a_stored_job_begins_anew_without_a_spec() -> None:
    """With the one it has."""
    world = World([FAILED, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.await_job("orders", polled(), raises=False)
            return await poller.await_job("orders", reuse="restart")

    assert world.run(main).outcome is Outcome.SUCCEEDED


def test_two_who_restart_at_once_begin_one_run() -> None:
    """Who comes second joins the run of the first."""
    world = World([FAILED, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller, world.poller() as other:
            await poller.await_job("orders", spec_of(), raises=False)
            return await asyncio.gather(
                *(one.await_job("orders", spec_of(), reuse="restart_failed") for one in (poller, other, poller))
            )

    assert {ended.outcome for ended in world.run(main)} == {Outcome.SUCCEEDED}
    assert world.job.submits == 2


def test_a_restart_that_always_comes_too_late_gives_up() -> None:
    """With an error, instead of trying for ever."""
    world = World([FAILED])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.await_job("orders", polled(), raises=False)
            world.store.restart = lambda _: False  # type: ignore[method-assign]  # always too late
            with pytest.raises(KeyConflict, match="all the time"):
                await poller.await_job("orders", reuse="restart_failed")

    world.run(main)


def test_a_success_that_is_waited_for_is_no_failure() -> None:
    """`Match` on a job that goes on: restart_failed joins it."""
    world = World([RUNNING, SUCCEEDED])
    spec = polled(until=Match("body.state", succeeded="SUCCEEDED"), strategy=Fixed("5s"))

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", spec, wait_timeout=1)
            return await poller.await_job("orders", spec, reuse="restart_failed")

    assert world.run(main).polls == 2
