"""A job is submitted once, or a person is asked."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import Fixed, Outcome, Request, SubmitUnknown
from tarry.testing import Answer
from tarry.words import HOUR
from tests.worlds import DONE, RUNNING, MakeScene, limits, spec_of

URL = "https://api.example.com/jobs"
POLL = Request("GET", "https://api.example.com/jobs/{submit.body.jobId}")


def submitted(**changes: Any) -> Any:
    """A job that is submitted, then polled every 10 s."""
    request = Request("POST", URL, json={"dataset": "orders"}, **changes)
    return spec_of(submit=request, poll=POLL, strategy=Fixed("10s"))


@pytest.mark.parametrize("second", [0.001, 10.5], ids=["right after the submit", "during the second poll"])
def test_pc_045_a_kill_never_submits_again(durable: MakeScene, second: float) -> None:
    """The submit's answer is committed as a step of its own; polling goes on from it."""
    world = durable(RUNNING, Answer(200, RUNNING, delay=1_000_000), DONE)

    async def main() -> Any:
        await world.process().killed_at(second, "orders", submitted())
        return await (await world.process().awaiting("orders"))

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert world.job.submits == 1


def killed_while_submitting(world: Any, spec: Any, **scripts: Any) -> Any:
    """The first process dies after the service has the submit, and before its answer is there."""
    accepted = [Answer(202, {"jobId": "j1"}, delay=HOUR), Answer(202, {"jobId": "j1"})]
    world.play([RUNNING, DONE], submit=accepted, **scripts)

    async def main() -> Any:
        await world.process().killed_at(1, "orders", spec)
        return await (await world.process().awaiting("orders"))

    return world.run(main)


def test_pc_048_a_service_that_honours_the_key_gets_the_submit_again(durable: MakeScene) -> None:
    """With the same idempotency key and the same body: the intent and the key were committed before the first try."""
    world = durable()
    ended = killed_while_submitting(world, submitted(idempotent=True))
    assert (ended.outcome, world.job.submits) == (Outcome.SUCCEEDED, 2)
    first, second = [seen for seen in world.job.requests if seen.kind == "submit"]
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.content == second.content


def test_pc_048_a_job_that_can_be_looked_up_is_adopted(durable: MakeScene) -> None:
    """The probe finds what the first process submitted; nothing is submitted again."""
    world = durable()
    spec = spec_of(
        submit=Request("POST", "https://api.example.com/jobs", json={"name": "{key}"}),
        probe=Request("GET", "https://api.example.com/jobs/by-name/{key}"),
        poll=Request("GET", "https://api.example.com/jobs/{submit.body.jobId}"),
    )
    ended = killed_while_submitting(world, spec, probe=[{"jobId": "j1"}])
    assert (ended.outcome, world.job.submits) == (Outcome.SUCCEEDED, 1)


def test_pc_048_otherwise_a_person_is_asked(durable: MakeScene) -> None:
    """Nobody knows whether the job exists: it is never submitted blindly."""
    world = durable()
    with pytest.raises(SubmitUnknown, match="may or may not exist"):
        killed_while_submitting(world, submitted())
    assert (world.job.submits, world.job.polls) == (1, 0)


def test_pc_046_a_job_that_timed_out_is_not_submitted_again(scene: MakeScene) -> None:
    """The next call for the same key hears of the same end; the remote job may still run."""
    world = scene(RUNNING)
    spec = submitted().model_copy(update={"limits": limits("10s")})
    assert world.fails(spec).outcome is Outcome.TIMED_OUT
    assert world.fails(spec).outcome is Outcome.TIMED_OUT
    assert world.job.submits == 1


def test_pc_046_a_time_out_can_cancel_the_remote_job(scene: MakeScene) -> None:
    """By choice, once, after the outcome is committed: what then runs is not two jobs."""
    world = scene(RUNNING)
    cancel = Request("DELETE", "https://api.example.com/jobs/{submit.body.jobId}")
    spec = submitted().model_copy(update={"limits": limits("10s"), "cancel": cancel, "cancel_on": (Outcome.TIMED_OUT,)})
    assert world.fails(spec).outcome is Outcome.TIMED_OUT
    assert (world.job.submits, world.job.cancels) == (1, 1)


def test_pc_046_a_job_that_timed_out_can_be_taken_up_again(scene: MakeScene) -> None:
    """A later call with `reuse="restart_failed"` goes on with the same remote job and a new deadline: one submit."""
    world = scene()
    world.play([lambda _: DONE if world.elapsed() >= 15 else RUNNING])
    spec = spec_of(submit=Request("POST", URL), poll=POLL, limits=limits("10s"))
    assert world.fails(spec).outcome is Outcome.TIMED_OUT

    async def wait() -> None:
        await world.at(11)

    world.run(wait)
    ended = world.ends(spec, reuse="restart_failed")
    assert (ended.outcome, world.job.submits) == (Outcome.SUCCEEDED, 1)
    assert 15 <= world.elapsed() <= 17
