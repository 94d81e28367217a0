"""What a response must not be able to make us do."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tarry import Fixed, Outcome, Request, Status
from tarry.testing import Answer
from tests.worlds import DONE, RUNNING, MakeScene, Scene, limits, spec_of

POST = Request(
    "POST",
    "https://a.example.com/jobs",
    headers={"Authorization": "Bearer {secret.TOKEN}", "X-Api-Key": "{secret.TOKEN}"},
)


def found(**changes: Any) -> Any:
    """A job whose status URL is what the submit's answer says, asked with the same credentials."""
    poll = Request("GET", "{submit.headers.location}", headers=POST.headers)
    return spec_of(**{"submit": POST, "poll": poll, "limits": limits("5s"), **changes})


def asked(world: Scene, location: str, spec: Any, *answers: Any) -> tuple[Any, list[httpx.Request]]:
    """The job's end, and the polls that left."""
    left, seen = list(answers) or [httpx.Response(200, json=DONE)], []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(202, json={}, headers={"location": location})
        seen.append(request)
        return left.pop(0) if len(left) > 1 else left[0]

    async def main() -> Any:
        async with (
            httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client,
            world.poller(transport=None, client=client, secrets={"TOKEN": "hunter2"}) as poller,
        ):
            return await poller.await_job("orders", spec, raises=False)

    return world.run(main), seen


@pytest.mark.parametrize(
    "location",
    ["https://evil.example.net/s", "//evil.example.net/s", "http://a.example.com/s", "https://169.254.169.254/latest"],
    ids=["another host", "another host without a scheme", "downgrade", "metadata"],
)
def test_pc_068_a_status_url_of_another_origin_is_not_polled(scene: MakeScene, location: str) -> None:
    """Nothing leaves, credentials least of all, and the error says what to do if it is right."""
    ended, seen = asked(scene(), location, found())
    assert (ended.outcome, seen) == (Outcome.TIMED_OUT, [])


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/s/1", "https://a.example.com/s/1"),
        ("s/1?sig=a%2Bb", "https://a.example.com/s/1?sig=a%2Bb"),
        ("https://a.example.com/s/1", "https://a.example.com/s/1"),
    ],
    ids=["absolute path", "relative", "whole"],
)
def test_pc_068_a_relative_status_url_is_resolved(scene: MakeScene, location: str, url: str) -> None:
    """Against the URL of the request that found it; its credentials go along."""
    ended, (poll,) = asked(scene(), location, found())
    assert ended.outcome is Outcome.SUCCEEDED
    assert (str(poll.url), poll.headers["x-api-key"]) == (url, "hunter2")


def test_pc_068_an_allowed_host_gets_no_credentials(scene: MakeScene) -> None:
    """Allowing a host lets a status URL lead there; secrets are still bound to the origin that names them."""
    spec = found(allowed_hosts=["b.example.com"], poll=Request("GET", "{submit.headers.location}"))
    ended, (poll,) = asked(scene(), "https://b.example.com/s/1", spec)
    assert ended.outcome is Outcome.SUCCEEDED
    assert "hunter2" not in str(poll.headers.raw)


def see_other(location: str) -> list[httpx.Response]:
    """Two polls that say "not yet", a 303 to the result, and the result."""
    done = httpx.Response(303, headers={"location": location})
    return [httpx.Response(202), httpx.Response(202), done, httpx.Response(200, json={"rows": 3})]


RESULT = Request("GET", "{poll.headers.location}")


def test_pc_072_a_303_is_the_success_and_leads_to_the_result(scene: MakeScene) -> None:
    """Redirects are not followed: three polls, of which the condition judges the code, then one fetch."""
    spec = found(until=Status(succeeded=303, pending=202), fetch=RESULT, result="body.rows")
    ended, seen = asked(scene(), "/s/1", spec, *see_other("/result/1"))
    assert (ended.outcome, ended.output, ended.polls) == (Outcome.SUCCEEDED, 3, 3)
    assert [request.url.path for request in seen] == ["/s/1"] * 3 + ["/result/1"]


def test_pc_072_a_result_of_another_origin_is_not_fetched(scene: MakeScene) -> None:
    """The job has succeeded; its result is not had, and nothing leaves for the other host."""
    spec = found(until=Status(succeeded=303, pending=202), fetch=RESULT)
    ended, seen = asked(scene(), "/s/1", spec, *see_other("https://evil.example.net/result/1"))
    assert (ended.outcome, ended.output) == (Outcome.SUCCEEDED, None)
    assert {request.url.host for request in seen} == {"a.example.com"}


def test_pc_072_a_stray_redirect_is_a_failed_poll(scene: MakeScene) -> None:
    """Where nothing judges it, a 302 is neither followed nor taken for an answer."""
    redirect = httpx.Response(302, headers={"location": "https://b.example.com/s/1"})
    ended, seen = asked(scene(), "/s/1", found(), redirect)
    assert ended.outcome is Outcome.TIMED_OUT
    assert {request.url.host for request in seen} == {"a.example.com"}


def test_pc_069_credentials_are_asked_for_before_each_poll(scene: MakeScene) -> None:
    """A token that lives shorter than the job: each poll goes out with the one that is good then."""
    world = scene()
    tokens: list[str] = []

    def secret(name: str) -> str:
        tokens.append(f"T{len(tokens) + 1}")
        return tokens[-1]

    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return httpx.Response(200, json=RUNNING if len(seen) < 3 else DONE)

    async def main() -> Any:
        poll = Request("GET", "https://a.example.com/s/1", headers={"Authorization": "Bearer {secret.TOKEN}"})
        async with (
            httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client,
            world.poller(transport=None, client=client, secrets=secret) as poller,
        ):
            return await poller.await_job("orders", spec_of(poll=poll, strategy=Fixed("1m")))

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert seen == ["Bearer T1", "Bearer T2", "Bearer T3"]


TOKEN = Request("GET", "https://a.example.com/s/1", headers={"Authorization": "Bearer {secret.TOKEN}"})


def with_tokens(world: Scene, answers: list[Any], give: Any) -> Any:
    """The end of a job whose service answers so, with a provider of tokens."""
    world.play(answers)

    async def main() -> Any:
        async with world.poller(secrets=give) as poller:
            return await poller.await_job("orders", spec_of(poll=TOKEN, strategy=Fixed("20s")), raises=False)

    return world.run(main)


class Tokens:
    """Gives the first token until it is asked to refresh."""

    def __init__(self, *, breaks: bool = False) -> None:
        self.refreshed = 0
        self._breaks = breaks

    def __call__(self, name: str, *, refresh: bool = False) -> str:
        if refresh and self._breaks:
            self._breaks = False
            raise RuntimeError("no new token yet")
        self.refreshed += refresh
        return f"token-number-{self.refreshed + 1}"


def test_pc_069_a_401_refreshes_once_and_polls_again_soon(scene: MakeScene) -> None:
    """As soon as the floor permits, and not after the 20 s of the strategy; the job goes on to its end."""
    world, tokens = scene(), Tokens()
    ended = with_tokens(world, [RUNNING, RUNNING, RUNNING, 401, RUNNING, DONE], tokens)
    assert (ended.outcome, ended.polls, tokens.refreshed) == (Outcome.SUCCEEDED, 6, 1)
    assert world.seconds() == [0, 20, 40, 60, 61, 81]
    sent = [seen.headers["authorization"][-1] for seen in world.job.requests]
    assert sent[:5] == ["1", "1", "1", "1", "2"]


@pytest.mark.parametrize("answer", [401, 403])
def test_pc_069_a_job_that_stays_denied_ends_soon_and_can_be_seen(scene: MakeScene, answer: int) -> None:
    """After a few denials in a row with fresh tokens, not at its deadline; the remote job may still run."""
    world, tokens = scene(), Tokens()
    ended = with_tokens(world, [RUNNING, answer], tokens)
    assert (ended.outcome, ended.polls) == (Outcome.UNREACHABLE, 4)
    assert world.elapsed() < 120


def test_pc_069_a_provider_that_breaks_is_a_failed_poll(scene: MakeScene) -> None:
    """No crash, and nothing is sent meanwhile; the provider is asked again, to refresh."""
    world = scene()
    ended = with_tokens(world, [RUNNING, 401, DONE], Tokens(breaks=True))
    assert (ended.outcome, world.job.polls) == (Outcome.SUCCEEDED, 3)
    assert [seen.headers["authorization"][-1] for seen in world.job.requests] == ["1", "1", "2"]


def test_pc_072_a_307_moves_the_status_url(scene: MakeScene) -> None:
    """Within the origin; stored, so that a later wait goes on there."""
    world = scene(Answer(307, headers={"Location": "/jobs/b"}), RUNNING, DONE)

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(TimeoutError):
                await poller.await_job("orders", spec_of(strategy=Fixed("10s")), wait_timeout="5s")

    world.run(main)
    assert world.ends(None).outcome is Outcome.SUCCEEDED
    assert [seen.url.rpartition("/")[2] for seen in world.job.requests] == ["orders", "b", "b"]


def test_pc_072_a_redirect_loop_ends(scene: MakeScene) -> None:
    """After a few hops, as an error; each hop was a poll that keeps the floor."""
    world = scene()
    world.play([lambda seen: Answer(307, headers={"Location": "/b" if seen.url.endswith("a") else "/a"})])
    ended = world.ends(spec_of())
    assert (ended.outcome, world.job.polls <= 12) == (Outcome.INVALID, True)
