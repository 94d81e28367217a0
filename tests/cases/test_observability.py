"""A wait tells how it ended, why, and no more than that."""

from __future__ import annotations

import logging

import pytest

from tarry import Exponential, Fixed, JobSpec, Limits, Match, Outcome, Request, SpecError, WaitTimeout, check
from tarry.words import ErrorKind
from tests.worlds import DONE, RUNNING, MakeScene, limits, spec_of


def test_pc_080_every_end_is_told_once(scene: MakeScene) -> None:
    """The limit that fires while the job sleeps is one event of its own, with the reason."""
    world = scene(RUNNING)
    world.fails(spec_of(strategy=Fixed("7s"), limits=limits("20s")))
    assert [told["outcome"] for told in world.event("finished")] == ["timed_out"]
    assert world.kinds().count("finished") == 1


def test_pc_080_a_stop_of_the_process_is_no_end_of_the_job(scene: MakeScene) -> None:
    """It tells of nothing, and the next process tells of the end, once."""
    world = scene(RUNNING, DONE)

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", spec_of(strategy=Fixed("1m")), wait_timeout="5s")

    world.run(main)
    assert world.event("finished") == []
    world.ends(None)
    assert [told["outcome"] for told in world.event("finished")] == ["succeeded"]


def test_pc_080_isolated_failures_are_no_alarm(scene: MakeScene, caplog: pytest.LogCaptureFixture) -> None:
    """Three in a hundred polls log nothing above INFO; each is an event, and so is the recovery."""
    broken = {20: ErrorKind.TIMEOUT, 50: ErrorKind.TIMEOUT, 80: ErrorKind.TIMEOUT}
    world = scene(*[broken.get(n, RUNNING) for n in range(99)], DONE)
    with caplog.at_level(logging.INFO, logger="tarry"):
        world.ends(spec_of())
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
    assert len(world.event("poll_failed")) == len(world.event("recovered")) == 3


def test_pc_080_a_run_of_failures_is_told_once(scene: MakeScene) -> None:
    """Its beginning, and its end with the number of failed polls; not each of them."""
    world = scene(RUNNING, *[500] * 6, DONE)
    world.ends(spec_of())
    assert len(world.event("poll_failed")) == 1


def test_pc_081_a_condition_that_never_matches_is_explained(scene: MakeScene) -> None:
    """The error says what was found at the path instead, and how often."""
    world = scene({"status": {"status": "complete"}})
    error = world.fails(spec_of(until=Match("body.status", succeeded="complete"), limits=limits("30s")))
    assert error.outcome is Outcome.TIMED_OUT
    assert "your condition never matched; `body.status` was an object in all 16 polls" in str(error)


def test_pc_081_a_condition_can_be_tried_on_an_answer() -> None:
    """Before anything is sent, `check` says that the path leads to an object."""
    spec = spec_of(until=Match("body.status", succeeded="complete"))
    (checked,) = check(spec, [{"body": {"status": {"status": "complete"}}}])
    assert (checked.outcome, checked.verdict) == (None, "unknown")
    assert any("object" in problem for problem in checked.problems)


def test_pc_081_a_value_that_no_set_names_is_shown(scene: MakeScene) -> None:
    """A word that looks like the end, and was in no set, is in the error with its count."""
    world = scene(RUNNING, *[{"state": "COMPLETE"}] * 20)
    error = world.fails(spec_of(limits=limits("30s")))
    assert "`COMPLETE` (15×)" in str(error)
    assert "`COMPLETE` looks like an end and is named nowhere" in str(error)
    assert world.event("unknown_status") == [{"value": "COMPLETE"}]


POLL = Request("GET", "https://api.example.com/jobs/1")
UNTIL = Match("body.state", succeeded="DONE")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: JobSpec(poll=POLL, until=UNTIL, max_pols=3), "max_pols: unknown name"),
        (lambda: Limits(max_pols=3), "Limits.max_pols: unknown name; did you mean max_polls"),
        (lambda: Exponential("1s", maximun="5s"), "maximun: unknown name; did you mean maximum"),
        (lambda: Limits(total_duration=-1), "Limits.total_duration"),
        (lambda: Fixed("5 parsecs"), "Fixed.interval"),
        (lambda: Exponential("1m", maximum="5s"), "Exponential.maximum: shorter than initial"),
        (lambda: Limits(total_duration=None), "write both as None"),
    ],
    ids=["spec", "limits", "strategy", "negative", "no duration", "maximum below initial", "no limit"],
)
def test_pc_082_a_misspelt_setting_is_refused_at_once(make: object, words: str) -> None:
    """Before any request, naming the field and what was meant."""
    with pytest.raises(SpecError, match=words.replace(".", r"\.")):
        make()


def test_pc_082_a_call_takes_no_unknown_argument(scene: MakeScene) -> None:
    """There is nothing that would swallow a misspelt argument of a call."""
    world = scene()

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(TypeError, match="max_pols"):
                await poller.await_job("orders", spec_of(), max_pols=3)

    world.run(main)
    assert world.job.requests == []


def test_pc_082_a_wait_without_limits_is_asked_for_in_words(scene: MakeScene) -> None:
    """Both limits written as None: the job is polled for as long as it takes."""
    world = scene(*[RUNNING] * 40, DONE)
    ended = world.ends(spec_of(strategy=Fixed("5s"), limits=Limits(max_polls=None, total_duration=None)))
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 41)
