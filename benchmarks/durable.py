"""Tarry over HTTP, as fast as it goes."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.jobs import BUSY, spec_of, sqlite_file
from benchmarks.load import serving
from benchmarks.meter import Reading, while_running, window
from benchmarks.postgres import postgres
from benchmarks.scale import Scale, Skipped
from tarry import Poller, SpecError, StoreError


async def sqlite_httpx(scale: Scale) -> Reading:
    """As it comes: Tarry's own client, SQLite with synchronous=FULL."""
    with sqlite_file() as store:
        return await polled(store, scale)


async def sqlite_aiohttp(scale: Scale) -> Reading:
    """With aiohttp in place of httpx."""
    with sqlite_file() as store:
        return await polled(store, scale, client="aiohttp")


async def sqlite_changing(scale: Scale) -> Reading:
    """With aiohttp, and no answer like the one before: each is read, judged and kept."""
    with sqlite_file() as store:
        return await polled(store, scale, path="changing", client="aiohttp")


async def postgres_aiohttp(scale: Scale) -> Reading:
    """The same on PostgreSQL."""
    with postgres() as store:
        return await polled(store, scale, client="aiohttp")


async def many_hosts(scale: Scale) -> Reading:
    """The same with as many hosts as jobs."""
    with sqlite_file() as store:
        return await polled(store, scale, hosts=scale.hosts)


async def polled(store: str, scale: Scale, hosts: int = 1, path: str = "running", **options: Any) -> Reading:
    """All jobs awaited at once, none of which ends."""
    with serving(hosts) as service:
        urls = [service.template(path)] if hosts == 1 else [service.url(n, path) for n in range(hosts)]
        known = [spec_of(url) for url in urls]
        specs = {f"job-{n}": known[n % len(known)] for n in range(scale.jobs)}
        async with made(store, **options) as poller:
            return await while_running(poller.await_all(specs), window(service.polls, scale))


def made(store: str, **options: Any) -> Poller:
    """A poller with these parts, if this Tarry has them."""
    try:
        return Poller(store, politeness=BUSY, **options)
    except (SpecError, StoreError) as error:
        raise Skipped(str(error)) from error


async def single(scale: Scale) -> Reading:
    """One job after another that is over at the first look, and the bare call beside each (ms)."""
    import httpx

    with serving() as service, sqlite_file() as store:
        async with Poller(store) as poller, httpx.AsyncClient(trust_env=False) as client:
            waits, bare = [], []
            for n in range(scale.calls):
                at = perf_counter()
                await client.get(service.url(n, "done"))
                between = perf_counter()
                await poller.await_job(f"job-{n}", spec_of(service.url(n, "done")))
                bare.append(between - at)
                waits.append(perf_counter() - between)
    return {"wait_ms": median(waits) * 1e3, "bare_ms": median(bare) * 1e3}
