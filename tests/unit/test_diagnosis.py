from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tarry import Errors, Expression, Fixed, Limits, Match, Outcome, Request
from tarry.core import JobState, cancelled, start
from tarry.core.diagnosis import explain
from tarry.words import HOUR, SECOND, ErrorKind, Phase
from tests.unit.scripted import GET, POST, RUNNING, Script, broken, http, spec, state


def test_a_condition_that_never_matched_is_named() -> None:
    """PC-081: with the path, the value and how often it was there."""
    script = Script(
        spec(until=Match("body.state", succeeded="Succeeded"), strategy=Fixed("1s"), limits=Limits(max_polls=60))
    )
    script.play(state("DONE"), forever=True)
    assert explain(script.state, max_polls=60, total_duration=24 * HOUR) == (
        "orders: exhausted; max_polls=60 are spent; the remote job may still run; 60 polls in 59s; "
        "your condition never matched; `body.state` was `DONE` in all 60 polls; "
        "`DONE` looks like an end and is named nowhere; last status DONE"
    )


@pytest.mark.parametrize(
    ("status", "changes", "said"),
    [
        ("Succeeded", {"confirm": 5}, "succeeded was seen 3× in a row, and confirm asks for more"),
        ("Approval", {}, "it waits for a person"),
    ],
    ids=["confirm", "blocked"],
)
def test_a_condition_that_matched_is_not_said_to_never_have(status: str, changes: dict[str, Any], said: str) -> None:
    """A limit cut it short: the line says what was missing yet."""
    until = Match("body.state", succeeded="Succeeded", blocked="Approval")
    script = Script(spec(until=until, strategy=Fixed("1s"), limits=Limits(max_polls=3), **changes))
    script.play(state(status), forever=True)
    told = explain(script.state, max_polls=3)
    assert said in told
    assert "never matched" not in told


def test_a_path_that_meets_an_object_shows_it() -> None:
    """PC-081: the nesting is wrong, and the line says what was there."""
    until = Match("body.status", succeeded="complete")
    script = Script(spec(until=until, strategy=Fixed("1s"), limits=Limits(total_duration="30s")))
    script.play(http(200, {"status": {"status": "complete"}}), forever=True)
    told = explain(script.state, None, 30 * SECOND)
    assert "timed_out; total_duration of 30s leaves no time for another poll" in told
    assert (
        "`body.status` was an object in all 30 polls; body.status is an object: write the path of the word in it"
        in told
    )


def test_several_values_are_counted() -> None:
    """Most frequent first, and not more than five of them."""
    script = Script(spec(strategy=Fixed("1s"), limits=Limits(max_polls=10)))
    script.play(*[RUNNING] * 3, *(state(f"s{n}") for n in range(7)))
    assert "`body.state` was `RUNNING` (3×), `s0` (1×), `s1` (1×), `s2` (1×), `s3` (1×) and others" in explain(
        script.state, 10
    )


def test_two_values_are_not_called_others() -> None:
    """All of them are shown."""
    script = Script(spec(strategy=Fixed("1s"), limits=Limits(max_polls=2)))
    script.play(RUNNING, state("QUEUED"))
    assert "`body.state` was `RUNNING` (1×), `QUEUED` (1×); last status QUEUED" in explain(script.state, 2)


def test_an_outage_says_what_broke() -> None:
    """The reason has the last error, which is then not said twice."""
    script = Script(spec(errors=Errors(max_consecutive=2, min_outage=0)))
    script.play(broken(ErrorKind.CONNECT), forever=True)
    assert explain(script.state) == (
        "orders: unreachable; 2 polls in a row failed: connect: it broke; the remote job may still run; "
        "2 polls, 2 of them failed in 2s"
    )


def test_an_unknown_submit_says_so() -> None:
    """And how the answer was lost."""
    script = Script(spec(submit=POST))
    script.play(broken(ErrorKind.TIMEOUT))
    assert explain(script.state) == (
        "orders: submit_unknown; the answer to the submit was lost; the remote job may or may not exist; look there, then settle it with reset; "
        "0 polls in 0s; last error: submit: timeout: it broke"
    )


def test_a_failure_says_what_the_service_said() -> None:
    """Status and reason."""
    script = Script(spec(reason="body.why"))
    script.play(http(200, {"state": "FAILED", "why": "no disk"}))
    assert explain(script.state) == (
        "orders: failed; no disk; 1 poll in 0s; `body.state` was `FAILED` (1×); last status FAILED"
    )


def test_a_job_under_way_can_be_explained_too() -> None:
    """Its phase stands for the outcome."""
    made, _ = start(spec(), "orders", 0)
    assert explain(made) == "orders: waiting; 0 polls"
    assert explain(cancelled(made, 90 * SECOND)) == "orders: cancelled; cancelled here; 0 polls in 1m30s"


def test_short_times_have_fractions() -> None:
    """Long ones do not."""
    made, _ = start(spec(), "orders", 0)
    assert explain(cancelled(made, 1_234_567)).endswith("0 polls in 1.234s")
    assert explain(cancelled(made, 61_234_567)).endswith("0 polls in 1m1s")


def test_a_limit_that_is_not_known_is_not_invented() -> None:
    """The limits may have been changed since."""
    ended = JobState("k", Phase.DONE, 0, None, None, outcome=Outcome.EXHAUSTED, finished_at=0)
    assert explain(ended) == "k: exhausted; the remote job may still run; 0 polls in 0s"
    assert explain(replace(ended, outcome=Outcome.TIMED_OUT)).startswith("k: timed_out; the remote job")


@pytest.mark.parametrize("text", ["\x1b[31m\r\n\u2028\x00\ud800", '"\\' * 300, "€" * 3000])
def test_it_is_one_clean_line_of_bounded_length(text: str) -> None:
    """Whatever the service wrote, and whatever the key holds."""
    script = Script(
        spec(
            poll=Request("GET", GET.url, accepted=["5xx"]),
            until=Expression("body.x == '1'") | Match("body.state", succeeded="DONE"),
            strategy=Fixed("1s"),
            limits=Limits(max_polls=20),
        )
    )
    script.play(*(http(200, {"x": f"{n}{text}", "state": text}) for n in range(20)))
    told = explain(replace(script.state, key=text, error=text, reason=text), 20)
    assert len(told.encode()) <= 600
    assert told.isprintable()
