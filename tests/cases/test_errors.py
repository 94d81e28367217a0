"""What a failed poll is, and what the end of a job says."""

from __future__ import annotations

import pickle

import pytest

from tarry import Acceptors, Fixed, Match, Outcome, Status
from tarry.core.policies import Errors
from tarry.testing import Answer
from tarry.words import ErrorKind
from tests.worlds import DONE, RUNNING, MakeScene, limits, spec_of

PAGE = Answer(502, text="<html>Bad gateway</html>", headers={"content-type": "text/html"})


def test_pc_022_gateway_pages_and_broken_calls_are_not_the_jobs_failure(scene: MakeScene) -> None:
    """An error page, an empty body, a reset and HTML with a 200: four failed polls, and the job succeeds."""
    world = scene(RUNNING, PAGE, 200, ErrorKind.PROTOCOL, Answer(200, text="<html>"), DONE)
    ended = world.ends(spec_of(errors=Errors(max_consecutive=5, min_outage=0)))
    assert (ended.outcome, ended.polls, world.job.polls) == (Outcome.SUCCEEDED, 6, 6)

    async def timeline() -> list[str]:
        async with world.poller() as poller:
            return [tick.verdict for tick in (await poller.get("orders")).timeline]

    assert world.run(timeline) == ["pending", *["error"] * 4, "succeeded"]


def test_pc_023_a_short_outage_is_survived(scene: MakeScene) -> None:
    """Three failed polls of a budget of five."""
    world = scene(RUNNING, 500, 500, 500, DONE)
    assert world.ends(spec_of(errors=Errors(max_consecutive=5, min_outage=0))).outcome is Outcome.SUCCEEDED


def test_pc_023_a_long_outage_is_an_end_of_its_own(scene: MakeScene) -> None:
    """Exactly five failed polls in a row (no outage has to last here): unreachable, not failed.

    By default the first of them has to be a quarter of an hour ago as well.
    """
    world = scene(RUNNING, 503)
    error = world.fails(spec_of(errors=Errors(max_consecutive=5, min_outage=0)))
    assert (error.outcome, error.key, world.job.polls) == (Outcome.UNREACHABLE, "orders", 6)
    assert "the remote job may still run" in str(error)


def test_pc_023_an_outage_has_to_last_by_default(scene: MakeScene) -> None:
    """Ten failures within ten minutes end nothing."""
    world = scene(*[503] * 10, DONE)
    assert world.ends(spec_of(strategy=Fixed("1s"))).outcome is Outcome.SUCCEEDED


def test_pc_023_a_good_poll_resets_the_count(scene: MakeScene) -> None:
    """Twenty failures, none next to another, spend nothing; all of them are counted."""
    world = scene(*[500, RUNNING] * 20, DONE)
    ended = world.ends(spec_of(errors=Errors(max_consecutive=2, min_outage=0)))
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 41)
    assert len(world.event("poll_failed")) == 20


def test_pc_027_the_services_words_are_in_the_error(scene: MakeScene) -> None:
    """Code and message of a cancelled operation, its last answer and its key; all of it pickles."""
    body = {"status": "Canceled", "error": {"code": "OperationPreempted", "message": "moved away"}}
    world = scene({"status": "InProgress"}, body)
    until = Match("body.status", succeeded="Succeeded", cancelled="Canceled", pending="InProgress")
    error = world.fails(spec_of(until=until, reason="join(': ', [body.error.code, body.error.message])"))
    for told in (error, pickle.loads(pickle.dumps(error))):
        assert (told.outcome, told.key) == (Outcome.CANCELLED, "orders")
        assert "OperationPreempted: moved away" in str(told)
        assert told.last is not None
        assert told.last.body == body
        assert told.job is not None
        assert told.job.status == "Canceled"


def test_pc_028_an_end_with_part_of_the_work_brings_its_last_answer(scene: MakeScene) -> None:
    """An expired batch is an error that carries what it did; named as partial it is a result."""
    body = {"status": "expired", "completed": 1, "total": 10, "output_file_id": "f1"}
    until = Match("body.status", succeeded="completed", expired="expired", pending="in_progress")
    error = scene({"status": "in_progress"}, body).fails(spec_of(until=until))
    assert error.outcome is Outcome.EXPIRED
    assert error.last is not None
    assert error.last.body == body

    partial = Match("body.status", succeeded="completed", partial="expired", pending="in_progress")
    ended = scene({"status": "in_progress"}, body).ends(spec_of(until=partial, result="body.output_file_id"))
    assert (ended.outcome, ended.output) == (Outcome.PARTIAL, "f1")


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ({"status": "completed", "error_file_id": "e1"}, Outcome.FAILED),
        ({"status": "completed", "error_file_id": "e1", "output_file_id": "f1"}, Outcome.PARTIAL),
        ({"status": "completed", "output_file_id": "f1"}, Outcome.SUCCEEDED),
    ],
    ids=["errors only", "both", "output only"],
)
def test_pc_028_ordered_rules_tell_completed_from_completed(
    scene: MakeScene, body: dict[str, str], outcome: Outcome
) -> None:
    """Completed without output is a failure; with some errors it is partial, which returns with a mark on it."""
    until = Acceptors(
        [
            ("body.status == 'completed' && body.output_file_id && body.error_file_id", "partial"),
            ("body.status == 'completed' && body.output_file_id", "succeeded"),
            ("body.status == 'completed'", "failed"),
        ]
    )
    assert scene(body).ends(spec_of(until=until)).outcome is outcome


def test_pc_029_nothing_is_asked_after_the_end(scene: MakeScene) -> None:
    """A 400 that the spec calls a failure ends the job with its own words, not with those of a later 404."""
    world = scene(202, Answer(400, {"error": {"message": "quota"}}), 404)
    error = world.fails(spec_of(until=Status(failed="4xx"), reason="body.error.message"))
    assert (error.outcome, world.job.polls) == (Outcome.FAILED, 2)
    assert "quota" in str(error)
    assert error.last is not None
    assert (error.last.status, error.last.body) == (400, {"error": {"message": "quota"}})


def test_pc_029_a_400_that_nothing_judges_is_kept_as_the_last_error(scene: MakeScene) -> None:
    """Without a rule for it a 400 is a failed poll; where that is the last one allowed, the error shows it."""
    world = scene(202, Answer(400, {"error": {"message": "quota"}}), 404)
    error = world.fails(spec_of(until=Status(), limits=limits(max_polls=2)))
    assert (error.outcome, world.job.polls) == (Outcome.EXHAUSTED, 2)
    assert "quota" in str(error)
