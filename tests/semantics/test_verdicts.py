"""S8 to S13: what an answer means."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import Acceptors, Expression, Fixed, Limits, Match, Outcome, Phase, Status
from tarry.core.policies import Errors
from tarry.testing import Answer
from tarry.words import ErrorKind
from tests.worlds import (
    DONE,
    RUNNING,
    STATE,
    MakeScene,
    limits,
    scene_in_memory,  # noqa: F401  # a fixture: what an answer means is no matter of the store
    spec_of,
)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (True, Outcome.SUCCEEDED),
        (1, Outcome.SUCCEEDED),
        (-1, Outcome.FAILED),
        (False, Outcome.EXHAUSTED),
        (0, Outcome.EXHAUSTED),
        (2, Outcome.INVALID),
        (0.5, Outcome.INVALID),
        ("DONE", Outcome.INVALID),
        ("", Outcome.INVALID),
        ([1], Outcome.INVALID),
        ({}, Outcome.INVALID),
        (None, Outcome.INVALID),
    ],
    ids=repr,
)
def test_s08_an_answer_is_a_verdict_or_invalid(scene: MakeScene, answer: Any, outcome: Outcome) -> None:
    """True, false, 1, 0 and -1 are verdicts; nothing else is taken for truth."""
    world = scene({"answer": answer})
    assert world.ends(spec_of(until=Expression("body.answer"), limits=Limits(max_polls=2))).outcome is outcome


def raises(document: Any) -> bool:
    """A condition with a bug."""
    return document["body"]["missing"] > 0


def test_s08_a_condition_that_raises_is_a_failed_poll(scene: MakeScene) -> None:
    """Its error is kept, and the wait goes on."""
    error = scene(RUNNING).fails(spec_of(until=raises, limits=Limits(max_polls=3)))
    assert error.outcome is Outcome.EXHAUSTED
    assert "KeyError" in str(error)


WORDS = ["succeeded", "partial", "skipped", "failed", "cancelled", "expired"]


@pytest.mark.parametrize("word", WORDS)
def test_s08_succeeded_partial_and_skipped_return_and_the_rest_raise(scene: MakeScene, word: str) -> None:
    """Each terminal verdict is the outcome of its name."""
    world = scene(DONE)
    until = Acceptors([("body.state == 'DONE'", word), ("body.never", "succeeded")])
    if word in WORDS[:3]:
        assert world.ends(spec_of(until=until)).outcome == word
    else:
        assert world.fails(spec_of(until=until)).outcome == word


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [("transient", Outcome.EXHAUSTED), ("not_found", Outcome.LOST), ("redirect", Outcome.INVALID)],
)
def test_s08_the_other_verdicts_mean_what_they_say(scene: MakeScene, verdict: str, outcome: Outcome) -> None:
    """Transient is a failed poll, not_found is a 404, and a redirect without a target is invalid."""
    until = Acceptors([("body.state == 'DONE'", verdict), ("body.never", "succeeded")])
    spec = spec_of(until=until, errors=Errors(not_found_grace=0), limits=Limits(max_polls=6))
    assert scene(DONE).ends(spec).outcome is outcome


def judged(left: str, right: str, combine: Any) -> Any:
    """Two verdicts of one answer, combined."""

    def one(name: str) -> Match:
        return Match(f"body.{name}", succeeded="succeeded", failed="failed", pending="pending", cancelled="cancelled")

    return combine(one("a"), one("b")), {"a": left, "b": right}


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [
        ("succeeded", "succeeded", "succeeded", "succeeded"),
        ("succeeded", "pending", "exhausted", "succeeded"),
        ("pending", "failed", "failed", "exhausted"),
        ("failed", "cancelled", "failed", "failed"),
        ("failed", "succeeded", "failed", "succeeded"),
    ],
)
def test_s08_conditions_combine(scene: MakeScene, left: str, right: str, both: str, either: str) -> None:
    """And: the first failure, else success when both have; or: a success, else pending, else the first."""
    once = Limits(max_polls=1)
    until, body = judged(left, right, lambda a, b: a & b)
    assert scene(body).ends(spec_of(until=until, limits=once)).outcome == both
    until, body = judged(left, right, lambda a, b: a | b)
    assert scene(body).ends(spec_of(until=until, limits=once)).outcome == either


def test_s08_not_swaps_succeeded_and_pending_only(scene: MakeScene) -> None:
    """A failure stays one."""
    once = Limits(max_polls=1)
    for body, outcome in ((RUNNING, "succeeded"), (DONE, "exhausted"), ({"state": "FAILED"}, "failed")):
        assert scene(body).ends(spec_of(until=~STATE, limits=once)).outcome == outcome


def test_s09_not_ready_is_no_error(scene: MakeScene) -> None:
    """A hundred pending polls spend no budget, of which a single failure would be the end."""
    world = scene(*[RUNNING] * 100, DONE)
    ended = world.ends(spec_of(errors=Errors(max_consecutive=1, min_outage=0)))
    assert (ended.outcome, world.event("poll_failed")) == (Outcome.SUCCEEDED, [])


def test_s10_a_missing_status_is_pending_and_an_unknown_one_is_told_once(scene: MakeScene) -> None:
    """The wait goes on; each new value is one event, and the values seen are in the error."""
    world = scene({}, {"state": None}, {"state": "ODD"}, {"state": "ODD"}, {"state": "STRANGE"})
    error = world.fails(spec_of(limits=Limits(max_polls=8)))
    assert world.event("unknown_status") == [{"value": "ODD"}, {"value": "STRANGE"}]
    assert "`ODD` (2×)" in str(error)
    assert "`STRANGE` (4×)" in str(error)
    failing = Match("body.state", succeeded="DONE", unknown="failed")
    assert scene({}, {"state": "ODD"}).ends(spec_of(until=failing)).outcome is Outcome.FAILED


def test_s11_blocked_is_a_state_of_its_own(scene: MakeScene) -> None:
    """It waits for a person: an event when it begins and when it ends, and no end of the job."""
    world = scene(RUNNING, {"state": "APPROVE"}, {"state": "APPROVE"}, RUNNING, DONE)
    until = Match("body.state", succeeded="DONE", pending="RUNNING", blocked="APPROVE")

    async def main() -> tuple[Any, Any]:
        async with world.poller() as poller:
            await poller.add("orders", spec_of(until=until))
            while world.job.polls < 2:
                try:
                    await poller.await_job("orders", wait_timeout="1s")
                except TimeoutError:
                    continue
            return await poller.get("orders"), await poller.await_job("orders")

    job, ended = world.run(main)
    assert (job.phase, job.outcome, ended.outcome) == (Phase.BLOCKED, None, Outcome.SUCCEEDED)
    assert (len(world.event("blocked")), len(world.event("unblocked"))) == (1, 1)


def test_s12_success_wins_over_every_limit(scene: MakeScene) -> None:
    """On the last poll that `max_polls` allows, and in an answer that came before the deadline."""
    assert scene(RUNNING, DONE).ends(spec_of(limits=Limits(max_polls=2))).outcome is Outcome.SUCCEEDED
    world = scene(RUNNING, Answer(200, DONE, delay=900_000))
    ended = world.ends(spec_of(strategy=Fixed("9s"), limits=limits("10s")))
    assert (ended.outcome, world.elapsed()) == (Outcome.SUCCEEDED, 9.9)


def test_s12_a_terminal_verdict_can_be_confirmed(scene: MakeScene) -> None:
    """Failed polls neither extend nor break the run; another verdict does; a limit cuts it."""
    spec = spec_of(confirm=3)
    assert scene(DONE, 500, DONE, DONE).ends(spec).polls == 4
    assert scene(DONE, DONE, RUNNING, DONE, DONE, DONE).ends(spec).polls == 6
    cut = scene(DONE).ends(spec_of(confirm=3, limits=Limits(max_polls=2)))
    assert cut.outcome is Outcome.EXHAUSTED


@pytest.mark.parametrize("code", [429, 500, 502, 529, 400, 302, 418], ids=str)
def test_s13_the_http_status_is_not_the_jobs(scene: MakeScene, code: int) -> None:
    """An answer that is not 2xx is not judged by a condition that reads the body alone, whatever its body says."""
    world = scene(Answer(code, {"state": "FAILED"}), DONE)
    assert world.ends(spec_of()).outcome is Outcome.SUCCEEDED
    assert len(world.event("poll_failed")) == 1


def test_s13_a_condition_that_reads_the_status_is_shown_everything(scene: MakeScene) -> None:
    """And one that reads the error is shown that there was no answer."""
    assert scene(202, 500).ends(spec_of(until=Status(failed="5xx"))).outcome is Outcome.FAILED
    until = Acceptors([("error == 'timeout'", "failed"), ("body.state == 'DONE'", "succeeded")])
    assert scene(ErrorKind.TIMEOUT).ends(spec_of(until=until)).outcome is Outcome.FAILED


def test_s13_no_json_is_a_failed_poll_and_304_is_unchanged(scene: MakeScene) -> None:
    """Where the body is read; an unchanged answer is a good poll."""
    world = scene(Answer(200, text="<html>"), 304, DONE)
    assert world.ends(spec_of()).outcome is Outcome.SUCCEEDED
    assert len(world.event("poll_failed")) == 1
