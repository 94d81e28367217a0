"""Cancelling remotely: the service is asked once, and the polls tell how the job ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tarry import JobCancelled, Limits, Match, Outcome, Request, WaitTimeout
from tarry.testing import Answer, ScriptedJob
from tarry.words import SECOND, ErrorKind, Phase
from tests.pollers import QUEUED, RUNNING, SUCCEEDED, World, polled, spec_of

CANCEL = Request("POST", "https://api.example.com/jobs/{submit.body.jobId}/cancel")
UNTIL = Match("body.state", succeeded="SUCCEEDED", cancelled="CANCELLED", pending=["QUEUED", "RUNNING", "CANCELLING"])
CANCELLING, CANCELLED = {"state": "CANCELLING"}, {"state": "CANCELLED"}


class Cancels(World):
    """A world with a script for the requests to cancel."""

    def __init__(self, answers: list[Any], cancel: Any = 202) -> None:
        super().__init__(answers)
        self.job = ScriptedJob(answers, submit=[{"jobId": "j1"}], cancel=cancel, clock=self.clock)

    def all_kinds(self) -> list[str]:
        """The kinds of the stored events."""
        return [event.kind for event in self.store.events("default", "orders", (0, 0), 99)]


def cancelled(world: World, after: float = 3, **options: Any) -> tuple[Any, Any]:
    """Await a job, cancel it meanwhile; what `cancel` gave, and how the wait ended."""

    async def main() -> tuple[Any, Any]:
        async with world.poller() as poller:
            wait = poller.await_job("orders", spec_of(cancel=CANCEL, until=UNTIL, **options), raises=False)
            waiting = asyncio.create_task(wait)
            await world.after(after)
            asked = await poller.cancel("orders")
            return asked, await waiting

    return world.run(main)


def test_the_job_says_how_it_ended() -> None:
    """The answer to the cancel ends nothing: polls go on until the job is really over."""
    world = Cancels([QUEUED, RUNNING, CANCELLING, CANCELLING, CANCELLED])
    asked, ended = cancelled(world)
    assert (asked.outcome, asked.cancel_requested_at is not None) == (None, True)
    assert (ended.outcome, ended.polls, world.job.cancels) == ("cancelled", 5, 1)
    assert world.seconds() == [0, 2, 4, 6, 8]
    kinds = world.all_kinds()
    assert kinds.index("cancel_requested") < kinds.index("delivered") < kinds.index("finished")


@pytest.mark.parametrize("answer", [409, 404, 500, ErrorKind.TIMEOUT], ids=str)
def test_a_cancel_that_comes_too_late_is_no_error(answer: Any) -> None:
    """Whatever the service answers, the job ends as it says."""
    _, ended = cancelled(Cancels([QUEUED, RUNNING, SUCCEEDED], cancel=answer))
    assert (ended.outcome, ended.output) == ("succeeded", {"rows": 4211})


def test_an_answer_in_flight_is_not_lost() -> None:
    """The cancel comes while a poll is under way; that poll counts."""
    world = Cancels([QUEUED, Answer(body=SUCCEEDED, delay=3 * SECOND)])
    _, ended = cancelled(world)
    assert (ended.outcome, ended.polls, world.job.polls) == ("succeeded", 2, 2)


def test_a_limit_may_end_it() -> None:
    """When the service never says; the request is not sent twice, though `cancel_on` names that end, too."""
    world = Cancels([RUNNING])
    _, ended = cancelled(world, limits=Limits(total_duration="20s"), cancel_on=["timed_out"])
    assert (ended.outcome, world.job.cancels) == ("timed_out", 1)


def test_asking_again_sends_nothing() -> None:
    """Once is once; cancelling here is still possible."""
    world = Cancels([RUNNING])

    async def main() -> tuple[Any, Any, Any]:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", spec_of(cancel=CANCEL, until=UNTIL), wait_timeout=3)
            first = await poller.cancel("orders")
            await world.after(3)
            second = await poller.cancel("orders")
            return first, second, await poller.cancel("orders", remote=False)

    first, second, third = world.run(main)
    assert second.cancel_requested_at == first.cancel_requested_at
    assert (second.outcome, third.outcome, third.reason) == (None, Outcome.CANCELLED, "cancelled here")
    assert world.job.cancels == 1


def test_a_job_that_was_not_submitted_is_cancelled_at_once() -> None:
    """And nothing is submitted after."""
    world = Cancels([RUNNING])

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.add("orders", spec_of(cancel=CANCEL))
            job = await poller.cancel("orders")
            with pytest.raises(JobCancelled):
                await poller.await_job("orders")
            return job

    assert (world.run(main).phase, world.job.requests) == (Phase.DONE, [])


def test_a_job_whose_submit_was_put_off_is_cancelled_at_once() -> None:
    """It did not arrive, or it would not be sent again: it is not sent only to be cancelled."""
    world = Cancels([RUNNING])
    world.job = ScriptedJob([RUNNING], submit=Answer(429, headers={"retry-after": "20"}), clock=world.clock)
    asked, ended = cancelled(world, submit=Request("POST", "https://api.example.com/jobs"))
    assert (asked.outcome, ended.outcome, world.job.submits) == ("cancelled", "cancelled", 1)


def test_a_submit_under_way_is_waited_for() -> None:
    """The request needs what the submit answers."""
    world = Cancels([RUNNING, CANCELLED])
    world.job = ScriptedJob(
        [RUNNING, CANCELLED], submit=[Answer(body={"jobId": "j1"}, delay=4 * SECOND)], clock=world.clock
    )
    asked, ended = cancelled(world, after=1)
    assert (asked.phase, ended.outcome, world.job.cancels) == (Phase.SENDING, "cancelled", 1)


def test_a_job_that_nobody_polls_here_is_asked_for_all_the_same() -> None:
    """The flag stays in its row, for whoever polls it."""
    world = Cancels([RUNNING])

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.add("orders", polled(cancel=Request("DELETE", "https://api.example.com/jobs/{key}")))
            await poller.cancel("orders")
            await world.after(1)
            return await poller.get("orders")

    job = world.run(main)
    assert (job.outcome, job.cancel_requested_at is not None, world.job.cancels) == (None, True, 1)
    assert world.all_kinds() == ["created", "cancel_requested", "delivered"]


def test_a_spec_without_a_cancel_is_cancelled_here() -> None:
    """As ever: at once, and the remote side is not told."""
    world = Cancels([RUNNING])

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.add("orders", polled())
            return await poller.cancel("orders")

    assert (world.run(main).outcome, world.job.cancels) == (Outcome.CANCELLED, 0)


def test_leaving_the_wait_cancels_nothing() -> None:
    """Patience, a cancelled asyncio task and the end of the process are not a cancel."""
    world = Cancels([RUNNING])

    async def main() -> None:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", spec_of(cancel=CANCEL, until=UNTIL)))
            await world.after(3)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    world.run(main)
    assert (world.job.cancels, "cancel_requested" in world.all_kinds()) == (0, False)
