"""S29 to S31: secrets, found URLs, bodies."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from tarry import Outcome, Request, SpecError
from tests.worlds import DONE, MakeScene, Scene, limits, spec_of

CANARY = "hunter2-canary"
AUTH = {"Authorization": "Bearer {secret.TOKEN}"}


def answered(world: Scene, spec: Any, answer: Any, **options: Any) -> Any:
    """The end of a job that is polled by the real transport, without a network."""

    async def main() -> Any:
        async with (
            httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client,
            world.poller(transport=None, client=client, secrets={"TOKEN": CANARY}, **options) as poller,
        ):
            ended = await poller.await_job("orders", spec, raises=False)
            return ended, await poller.get("orders"), await poller.history("orders")

    return world.run(main)


def test_s29_a_secret_is_nowhere(durable: MakeScene, caplog: pytest.LogCaptureFixture) -> None:
    """Not in the database, the events, the log or the error, also where the service sends it back."""
    world = durable()
    seen: list[str] = []

    def echo(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        if len(seen) < 3:
            raise httpx.ReadError(f"broken {seen[-1]}")
        return httpx.Response(
            200, json={"state": "FAILED", "error": f"you sent {seen[-1]}"}, headers={"x-echo": seen[-1]}
        )

    poll = Request("GET", "https://api.example.com/jobs/1", headers=AUTH)
    with caplog.at_level(logging.DEBUG):
        told = answered(world, spec_of(poll=poll, reason="body.error"), echo)
    files = b"".join(file.read_bytes() for file in Path(world.folder).rglob("*") if file.is_file())
    assert seen == [f"Bearer {CANARY}"] * 3
    assert CANARY not in repr(told) + caplog.text
    assert CANARY.encode() not in files


def test_s29_a_literal_credential_is_refused() -> None:
    """With the way to do it right."""
    with pytest.raises(SpecError, match="secret"):
        Request("GET", "https://api.example.com/jobs/1", headers={"Authorization": "Bearer abc"})


def found(location: str, **changes: Any) -> tuple[Any, Any, list[httpx.Request]]:
    """A job whose status URL is in the submit's answer: its spec, its service, and the polls that come."""
    polls: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(202, json={}, headers={"location": location})
        polls.append(request)
        return httpx.Response(200, json=DONE)

    post = Request("POST", "https://api.example.com/jobs", headers=AUTH)
    poll = Request("GET", "{submit.headers.location}", headers=AUTH)
    spec = spec_of(**{"submit": post, "poll": poll, "limits": limits("5s"), **changes})
    return spec, answer, polls


@pytest.mark.parametrize(
    ("location", "goes"),
    [
        ("/jobs/1?sig=abc", True),
        ("https://api.example.com/jobs/1", True),
        ("https://api.example.com:444/jobs/1", False),
        ("https://other.example.com/jobs/1", False),
        ("http://api.example.com/jobs/1", False),
        ("//other.example.com/jobs/1", False),
        ("ftp://api.example.com/jobs/1", False),
        ("javascript:alert(1)", False),
    ],
    ids=["relative", "same", "port", "host", "downgrade", "no scheme", "ftp", "script"],
)
def test_s30_a_found_url_keeps_its_origin(scene: MakeScene, location: str, goes: bool) -> None:
    """Of the request that found it; only http and https, and never back to http."""
    spec, answer, polls = found(location)
    ended, _, _ = answered(scene(), spec, answer)
    assert (ended.outcome is Outcome.SUCCEEDED, bool(polls)) == (goes, goes)


def test_s30_an_allowed_host_gets_no_credentials(scene: MakeScene) -> None:
    """They stay with the origin of the request that names them."""
    poll = Request("GET", "{submit.headers.location}")
    spec, answer, polls = found("https://files.example.com/1", poll=poll, allowed_hosts=["files.example.com"])
    ended, _, _ = answered(scene(), spec, answer)
    assert ended.outcome is Outcome.SUCCEEDED
    assert "authorization" not in polls[0].headers


def test_s30_a_signed_url_is_shown_masked(scene: MakeScene) -> None:
    """It is polled whole; what a person sees of it has no query."""
    spec, answer, polls = found("/jobs/1?sig=abc123")
    ended, job, events = answered(scene(), spec, answer)
    assert str(polls[0].url).endswith("?sig=abc123")
    assert "abc123" not in f"{ended.last.url}{events}"
    assert job.last.url == "https://api.example.com/jobs/1"


DEEP = b"[" * 5_000 + b"]" * 5_000


@pytest.mark.parametrize(
    "content",
    [DEEP, b"{", b"\xff\xfe\x00", b"NaN", b'{"state": 1e999}', b" " * (2 << 20)],
    ids=["deep", "cut", "bytes", "nan", "huge number", "large"],
)
def test_s31_a_bad_body_is_a_failed_poll(scene: MakeScene, content: bytes) -> None:
    """Deep, broken or large beyond the bound: the job goes on."""
    answers = [httpx.Response(200, content=content), httpx.Response(200, json=DONE)]
    ended, job, _ = answered(scene(), spec_of(), lambda _: answers.pop(0))
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 2)
    assert job.timeline[0].verdict == "error"


def test_s31_template_values_are_percent_encoded(scene: MakeScene) -> None:
    """A value cannot leave its place in a URL."""
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        return httpx.Response(200, json=DONE)

    poll = Request("GET", "https://api.example.com/jobs/{input.name}")
    answered(scene(), spec_of(poll=poll, input={"name": "../admin?x=1#y"}), answer)
    assert seen == ["https://api.example.com/jobs/..%2Fadmin%3Fx%3D1%23y"]
