"""The same wait as a DBOS workflow: each poll is a step, each pause a durable sleep."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import aiohttp
from dbos import DBOS

from benchmarks.jobs import sqlite_file
from benchmarks.load import Service, serving
from benchmarks.meter import Reading, until, window
from benchmarks.postgres import postgres
from benchmarks.scale import FULL, Scale, Skipped


async def sqlite(scale: Scale) -> Reading:
    """On its SQLite."""
    with sqlite_file() as store:
        return await _polled(store, scale)


async def on_postgres(scale: Scale) -> Reading:
    """On PostgreSQL."""
    with postgres() as store:
        return await _polled(store, scale)


async def restart(scale: Scale) -> Reading:
    """A restart with many workflows that are overdue: until all have polled (s).

    They begin in a process that is killed once each has polled and sleeps; the next one starts when that is over.
    """
    with sqlite_file() as store, serving() as service:
        begun = perf_counter()
        with _process("begin", store, service, scale):
            await until(service.polls, scale.overdue, scale.nap)
        await asyncio.sleep(max(begun + scale.nap - perf_counter(), 0))
        before, at = await service.polls(), perf_counter()
        with _process("again", store, service, scale):
            made = await until(service.polls, before + scale.overdue, scale.nap + 60) - before
    if made < scale.overdue:
        raise Skipped(f"{made} of {scale.overdue} workflows had polled {scale.nap + 60} s after the restart")
    return {"all_s": perf_counter() - at}


@contextmanager
def _process(what: str, store: str, service: Service, scale: Scale) -> Iterator[None]:
    """Workflows in a process of their own, which is killed at the end of the block."""
    job = json.dumps([what, store, service.url(), scale.overdue, scale.nap])
    with subprocess.Popen([sys.executable, "-m", "benchmarks.dbos_peer", job]) as process:
        try:
            yield
        finally:
            process.kill()


async def _main(what: str, store: str, url: str, count: int, nap: float) -> None:
    wait = _launched(store, FULL)
    if what == "begin":
        await asyncio.gather(*(DBOS.start_workflow_async(wait, f"{url}{n}", nap) for n in range(count)))
    await asyncio.Event().wait()


async def _polled(store: str, scale: Scale) -> Reading:
    with serving() as service:
        wait = _launched(store, scale)
        begin = (DBOS.start_workflow_async(wait, service.url(n), 0.001) for n in range(scale.jobs))
        starting = asyncio.gather(*begin)
        try:
            return await window(service.polls, scale)
        finally:
            starting.cancel()


class _Http:
    """Requests on whatever event loop asks: DBOS goes on with what was interrupted on one of its own."""

    def __init__(self, in_flight: int) -> None:
        self._in_flight = in_flight
        self._known: dict[object, tuple[asyncio.Semaphore, aiohttp.ClientSession]] = {}

    async def state(self, url: str) -> str:
        """What the answer says of the job."""
        loop = asyncio.get_running_loop()
        if loop not in self._known:
            self._known[loop] = asyncio.Semaphore(self._in_flight), aiohttp.ClientSession()
        turns, session = self._known[loop]
        async with turns, session.get(url) as response:
            state: str = json.loads(await response.read())["state"]
            return state


def _launched(store: str, scale: Scale) -> Any:
    """DBOS on this database; gives the workflow that waits for a URL. Ends with its process."""
    logging.disable(logging.CRITICAL)
    DBOS(config={"name": "bench", "system_database_url": store, "run_admin_server": False, "log_level": "ERROR"})
    http = _Http(scale.in_flight)

    @DBOS.step()
    async def poll(url: str) -> str:
        return await http.state(url)

    @DBOS.workflow()
    async def wait(url: str, pause: float) -> str:
        while (state := await poll(url)) == "RUNNING":
            await DBOS.sleep_async(pause)
        return state

    DBOS.launch()
    return wait


if __name__ == "__main__":
    asyncio.run(_main(*json.loads(sys.argv[1])))
