"""How soon another process hears of an outcome, in real time."""

from __future__ import annotations

import asyncio
from statistics import median
from time import perf_counter
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from tarry import Fixed, JobSpec, Limits, Match, Poller
from tarry.store import SqlStore
from tests.acceptance.servers import emptied, postgres_url, schema_of

pytestmark = pytest.mark.slow

_KILL = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE query LIKE 'LISTEN \"tarry_heard\"%%' AND pid <> pg_backend_pid()"
)
_OVER: set[str] = set()


def state_of(key: str) -> dict[str, str]:
    """What the service says of a job."""
    return {"state": "DONE" if key in _OVER else "RUNNING"}


def spec() -> JobSpec:
    """A job that is asked for often."""
    return JobSpec(
        poll=state_of,
        args={"key": "{key}"},
        until=Match("body.state", succeeded="DONE", pending="RUNNING"),
        strategy=Fixed("20ms"),
        limits=Limits(min_interval="20ms"),
    )


def killed() -> int:
    """How many listened until now."""
    with create_engine(postgres_url(), poolclass=NullPool, isolation_level="AUTOCOMMIT").connect() as connection:
        return int(connection.exec_driver_sql(_KILL).scalar_one())


async def late(key: str, polls: Poller, waits: Poller) -> float:
    """By how many seconds one that waits hears of an outcome after the one that polls."""

    async def ended(poller: Poller) -> float:
        await poller.await_job(key)
        return perf_counter()

    await polls.add(key, spec())
    first = asyncio.create_task(ended(polls))
    await asyncio.sleep(0.3)
    other = asyncio.create_task(ended(waits))
    await asyncio.sleep(0.3)
    _OVER.add(key)
    return await other - await first


async def measured(*, listening: bool) -> list[float]:
    """The same several times, between two pollers that have nothing in common but the database."""
    url = schema_of(postgres_url())
    store = SqlStore(url)
    emptied(store)
    store.close()
    async with Poller(url) as polls, Poller(url) as waits:
        found: list[Any] = [await late(f"{listening}-first", polls, waits)]
        for n in range(7):
            if not listening:
                await asyncio.to_thread(killed)
            found.append(await late(f"{listening}-{n}", polls, waits))
    return found[1:]


def test_an_outcome_is_heard_at_once() -> None:
    """By a word from the database, and not at the next look, which is half a second apart."""
    assert median(asyncio.run(measured(listening=True))) < 0.15


def test_an_outcome_is_heard_by_looking() -> None:
    """Also where the word never comes."""
    found = asyncio.run(measured(listening=False))
    assert max(found) < 1.5
