"""A poll that goes out as the last one did is filled in once; where anything of it changes it is filled in anew."""

from __future__ import annotations

import asyncio
from typing import Any

from tarry import Fixed, JobSpec, Limits, Request
from tarry.ports import Prepared
from tarry.testing import Answer, ScriptedJob
from tests.pollers import QUEUED, RUNNING, SUCCEEDED, World, polled, spec_of

API = "https://api.example.com"
SOON = Fixed("0.5s")


def sent(answers: list[Any], spec: JobSpec, submitted: Any = None, **options: Any) -> list[Prepared]:
    """The polls of a job, as the transport got them."""
    requests: list[Prepared] = []

    def kept(answer: Any) -> Any:
        def asked(request: Prepared) -> Any:
            requests.append(request)
            return answer

        return asked

    world = World([RUNNING])
    job = ScriptedJob([kept(answer) for answer in answers], submit=submitted or {"jobId": "j1"}, clock=world.clock)

    async def main() -> None:
        async with world.poller(transport=job, **options) as poller:
            await poller.await_job("orders", spec)

    world.run(main)
    assert len(requests) == len(answers)
    return requests


def test_polls_that_are_the_same_are_filled_in_once() -> None:
    """After a submit and without one, whatever the polls bring, and where the job rests without a task in between."""
    answers = [QUEUED, RUNNING, 503, RUNNING, SUCCEEDED]
    for spec in (polled(strategy=SOON), spec_of(strategy=SOON), polled(strategy=Fixed("2s"))):
        first, *others = sent(answers, spec)
        assert all(other is first for other in others)


def test_a_poll_that_an_answer_leads_elsewhere_goes_there() -> None:
    """And stays the same as soon as nothing moves it any more."""
    answers = [RUNNING | {"next": "/ops/2"}, RUNNING | {"next": "/ops/3"}, RUNNING, RUNNING, SUCCEEDED]
    polls = sent(
        answers, spec_of(strategy=SOON, poll=Request("GET", f"{API}/{{poll.body.next:path}}")), {"next": "ops/1"}
    )
    assert [request.url.removeprefix(API) for request in polls] == [
        "/ops/1",
        "//ops/2",
        "//ops/3",
        "//ops/3",
        "//ops/3",
    ]


def test_a_poll_that_names_the_last_answer_has_that_one() -> None:
    """Never one before."""
    spec = spec_of(strategy=SOON, poll=Request("GET", f"{API}/jobs", params={"after": "{poll.body.n}"}))
    answers = [QUEUED | {"n": 1}, RUNNING | {"n": 2}, RUNNING | {"n": 2}, SUCCEEDED]
    assert [request.url[-1] for request in sent(answers, spec, {"n": 0})] == ["0", "1", "2", "2"]


def test_validators_go_with_the_poll_after_their_answer() -> None:
    """One that marks nothing takes them away again."""
    spec = polled(strategy=SOON, poll=Request("GET", f"{API}/jobs/{{key}}", conditional=True))
    answers = [RUNNING, Answer(200, RUNNING, {"etag": '"a"'}), 304, Answer(200, RUNNING, {"etag": '"b"'}), SUCCEEDED]
    marks = [dict(request.headers).get("If-None-Match") for request in sent(answers, spec)]
    assert marks == [None, None, '"a"', '"a"', '"b"']


def test_a_poll_near_the_deadline_has_the_time_that_is_left() -> None:
    """Each one less than the one before."""
    spec = polled(strategy=SOON, limits=Limits(min_interval="0.1s", total_duration="2s", poll_timeout="1.2s"))
    bounds = [request.timeout / 1_000_000 for request in sent([RUNNING, RUNNING, RUNNING, SUCCEEDED], spec)]
    assert bounds == [1.2, 1.2, 1.0, 0.5]


def test_a_secret_is_asked_for_before_every_poll() -> None:
    """So that one that was rotated is picked up; after a denial it is asked for afresh."""
    request = Request("GET", f"{API}/jobs/{{key}}", headers={"Authorization": "Bearer {secret.TOKEN}"})
    told: list[bool] = []

    def provider(name: str, *, refresh: bool) -> str:
        told.append(refresh)
        return f"{name}-{len(told)}"

    polls = sent([RUNNING, RUNNING, 401, SUCCEEDED], polled(strategy=SOON, poll=request), secrets=provider)
    assert [dict(each.headers)["Authorization"] for each in polls] == [f"Bearer TOKEN-{n}" for n in (1, 2, 3, 4)]
    assert told == [False, False, False, True]


def test_a_command_that_changes_the_spec_changes_the_polls() -> None:
    """From the next one on."""
    urls: list[str] = []

    def asked(request: Prepared) -> Any:
        urls.append(request.url)
        return SUCCEEDED if len(urls) == 4 else RUNNING

    world = World([asked])

    async def main() -> None:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", spec_of(strategy=SOON)))
            await world.after(1.5)
            await poller.await_job("orders", spec_of(strategy=SOON, poll=Request("GET", f"{API}/v2/{{key}}")))
            await waiting

    world.run(main)
    assert [url.removeprefix(API) for url in urls] == ["/jobs/j1"] * 2 + ["/v2/orders"] * 2
