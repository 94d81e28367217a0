"""The scripted job: a transport that answers as told and remembers what it was asked."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tarry.core.observation import CallError, Observation
from tarry.ports import Prepared
from tarry.testing import Answer, FakeClock, ScriptedJob, ScriptExhausted, Seen
from tarry.testing.scripted import Scripted
from tarry.words import SECOND, CallKind, ErrorKind

POLL = Prepared(CallKind.POLL, "GET", "https://api.example.com/jobs/1", timeout=30 * SECOND)
SUBMIT = Prepared(CallKind.SUBMIT, "POST", "https://api.example.com/jobs", (("X-Key", "k"),), b"{}")


def play(job: ScriptedJob, clock: FakeClock, *requests: Prepared) -> list[Observation]:
    """Send these one after the other."""

    async def main() -> list[Observation]:
        return [await job.send(request) for request in requests]

    return clock.run(main)


def one(scripted: Scripted, request: Prepared = POLL) -> Observation:
    """What one poll sees of this answer."""
    clock = FakeClock(0)
    return play(ScriptedJob([scripted], clock=clock), clock, request)[0]


def test_answers_come_in_order_and_the_last_one_repeats() -> None:
    """A script of two answers four polls."""
    clock = FakeClock(0)
    job = ScriptedJob([{"state": "RUNNING"}, {"state": "DONE"}], clock=clock)
    seen = play(job, clock, POLL, POLL, POLL, POLL)
    assert [each.body for each in seen] == [{"state": "RUNNING"}] + 3 * [{"state": "DONE"}]
    assert job.polls == 4


def test_running_out_is_an_error_where_asked_for() -> None:
    """With repeat off, one poll too many fails the test and says how many there were."""
    clock = FakeClock(0)
    job = ScriptedJob([200], clock=clock, repeat=False)
    with pytest.raises(ScriptExhausted, match=r"poll 2 .* 1 answer"):
        play(job, clock, POLL, POLL)


def test_a_dict_is_a_json_body_and_an_int_a_status() -> None:
    """The short forms mean what they look like."""
    answered = one({"state": "DONE"})
    assert (answered.status, answered.body, answered.is_json, answered.error) == (200, {"state": "DONE"}, True, None)
    assert answered.url == POLL.url
    empty = one(503)
    assert (empty.status, empty.body, empty.is_json) == (503, None, False)


def test_text_is_a_body_that_is_not_json() -> None:
    """An HTML page comes as text."""
    page = one(Answer(502, text="<html>"))
    assert (page.status, page.body, page.is_json) == (502, "<html>", False)


def test_header_names_are_lower_case() -> None:
    """As every transport gives them."""
    assert one(Answer(429, headers={"Retry-After": "7"})).headers == {"retry-after": "7"}


@pytest.mark.parametrize(
    ("scripted", "kind", "sent"),
    [
        (ErrorKind.CONNECT, ErrorKind.CONNECT, False),
        (ErrorKind.POOL, ErrorKind.POOL, False),
        (ErrorKind.PROTOCOL, ErrorKind.PROTOCOL, True),
        (CallError(ErrorKind.TIMEOUT, "mine", sent=False), ErrorKind.TIMEOUT, False),
        (TimeoutError, ErrorKind.TIMEOUT, True),
        (TimeoutError("slow"), ErrorKind.TIMEOUT, True),
        (ConnectionRefusedError("no"), ErrorKind.CONNECT, False),
        (ConnectionResetError, ErrorKind.PROTOCOL, True),
        (Answer(error=ErrorKind.TOO_LARGE), ErrorKind.TOO_LARGE, True),
    ],
)
def test_errors_become_observations(scripted: Scripted, kind: ErrorKind, *, sent: bool) -> None:
    """Nothing is raised: a kind, an error or an exception is seen as a classified error."""
    seen = one(scripted)
    assert seen.status is None
    assert seen.error is not None
    assert (seen.error.kind, seen.error.sent) == (kind, sent)
    assert seen.error.detail


def test_an_exception_keeps_its_words() -> None:
    """The detail says what was raised."""
    seen = one(ConnectionResetError("by peer"))
    assert seen.error is not None
    assert seen.error.detail == "ConnectionResetError: by peer"


def test_a_function_sees_the_request() -> None:
    """An answer may be made of the request, in any short form."""
    assert one(lambda request: {"asked": request.url}).body == {"asked": POLL.url}
    assert one(lambda _: 204).status == 204


def test_what_a_function_raises_comes_through() -> None:
    """A failed assertion inside a script fails the test."""

    def check(_: Prepared) -> int:
        raise AssertionError("wrong request")

    with pytest.raises(AssertionError, match="wrong request"):
        one(check)


@pytest.mark.parametrize("delay", [5 * SECOND, timedelta(seconds=5)])
def test_a_delay_takes_time(delay: int | timedelta) -> None:
    """The call starts and ends when the clock says so."""
    seen = one(Answer(delay=delay))
    assert (seen.started_at, seen.finished_at, seen.status) == (0, 5 * SECOND, 200)


def test_the_timeout_of_the_request_cuts_the_call() -> None:
    """A slower answer is a timeout at the timeout; one that just makes it counts."""
    late = one(Answer(delay=30 * SECOND + 1))
    assert late.finished_at == 30 * SECOND
    assert late.error is not None
    assert late.error.kind is ErrorKind.TIMEOUT
    assert one(Answer(delay=30 * SECOND)).status == 200


def test_submits_have_a_script_of_their_own() -> None:
    """Submits and polls do not use up each other's answers."""
    clock = FakeClock(0)
    job = ScriptedJob([{"n": 1}, {"n": 2}], submit=[503, {"jobId": "a"}], clock=clock)
    seen = play(job, clock, SUBMIT, POLL, SUBMIT, POLL)
    assert [each.status for each in seen] == [503, 200, 200, 200]
    assert [each.body for each in seen] == [None, {"n": 1}, {"jobId": "a"}, {"n": 2}]
    assert (job.polls, job.submits) == (2, 2)
    assert [each.kind for each in seen] == [CallKind.SUBMIT, CallKind.POLL] * 2


def test_one_submit_answer_needs_no_list_and_none_is_accepted() -> None:
    """A single answer works as it is, an error kind too; without any, the job is accepted."""
    clock = FakeClock(0)
    assert play(ScriptedJob([200], submit={"id": 7}, clock=clock), clock, SUBMIT)[0].body == {"id": 7}
    failed = play(ScriptedJob([200], submit=ErrorKind.TIMEOUT, clock=clock), clock, SUBMIT)[0]
    assert failed.error is not None
    accepted = play(ScriptedJob([200], clock=clock), clock, SUBMIT)[0]
    assert (accepted.status, accepted.body) == (202, {"jobId": "job-1", "state": "QUEUED"})


def test_requests_are_remembered_whole() -> None:
    """When, what, with which headers and bytes."""
    clock = FakeClock(7)
    job = ScriptedJob([200], clock=clock)
    play(job, clock, SUBMIT)
    assert job.requests == [Seen(7, CallKind.SUBMIT, "POST", SUBMIT.url, {"x-key": "k"}, b"{}")]


def test_answers_do_not_share_their_bodies() -> None:
    """A condition that changes one body does not change the next."""
    clock = FakeClock(0)
    job = ScriptedJob([{"items": []}], clock=clock)
    first, second = play(job, clock, POLL, POLL)
    assert isinstance(first.body, dict)
    first.body["items"] = "spoilt"
    assert second.body == {"items": []}


def test_an_empty_script_is_refused() -> None:
    """There is nothing to repeat."""
    with pytest.raises(ValueError, match="at least one answer for a poll"):
        ScriptedJob([], clock=FakeClock())
    with pytest.raises(ValueError, match="at least one answer for a submit"):
        ScriptedJob([200], submit=[], clock=FakeClock())


def test_a_boolean_is_no_answer() -> None:
    """True is not a status, though Python counts it as an int."""
    with pytest.raises(TypeError, match="True or False"):
        one(True)


def test_closing_is_remembered() -> None:
    """A test can tell whether the transport was closed."""
    job = ScriptedJob([200], clock=FakeClock())
    assert not job.closed
    asyncio.run(job.aclose())
    assert job.closed
