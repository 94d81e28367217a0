from __future__ import annotations

from typing import Any

import pytest

from tarry import Acceptors, Expression, Fixed, Hints, JobSpec, Limits, Match, Request, check
from tarry.core.misses import looks_terminal
from tarry.core.observation import Observation
from tarry.words import SECOND, CallKind, Outcome, WaitSource

GET = Request("GET", "https://api.example.com/jobs/7")
STATE = Match("body.state", succeeded="DONE", failed="FAILED", pending="RUNNING")


def spec(**changes: Any) -> JobSpec:
    fields: dict[str, Any] = {"poll": GET, "until": STATE, "strategy": Fixed("10s")}
    return JobSpec(**{**fields, **changes})


def body(**members: Any) -> dict[str, Any]:
    return {"body": members}


@pytest.mark.parametrize(
    ("answer", "verdict", "outcome"),
    [
        (body(state="RUNNING"), "pending", None),
        (body(state="DONE"), "succeeded", Outcome.SUCCEEDED),
        (body(state="FAILED"), "failed", Outcome.FAILED),
        (body(state="ODD"), "unknown", None),
        (body(), "pending", None),
        ({"status": 304}, "unchanged", None),
        ({"status": 404}, "pending", None),
        ({"status": 410}, "not_found", Outcome.LOST),
        ({"status": 401}, "transient", None),
        ({"status": 503}, "transient", None),
        ({"error": "timeout"}, "transient", None),
        ({"text": "<html>"}, "transient", None),
        ({}, "transient", None),
        ({"status": 204}, "pending", None),
    ],
)
def test_an_answer_has_a_verdict(answer: dict[str, Any], verdict: str, outcome: Outcome | None) -> None:
    """What the poller would make of it, in one word, and whether the job would end."""
    (told,) = check(spec(), [answer])
    assert (told.verdict, told.outcome) == (verdict, outcome)
    assert (told.wait is None) == (outcome is not None)
    assert (told.wait_source is None) == (outcome is not None)


def test_the_wait_and_what_set_it_are_told() -> None:
    """The strategy's wait, the server's hint with its bound, and the backoff of a failure."""
    told = check(
        spec(hints=Hints(maximum="1m")),
        [
            body(state="RUNNING"),
            {**body(state="RUNNING"), "headers": {"Retry-After": "30"}},
            {**body(state="RUNNING"), "headers": {"retry-after": "600"}},
            {"error": "connect"},
            {"error": "connect"},
        ],
    )
    assert [(one.wait, one.wait_source) for one in told] == [
        (10 * SECOND, WaitSource.STRATEGY),
        (30 * SECOND, WaitSource.HINT),
        (60 * SECOND, WaitSource.HINT_BOUND),
        (5 * SECOND, WaitSource.ERROR_BACKOFF),
        (10 * SECOND, WaitSource.ERROR_BACKOFF),
    ]
    assert told[3].error == "connect: connect, as given"


def test_limits_count_along() -> None:
    """Answers are polls one after the other: the last that `max_polls` allows ends the job."""
    told = check(spec(limits=Limits(max_polls=2)), [body(state="RUNNING")] * 2)
    assert [one.outcome for one in told] == [None, Outcome.EXHAUSTED]


def test_what_comes_after_the_end_is_judged_all_the_same() -> None:
    """Each answer of a collection has its verdict."""
    told = check(spec(), [body(state="DONE"), body(state="FAILED"), body(state="RUNNING")])
    assert [one.verdict for one in told] == ["succeeded", "failed", "pending"]


def test_the_output_is_shown() -> None:
    """What `result` selects of the answer that ends the job, or why that is nothing."""
    chosen = spec(result="body.url")
    assert check(chosen, [body(state="DONE", url="u")])[0].output == "u"
    assert check(chosen, [body(state="DONE")])[0].problems == ("result: body.url selects nothing",)
    (broken,) = check(spec(result="sum(body.url)"), [body(state="DONE", url="u")])
    assert broken.problems[0].startswith("result: JMESPathTypeError")
    assert check(chosen, [body(state="RUNNING", url="u")])[0].output is None
    assert check(spec(fetch=GET), [body(state="DONE")])[0].output is None


def test_the_failures_words_are_shown() -> None:
    """What `reason` selects, as the error of the job would say it."""
    assert check(spec(reason="body.error"), [body(state="FAILED", error="no disk")])[0].error == "no disk"


def test_the_answer_to_the_submit_is_seen() -> None:
    """Conditions read it, and its hint delays the first poll."""
    submitted = spec(
        submit=Request("POST", "https://api.example.com/jobs"), until=Expression("submit.body.n == body.n")
    )
    (told,) = check(submitted, [body(n=3)], submit=body(n=3))
    assert told.verdict == "succeeded"
    assert check(submitted, [body(n=3)])[0].verdict == "pending"
    with pytest.raises(ValueError, match="submit: the job is not polled after it: submit refused: HTTP 422"):
        check(submitted, [], submit={"status": 422})


def test_a_moved_status_url_is_followed() -> None:
    """The next answer is taken for one of the URL that the last one led to, and may lead on from there."""
    moving = spec(
        until=Acceptors([("body.next", "redirect"), ("body.state == 'DONE'", "succeeded")]), redirect="{poll.body.next}"
    )
    told = check(moving, [body(next="/jobs/8"), body(next="9"), body(state="DONE")])
    assert [each.verdict for each in told] == ["redirect", "redirect", "succeeded"]


def test_a_url_that_cannot_be_filled_in_matters_not() -> None:
    """What the submit would have answered is not known: the answers are judged all the same."""
    unknown = spec(
        submit=Request("POST", "https://api.example.com/jobs"),
        poll=Request("GET", "https://api.example.com/jobs/{submit.body.id}"),
    )
    assert check(unknown, [body(state="DONE")])[0].verdict == "succeeded"


def test_a_callable_has_no_status() -> None:
    """What it returned is the body."""
    (told,) = check(spec(poll=test_a_callable_has_no_status), [body(state="DONE")])
    assert told.verdict == "succeeded"


def test_an_observation_is_an_answer() -> None:
    """As a job keeps its last one."""
    seen = Observation(CallKind.POLL, 5, 9, 200, {}, {"state": "DONE"}, is_json=True)
    assert check(spec(), [seen])[0].outcome is Outcome.SUCCEEDED


def test_a_date_is_seen_from_now() -> None:
    """A hint that is a date needs to know when the answer came."""
    until = {**body(state="RUNNING"), "headers": {"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}}
    assert check(spec(), [until], now=20 * SECOND)[0].wait == 40 * SECOND


@pytest.mark.parametrize(
    ("until", "answer", "problems"),
    [
        (STATE, body(state={"name": "DONE"}), ("body.state is an object: write the path of the word in it",)),
        (STATE, body(state=["DONE"]), ('body.state is a list: select an element, or say over="all" or "any"',)),
        (STATE, body(state="COMPLETE"), ("COMPLETE is named nowhere and looks like an end",)),
        (STATE, body(state="Warming up"), ("Warming up is named nowhere",)),
        (STATE, body(status="DONE"), ("body.state: missing",)),
        (STATE, body(state="RUNNING"), ()),
        (Acceptors([("body.a && body.b", "succeeded")]), body(), ("body.a and body.b: missing",)),
        (
            Acceptors([("body.a == 'x'", "succeeded")]),
            body(a={}),
            ("body.a is an object: write the path of the word in it",),
        ),
    ],
)
def test_a_near_miss_is_named(until: Any, answer: dict[str, Any], problems: tuple[str, ...]) -> None:
    """PC-081: why an answer ends nothing, where the condition may be at fault."""
    assert check(spec(until=until), [answer])[0].problems == problems


@pytest.mark.parametrize(
    ("until", "verdict", "error"),
    [
        (Expression("body.state"), "invalid", "the text DONE"),
        (Acceptors([("body.state", "redirect"), ("body.x", "succeeded")]), "redirect", "redirect"),
        (Acceptors([("sum(body.state)", "succeeded")]), "transient", "JMESPathTypeError"),
        (Acceptors([("body.state", "transient"), ("body.x", "succeeded")]), "transient", "transient"),
        (Acceptors([("body.state", "not_found"), ("body.x", "succeeded")]), "pending", None),
    ],
)
def test_a_condition_that_gives_no_plain_verdict(until: Any, verdict: str, error: str | None) -> None:
    """Invalid, a failed poll, or too early to be found: as the poller would say."""
    (told,) = check(spec(until=until), [body(state="DONE")])
    assert told.verdict == verdict
    assert error is None or error in str(told.error)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"boddy": 1}, r"answers\[0\]: no answer; write an object with any of body, error"),
        ([200], r"answers\[0\]: no answer"),
        ({"status": "200"}, r"answers\[0\].status: an HTTP code"),
        ({"status": 99}, r"answers\[0\].status"),
        ({"headers": ["a"]}, r"answers\[0\].headers: an object of texts"),
        ({"headers": {"a": 1}}, r"answers\[0\].headers: an object of texts"),
        ({"error": "flood"}, r"answers\[0\].error: one of connect, timeout"),
    ],
)
def test_what_is_no_answer_is_refused(answer: Any, problem: str) -> None:
    """With its place, and what to write instead."""
    with pytest.raises(ValueError, match=problem):
        check(spec(), [answer])


@pytest.mark.parametrize(
    ("word", "is_end"),
    [("DONE", True), ("Timed Out", True), ("timed_out", True), ("cancelling", False), ("RUNNING", False), ("", False)],
)
def test_a_word_may_look_like_an_end(word: str, is_end: bool) -> None:
    """By its stem; a participle is under way."""
    assert looks_terminal(word) is is_end
