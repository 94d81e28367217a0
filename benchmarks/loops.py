"""Loops that poll without Tarry: bare ones (the limit), tenacity, and a commit a poll done by hand."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.load import Service, serving
from benchmarks.meter import Reading, while_running, window
from benchmarks.scale import Scale

Get = Callable[[str], Awaitable[bytes]]
"""One request: a URL in, a body out."""

Commit = Callable[[str, bytes], object]
"""Writes down what the poll of a URL brought."""


async def bare_aiohttp(scale: Scale, hosts: int = 1) -> Reading:
    """Without durability: what no durable poll can be quicker than."""
    import aiohttp

    with serving(hosts) as service:
        connector = aiohttp.TCPConnector(limit=scale.in_flight)
        async with aiohttp.ClientSession(connector=connector) as session:
            return await _measured(service, _aiohttp(session), scale, scale.in_flight)


async def bare_httpx(scale: Scale, hosts: int = 1) -> Reading:
    """The same with httpx, at whatever concurrency it does best."""
    import httpx

    best: Reading = {"polls_s": 0}
    for in_flight in (1, 4, 16):
        with serving(hosts) as service:
            async with httpx.AsyncClient(trust_env=False) as client:
                found = await _measured(service, _httpx(client), scale, in_flight)
        best = max(best, found | {"in_flight": in_flight}, key=lambda reading: reading["polls_s"])
    return best


async def naive_aiohttp(scale: Scale) -> Reading:
    """What one writes first: each answer is committed before the next poll of its job."""
    import aiohttp

    with serving() as service, _committing() as commit:
        async with aiohttp.ClientSession() as session:
            return await _measured(service, _aiohttp(session), scale, scale.in_flight, commit)


async def naive_httpx(scale: Scale) -> Reading:
    """The same with httpx."""
    import httpx

    with serving() as service, _committing() as commit:
        async with httpx.AsyncClient(trust_env=False) as client:
            return await _measured(service, _httpx(client), scale, 4, commit)


async def tenacity_aiohttp(scale: Scale) -> Reading:
    """One retrying call a job, nothing durable."""
    import aiohttp

    with serving() as service:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=scale.in_flight)) as session:
            return await _retried(service, _aiohttp(session), scale)


async def _retried(service: Service, get: Get, scale: Scale) -> Reading:
    from tenacity import AsyncRetrying, retry_if_result, stop_never, wait_none

    retrying = AsyncRetrying(retry=retry_if_result(_goes_on), wait=wait_none(), stop=stop_never)
    urls = [service.url(n) for n in range(scale.jobs)]
    work = asyncio.gather(*(retrying.copy()(get, url) for url in urls))
    return await while_running(work, window(service.polls, scale))


async def _measured(service: Service, get: Get, scale: Scale, in_flight: int, commit: Commit | None = None) -> Reading:
    """So many workers share the jobs, each with one call at a time."""
    urls = [service.url(n) for n in range(max(scale.jobs, in_flight))]
    work = asyncio.gather(*(_worker(get, cycle(urls[n::in_flight]), commit) for n in range(in_flight)))
    return await while_running(work, window(service.polls, scale))


async def _worker(get: Get, urls: Iterator[str], commit: Commit | None) -> None:
    for url in urls:
        body = await get(url)
        if not _goes_on(body):
            return
        if commit is not None:
            commit(url, body)


def _goes_on(body: bytes) -> bool:
    return json.loads(body)["state"] == "RUNNING"


def _aiohttp(session: Any) -> Get:
    async def get(url: str) -> bytes:
        async with session.get(url) as response:
            body: bytes = await response.read()
            return body

    return get


def _httpx(client: Any) -> Get:
    async def get(url: str) -> bytes:
        answer: bytes = (await client.get(url)).content
        return answer

    return get


@contextmanager
def _committing() -> Iterator[Commit]:
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(Path(folder) / "jobs.db", isolation_level=None)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE job (url TEXT PRIMARY KEY, polls INTEGER, last TEXT)")
        upsert = (
            "INSERT INTO job VALUES (?, 1, ?) ON CONFLICT (url) DO UPDATE SET polls = polls + 1, last = excluded.last"
        )
        yield lambda url, body: database.execute(upsert, (url, body.decode()))
        database.close()
