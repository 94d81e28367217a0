"""When a wait is over: neither too late nor too early."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import Acceptors, Expression, Fixed, Match, Outcome, Request, ResultUnavailable, Status
from tarry.testing import Answer
from tests.worlds import MakeScene, limits, spec_of

IN_PROGRESS = {"status": "in_progress"}
INCOMPLETE = {"status": "incomplete", "incomplete_details": {"reason": "max_prompt_tokens"}}


def test_pc_001_an_unlisted_status_is_reported_once_and_ends_with_the_deadline(scene: MakeScene) -> None:
    """By default the wait goes on, an event says so once, and the error names the value."""
    world = scene(IN_PROGRESS, IN_PROGRESS, INCOMPLETE)
    until = Match("body.status", succeeded="completed", failed=["failed", "cancelled", "expired"])
    error = world.fails(spec_of(until=until, limits=limits("60s")))
    assert error.outcome is Outcome.TIMED_OUT
    assert "incomplete" in str(error)
    assert world.elapsed() <= 60
    assert world.event("unknown_status") == [{"value": "in_progress"}, {"value": "incomplete"}]


@pytest.mark.parametrize(
    "more",
    [{"unknown": "failed", "pending": "in_progress"}, {"failed": ["failed", "incomplete"]}],
    ids=["unknown fails", "named as a failure"],
)
def test_pc_001_an_unlisted_status_can_end_the_wait(scene: MakeScene, more: dict[str, Any]) -> None:
    """Where unknown means failed, or where the value is named, the job fails at that poll, with its words."""
    world = scene(IN_PROGRESS, IN_PROGRESS, INCOMPLETE)
    until = Match("body.status", succeeded="completed", **more)
    error = world.fails(spec_of(until=until, reason="body.incomplete_details.reason"))
    assert (error.outcome, world.job.polls) == (Outcome.FAILED, 3)
    assert error.last is not None
    assert error.last.body == INCOMPLETE
    assert "max_prompt_tokens" in str(error)


def test_pc_002_only_a_positive_match_is_success(scene: MakeScene) -> None:
    """A status that the spec does not know waits; it is never taken for the end."""
    world = scene({"status": "pending"}, IN_PROGRESS, {"status": "completed", "conclusion": "success"})
    until = Match("body.status", succeeded="completed", pending=["queued", "in_progress"])
    ended = world.ends(spec_of(until=until, result="body.conclusion"))
    assert (ended.outcome, ended.output, ended.polls) == (Outcome.SUCCEEDED, "success", 3)
    assert world.event("unknown_status") == [{"value": "pending"}]


FLIPPING = [{"enabled": value} for value in (True, False, True, False, False, False, False)]
CONFIRMED = spec_of(until=Expression("body.enabled == `false`"), confirm=3)


def test_pc_005_a_state_that_flips_back_has_to_be_confirmed(scene: MakeScene) -> None:
    """Three equal answers in a row end the wait, not the first."""
    assert scene(*FLIPPING).ends(CONFIRMED).polls == 6


def test_pc_005_the_run_outlives_a_kill(durable: MakeScene) -> None:
    """Killed between the second and the third equal answer, the next process needs one more."""
    world = durable(*FLIPPING)

    async def main() -> Any:
        # With a poll every 10 s none is permitted ahead, so the kill costs none.
        spec = spec_of(until=CONFIRMED.until, confirm=3, strategy=Fixed("10s"))
        await world.process().killed_at(41, "orders", spec)
        return await (await world.process().awaiting("orders"))

    assert (world.run(main).polls, world.job.polls) == (6, 6)


@pytest.mark.parametrize(
    ("answers", "until"),
    [
        ([{"taskStatus": "RUNNING"}, {"taskStatus": "OK"}], Match("body.taskStatus", succeeded="OK")),
        ([Answer(202), {"data": 1}], Status(succeeded=200, pending=202)),
    ],
    ids=["body", "code"],
)
def test_pc_007_the_condition_says_where_the_status_is(scene: MakeScene, answers: Any, until: Any) -> None:
    """A field of the body or the HTTP code; an empty 202 is no error."""
    world = scene(*answers)
    ended = world.ends(spec_of(until=until))
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 2)
    assert world.event("poll_failed") == []


def test_pc_009_a_job_that_failed_before_the_first_look_has_failed(scene: MakeScene) -> None:
    """The first answer is judged like any other, failures first, and the end of the life cycle alone is no success."""
    world = scene({"life_cycle_state": "TERMINATED", "result_state": "FAILED"})
    until = Acceptors(
        [
            ("body.result_state == 'FAILED'", "failed"),
            ("body.life_cycle_state == 'TERMINATED' && body.result_state == 'SUCCESS'", "succeeded"),
        ]
    )
    error = world.fails(spec_of(until=until))
    assert (error.outcome, world.job.polls) == (Outcome.FAILED, 1)


def test_pc_010_finished_and_the_result_present_can_be_asked_for(scene: MakeScene) -> None:
    """A finished job whose result is not there yet is waited for."""
    world = scene({"status": "RUNNING"}, {"status": "FINISHED"}, {"status": "FINISHED", "result": 42})
    until = Match("body.status", succeeded="FINISHED") & Expression("body.result != `null`")
    ended = world.ends(spec_of(until=until, result="body.result"))
    assert (ended.output, ended.polls) == (42, 3)


FETCH = Request("GET", "https://api.example.com/jobs/{key}/result")


def test_pc_010_a_result_that_comes_late_is_fetched_again(scene: MakeScene) -> None:
    """Twice "not found", then there: a few tries, and the job is polled no more."""
    world = scene()
    world.play([{"status": "RUNNING"}, {"status": "FINISHED"}], fetch=[404, 404, {"rows": 42}])
    ended = world.ends(spec_of(until=Match("body.status", succeeded="FINISHED"), fetch=FETCH, result="body.rows"))
    assert (ended.output, ended.polls, world.job.fetches) == (42, 2, 3)


def test_pc_010_a_result_that_never_comes_does_not_fail_the_job(scene: MakeScene) -> None:
    """The error says that the job succeeded and that its result is not to be had."""
    world = scene({"status": "FINISHED"})
    error = world.fails(spec_of(until=Match("body.status", succeeded="FINISHED"), fetch=FETCH))
    assert isinstance(error, ResultUnavailable)
    assert error.outcome is Outcome.SUCCEEDED
    assert world.job.fetches == 5
    assert "succeeded" in str(error)
