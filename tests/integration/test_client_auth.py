"""The auth of the caller's client, from poll to poll, over real connections."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import httpx
import httpx2
import pytest

from tarry import Fixed, JobSpec, Limits, Match, Outcome, Poller, Request
from tests.raw_server import Exchange, RawServer, response, serve


def renewing(library: ModuleType, url: str) -> Any:
    """An auth as callers write it: it fetches a token there after a 401, under a lock, and repeats the call."""

    class Renewing(library.Auth):  # type: ignore[name-defined, misc]  # either library's class
        requires_response_body = True

        def __init__(self) -> None:
            self.token = "old"
            self.lock = asyncio.Lock()

        async def async_auth_flow(self, request: Any) -> Any:
            request.headers["Authorization"] = f"Bearer {self.token}"
            answer = yield request
            if answer.status_code == 401:
                async with self.lock:
                    granted = yield library.Request("POST", url)
                    await granted.aread()
                    self.token = granted.json()["access_token"]
                request.headers["Authorization"] = f"Bearer {self.token}"
                yield request

    return Renewing()


async def guarded_job(exchange: Exchange) -> None:
    """A job that is over at the third request, told to whoever has the new token."""
    state = b"DONE" if exchange.number == 3 else b"RUNNING"
    allowed = b"authorization: bearer new" in exchange.request.lower()
    body = response(b'{"state": "%s"}' % state) if allowed else response(status="401 Unauthorized")
    await exchange.write(body)


def quick(url: str) -> JobSpec:
    """A job that is polled as fast as it goes."""
    until = Match("body.state", succeeded="DONE")
    poll = Request("GET", url)
    return JobSpec(poll=poll, until=until, strategy=Fixed("1ms"), limits=Limits(min_interval="1ms", max_polls=9))


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_token_of_another_host_is_fetched_for_the_next_poll(library: ModuleType) -> None:
    """PC-069: the sign-in goes out once, by async code too; each poll is one request, the next one has the new token."""

    async def grant(exchange: Exchange) -> None:
        await exchange.write(response(b'{"access_token": "new"}'))

    async def call() -> tuple[Any, RawServer, RawServer]:
        async with serve(grant) as home, serve(guarded_job) as jobs:
            auth = renewing(library, f"{home.origin}/token")
            client = library.AsyncClient(auth=auth, trust_env=False)
            async with client, Poller("sqlite://", client=client) as poller:
                return await poller.await_job("orders", quick(f"{jobs.origin}/jobs/7")), home, jobs

    ended, home, jobs = asyncio.run(call())
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 3)
    assert [request.partition(b" HTTP")[0] for request in home.requests] == [b"POST /token"]
    assert len(jobs.requests) == ended.polls
    tokens = [request.lower().partition(b"authorization: ")[2].partition(b"\r\n")[0] for request in jobs.requests]
    assert tokens == [b"bearer old", b"bearer new", b"bearer new"]
