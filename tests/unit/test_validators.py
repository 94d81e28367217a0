"""Conditional polls: what marks an answer, when it goes with the next poll, and what a 304 leaves as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tarry import (
    Batch,
    Expression,
    Fixed,
    JobSpec,
    Limits,
    Match,
    Outcome,
    Poller,
    Request,
    SpecError,
    Status,
    WaitTimeout,
)
from tarry.core.answers import Validators
from tarry.core.observation import Observation
from tarry.core.validators import unmarked
from tarry.ports import Prepared
from tarry.testing import Answer, Behaviour, StubService
from tarry.words import CallKind, ErrorKind
from tests.pollers import QUEUED, RUNNING, SUCCEEDED, World, polled
from tests.unit.scripted import DONE, GET, Script, broken, http, spec, state

URL = "https://api.example.com/jobs/1"
POLL = Request("GET", URL, conditional=True)
MARK = {"etag": '"a"'}
MARKED = state("RUNNING", headers=MARK)
DATE = "Thu, 01 Jan 2026 00:00:10 GMT"
OLD = "Thu, 01 Jan 2026 00:00:09 GMT"


def conditional(**fields: Any) -> JobSpec:
    """A job that is polled conditionally."""
    return spec(**{"poll": POLL, "strategy": Fixed("10s"), **fields})


def played(*answers: Any, **fields: Any) -> Script:
    """A job after these answers."""
    script = Script(conditional(**fields))
    script.play(*answers)
    return script


# What is kept.


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        (MARK, ('"a"', None)),
        ({"etag": 'W/"a"'}, ('W/"a"', None)),
        ({"etag": '""'}, ('""', None)),
        ({"etag": '"a"', "last-modified": OLD, "date": DATE}, ('"a"', OLD)),
        ({"last-modified": OLD, "date": DATE}, (None, OLD)),
        ({}, None),
        ({"etag": "*"}, None),
        ({"etag": "a"}, None),
        ({"etag": '"a", "b"'}, None),
        ({"etag": '"\u00e9"'}, None),
        ({"etag": '"\x7f"'}, None),
        ({"etag": f'"{"a" * 198}"'}, (f'"{"a" * 198}"', None)),
        ({"etag": f'"{"a" * 199}"'}, None),
        ({"last-modified": OLD}, None),
        ({"last-modified": DATE, "date": DATE}, None),
        ({"last-modified": "yesterday", "date": DATE}, None),
    ],
    ids=[
        "etag", "weak", "empty", "both", "date", "none", "star", "unquoted", "several", "not_ascii", "control",
        "longest", "too_long", "undated", "same_second", "no_date",
    ],
)  # fmt: skip
def test_what_marks_an_answer_is_kept(headers: Mapping[str, str], kept: tuple[str, str] | None) -> None:
    """Well-formed and bounded; a date only where a change within its second would show."""
    script = played(state("RUNNING", headers=headers))
    assert script.answers.validators == (None if kept is None else Validators(URL, *kept))


def test_a_spec_that_does_not_ask_keeps_nothing() -> None:
    """Nor one whose own header decides, nor a callable."""
    own = Request("GET", URL, headers={"if-none-match": '"mine"'}, conditional=True)
    for poll in (GET, own, lambda: None):
        assert played(MARKED, poll=poll).answers.validators is None


def test_an_answer_of_nowhere_is_marked_for_nowhere() -> None:
    """A transport may give no URL; a query, which may hold secrets, is never kept."""

    def at(url: str | None) -> Any:
        return lambda kind, now: replace(MARKED(kind, now), url=url)

    assert played(at(None)).answers.validators == Validators("", '"a"')
    assert played(at(f"{URL}?key=TOPSECRET")).answers.validators == Validators(URL, '"a"')


@pytest.mark.parametrize(
    ("between", "fields"),
    [
        (http(503), {}),
        (broken(), {}),
        (http(404), {}),
        (state("RUNNING"), {}),
        (http(307, None, {"location": "/jobs/2", **MARK}), {}),
        (state("DONE", headers=MARK), {"confirm": 2}),
        (state("DONE", headers=MARK), {}),
        (
            state("RUNNING", 409, headers=MARK),
            {"poll": POLL.model_copy(update={"accepted": (409,)})},
        ),
    ],
    ids=["failed", "broken", "missing", "unmarked", "moved", "confirming", "over", "not_2xx"],
)
def test_whatever_comes_in_between_drops_them(between: Any, fields: dict[str, Any]) -> None:
    """So that they are those of the last answer, and a verdict that has to grow is asked for anew."""
    script = played(MARKED, **fields)
    assert script.answers.validators is not None
    script.play(between)
    assert script.answers.validators is None


def test_304_leaves_everything_but_the_budgets() -> None:
    """Verdict, status and validators stay; the poll counts and is a good one."""
    script = played(MARKED)
    before = script.state
    script.play(http(304, None, {"etag": '"b"'}))
    assert script.answers.validators == Validators(URL, '"a"')
    after = script.state
    assert (after.verdict, after.status, after.seen, after.found) == (before.verdict, "RUNNING", before.seen, 1)
    assert (after.polls, after.streak.length, after.failed_polls) == (2, 0, 0)
    script.play(DONE)
    assert script.state.outcome is Outcome.SUCCEEDED


def test_304_neither_lengthens_nor_breaks_a_run_of_verdicts() -> None:
    """Which Tarry does not ask for while the run is open, and a service may give all the same."""
    script = played(MARKED, DONE, http(304), confirm=2)
    assert script.state.confirming is not None
    assert script.state.confirming.times == 1
    script.play(DONE)
    assert script.state.outcome is Outcome.SUCCEEDED


def test_marks_are_taken_off() -> None:
    """And nothing else."""
    seen = Observation(CallKind.POLL, 1, 2, 200, {"etag": '"a"', "last-modified": OLD, "date": DATE})
    assert unmarked(seen).headers == {"date": DATE}


# Specs.

POST = Request("POST", URL, conditional=True)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"poll": POST}, "poll.conditional: a POST is not answered with 304"),
        ({"poll": Request("GET", URL, accepted=["3xx"], conditional=True)}, "poll.conditional: accepted has 304"),
        (
            {"submit": GET, "poll": Request("GET", URL, params={"at": "{poll.body.cursor}"}, conditional=True)},
            "poll.conditional: {poll…} makes each poll another one",
        ),
        ({"until": lambda answer: True}, "poll.conditional: a callable may judge"),
        ({"until": Expression("polls > `3`")}, "poll.conditional: the condition reads polls"),
        ({"until": Match('headers."x-state"', succeeded="DONE")}, "poll.conditional: the condition reads headers"),
        ({"submit": POST}, "submit.conditional: that is for poll alone"),
        ({"fetch": POLL}, "fetch.conditional: that is for poll alone"),
        ({"cancel": POLL}, "cancel.conditional: that is for poll alone"),
    ],
    ids=["method", "accepted", "cursor", "callable", "polls", "headers", "submit", "fetch", "cancel"],
)  # fmt: skip
def test_what_cannot_be_conditional_is_refused(fields: dict[str, Any], words: str) -> None:
    """When the spec is written, in words that say what to change."""
    with pytest.raises(SpecError) as refused:
        conditional(**fields)
    assert words in str(refused.value).replace("JobSpec.", "")


def test_a_batch_is_not_conditional() -> None:
    """One answer is for many jobs."""
    request = Request("GET", URL, params={"ids": "{batch.ids}"}, conditional=True)
    with pytest.raises(SpecError, match=r"Batch\.request\.conditional"):
        Batch(request, items="body.jobs")


def test_a_condition_on_the_http_status_may_be() -> None:
    """It is never shown the 304."""
    script = played(http(202, None, MARK), http(304), until=Status(pending=202, succeeded=200))
    assert script.answers.validators is not None
    assert script.state.verdict == "pending"


# Through the front door.


class Service:
    """Answers with 304 whoever knows its mark already."""

    def __init__(self, *bodies: dict[str, Any]) -> None:
        self.bodies = bodies
        self.asked: list[str | None] = []

    def __call__(self, request: Prepared) -> Answer:
        known = dict(request.headers).get("If-None-Match")
        body = self.bodies[min(len(self.asked), len(self.bodies) - 1)]
        self.asked.append(known)
        mark = f'"{body["state"]}"'
        return Answer(304) if known == mark else Answer(body=body, headers={"ETag": mark})


def job(**fields: Any) -> JobSpec:
    """A conditional poll every 2 s."""
    poll = Request("GET", "https://api.example.com/jobs/{key}", params={"x": 1}, conditional=True)
    return polled(**{"poll": poll, "limits": Limits(max_polls=9), **fields})


def test_an_unchanged_answer_is_cheap() -> None:
    """G21: the service sends it once; the job goes on as it stood, without an event, until the answer is another."""
    service = Service(QUEUED, RUNNING, RUNNING, RUNNING, SUCCEEDED)
    world = World([service])

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", job(), wait_timeout="7s")
            waiting = await poller.get("orders")
            assert waiting.last is not None
            assert (waiting.last.body, waiting.status, waiting.polls) == (RUNNING, "RUNNING", 4)
            assert [tick.verdict for tick in waiting.timeline] == ["pending"] * 4
            return await poller.await_job("orders")

    assert world.run(main).output == {"rows": 4211}
    assert service.asked == [None, '"QUEUED"', '"RUNNING"', '"RUNNING"', '"RUNNING"']
    assert world.kinds().count("status") == 3
    assert world.seconds() == [0, 2, 4, 6, 8]


def test_the_mark_survives_the_process() -> None:
    """It is part of the checkpoint."""
    service = Service(RUNNING, RUNNING, SUCCEEDED)
    world = World([service])

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", job(strategy=Fixed("40s")), wait_timeout="20s")
        async with world.poller() as poller:
            return await poller.await_job("orders")

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert service.asked == [None, '"RUNNING"', '"RUNNING"']


def test_a_failed_poll_is_followed_by_a_whole_answer() -> None:
    """What is stored as the last answer is then one again."""
    seen: list[Any] = []

    def answer(request: Prepared) -> Any:
        seen.append(dict(request.headers).get("If-None-Match"))
        return (
            ErrorKind.TIMEOUT if len(seen) == 2 else Answer(body=SUCCEEDED if len(seen) == 4 else RUNNING, headers=MARK)
        )

    world = World([answer])

    async def main() -> Any:
        async with world.poller() as poller:
            return await poller.await_job("orders", job())

    assert world.run(main).last.body == SUCCEEDED
    assert seen == [None, '"a"', None, '"a"']


def test_another_condition_is_shown_a_whole_answer() -> None:
    """What was judged by the one before is judged anew, though it did not change."""
    service = Service(RUNNING)
    world = World([service])

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", job(), wait_timeout="3s")
            return await poller.await_job("orders", job(until=Match("body.state", succeeded="RUNNING")))

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert service.asked == [None, '"RUNNING"', None]


@pytest.mark.parametrize("changed", ["until", "poll"])
def test_a_change_while_a_poll_is_under_way(changed: str) -> None:
    """The answer is judged by the new spec; it marks the next poll unless that asks for something else."""
    sent: list[Any] = []

    def answer(request: Prepared) -> Answer:
        sent.append((request.url.partition("?")[2], dict(request.headers).get("If-None-Match")))
        return Answer(body=RUNNING if len(sent) < 3 else SUCCEEDED, headers=MARK, delay=1_000_000)

    world = World([answer])
    other = Request("GET", "https://api.example.com/jobs/{key}", params={"x": 2}, conditional=True)
    fields = {"poll": other} if changed == "poll" else {"until": Match("body.state", succeeded="SUCCEEDED")}
    submit = Request("POST", "https://api.example.com/jobs")

    async def main() -> Any:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", job(submit=submit)))
            await world.after(0.5)
            await poller.add("orders", job(submit=submit, **fields))
            return await waiting

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert sent[1] == (("x=2", None) if changed == "poll" else ("x=1", '"a"'))
    assert sent[2][1] == '"a"'


def test_a_new_run_begins_with_a_whole_answer() -> None:
    """The state that it begins with knows of no answer."""
    service = Service(RUNNING)
    world = World([service])

    async def main() -> None:
        async with world.poller() as poller:
            for _ in range(2):
                await poller.await_job("orders", job(limits=Limits(max_polls=2)), raises=False)
                await poller.reset("orders")

    world.run(main)
    assert service.asked == [None, '"RUNNING"'] * 2


def test_a_header_of_the_callers_wins() -> None:
    """As it is, on each poll."""
    mine = Request("GET", "https://api.example.com/1", headers={"If-None-Match": '"mine"'}, conditional=True)
    world = World([Answer(body=RUNNING, headers=MARK), Answer(body=RUNNING, headers=MARK), SUCCEEDED])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.await_job("orders", job(poll=mine))

    world.run(main)
    assert [seen.headers["if-none-match"] for seen in world.job.requests] == ['"mine"'] * 3


def test_over_http_the_body_is_sent_once() -> None:
    """To a real client on a real socket."""

    async def main() -> Any:
        async with StubService(script=[Behaviour(mode="etag", calls=[1, 2, 3])]) as stub, Poller("sqlite://") as poller:
            request = Request("GET", f"{stub.url}/jobs/{{submit.body.jobId}}", conditional=True)
            spec = polled(
                submit=Request("POST", f"{stub.url}/jobs"),
                poll=request,
                strategy=Fixed("1ms"),
                limits=Limits(min_interval="1ms"),
            )
            ended = await poller.await_job("orders", spec)
            return ended, [seen["status"] for seen in stub.requests if seen["kind"] == "poll"]

    ended, statuses = asyncio.run(main())
    assert ended.outcome is Outcome.SUCCEEDED
    assert statuses == [200, 304, 304, 200, 200, 200, 200]
