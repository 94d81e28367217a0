"""Four workers on one database, killed, frozen and restarted under load: nothing is lost, doubled or stuck."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from tarry import Fixed, JobSpec, Limits, Match, Poller, Request
from tarry.clock import SystemClock
from tarry.store import SqlStore
from tarry.store.doctor import Level
from tests.acceptance.outside import ENVIRONMENT
from tests.raw_server import Exchange, response, serve

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="it freezes processes by a signal")]

WORKER = Path(__file__).with_name("worker.py")
LEASE = 20


@dataclass
class Service:
    """A service whose jobs run at the first look and are over at the next ones; every tenth has failed."""

    polls: int = 2
    delay: float = 0.2
    seen: Counter[str] = field(default_factory=Counter)
    at: list[float] = field(default_factory=list)

    async def answer(self, exchange: Exchange) -> None:
        """One status call, counted before it is answered."""
        key = exchange.request.split(b" ", 2)[1].decode().rpartition("/")[2]
        self.seen[key] += 1
        self.at.append(time.monotonic())
        state = "RUNNING" if self.seen[key] < self.polls else self.end(key)
        await asyncio.sleep(self.delay)
        await exchange.write(
            response(json.dumps({"state": state, "key": key}).encode(), "Content-Type: application/json")
        )

    @staticmethod
    def end(key: str) -> str:
        """How the job ends there."""
        return "FAILED" if key.endswith("0") else "SUCCEEDED"


@dataclass
class Fleet:
    """The processes of one test, and the database that they share."""

    database: str
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def start(self, *command: str) -> asyncio.subprocess.Process:
        """One more worker."""
        pipe = asyncio.subprocess.PIPE
        made = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=pipe, env=ENVIRONMENT)
        self.processes.append(made)
        return made

    async def stop(self, process: asyncio.subprocess.Process) -> bytes:
        """End it in order; what it printed last."""
        process.send_signal(signal.SIGTERM)
        told, _ = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0
        return told.splitlines()[-1] if told else b""

    def rows(self, query: str) -> list[Any]:
        """What the database says, read from outside; nothing before there are tables."""
        engine = create_engine(self.database, poolclass=NullPool)
        try:
            with engine.connect() as connection:
                return [tuple(row) for row in connection.execute(text(query))]
        except DBAPIError:
            return []

    def count(self, what: str) -> int:
        """A number that the database knows."""
        found = self.rows(f"SELECT count({what}")
        return int(found[0][0]) if found else 0

    async def until(self, holds: Callable[[], bool], seconds: float = 120) -> None:
        """Look every 50 ms."""
        last = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < last, "it did not happen in time"
            await asyncio.sleep(0.05)

    async def freeze(self, process: asyncio.subprocess.Process) -> None:
        """Stop it while it holds permits, and between two commits: in one, it would stop the whole database."""
        assert process.stdout is not None
        worker = json.loads(await process.stdout.readline())["worker"]
        for _ in range(200):
            process.send_signal(signal.SIGSTOP)
            while not stands_still(process.pid):  # noqa: ASYNC110  # the kernel tells nobody that it came to it
                await asyncio.sleep(0.001)
            if (
                not await self._is_locked()
                and self.count(f"*) FROM tarry_job WHERE owner = {worker} AND reserved = 1") > 3
            ):
                return
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.02)
        raise AssertionError("it was always in a commit, or had nothing to do")

    async def _is_locked(self) -> bool:
        """Whether it stopped in a transaction: on SQLite that is one lock, and everybody's."""
        engine = create_engine(self.database, poolclass=NullPool)
        if engine.dialect.name == "sqlite":
            return _is_locked(str(engine.url.database))
        query = "SELECT pid, xact_start FROM pg_stat_activity WHERE state = 'idle in transaction'"
        before = set(self.rows(query))
        await asyncio.sleep(0.3)
        return bool(before & set(self.rows(query)))


def stands_still(pid: int) -> bool:
    """Whether a process that was sent SIGSTOP has stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def _is_locked(file: str) -> bool:
    try:
        with closing(sqlite3.connect(file, timeout=2, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return True
    return False


@asynccontextmanager
async def fleet(database: str) -> AsyncIterator[Fleet]:
    """No process is left, however the test ends."""
    made = Fleet(database)
    try:
        yield made
    finally:
        for process in made.processes:
            if process.returncode is None:
                process.kill()
                await process.communicate()


def spec_at(origin: str, **changes: Any) -> JobSpec:
    """A job of the service, polled once a second."""
    fields: dict[str, Any] = {
        "poll": Request("GET", f"{origin}/jobs/{{key}}"),
        "until": Match("body.state", succeeded="SUCCEEDED", failed="FAILED", pending="RUNNING"),
        "strategy": Fixed("1s"),
        "limits": Limits(min_interval="500ms", max_polls=60, total_duration="1h"),
        "result": "body.key",
    }
    return JobSpec(**{**fields, **changes})


async def add(database: str, spec: JobSpec, number: int, pause: float) -> None:
    """Store so many jobs, one after the other."""
    async with Poller(database) as poller:
        for index in range(number):
            await poller.add(f"job-{index}", spec)
            await asyncio.sleep(pause)


def check(fleet: Fleet, service: Service, number: int) -> None:
    """Each job has one end and the right one, no call was made that is not counted, and nobody finds anything wrong."""
    rows = fleet.rows("SELECT id, key, outcome, polls, reserved, owner, max_polls FROM tarry_job")
    ends = Counter(job for (job,) in fleet.rows("SELECT job FROM tarry_event WHERE kind = 'finished'"))
    assert len(rows) == number
    for job, key, outcome, polls, reserved, owner, max_polls in rows:
        assert (outcome, reserved, owner, ends[job]) == (service.end(key).lower(), 0, None, 1), key
        assert service.seen[key] <= polls <= max_polls, key
    found = SqlStore(fleet.database).doctor(SystemClock().now())
    assert [finding for finding in found if finding.level is Level.ERROR] == []


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """In real time, for three minutes at most."""
    asyncio.run(asyncio.wait_for(main(), 180))


@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
def test_two_are_killed_and_one_is_frozen(database: str) -> None:
    """Thousands of jobs: the others take over, what the frozen one writes when it thaws is refused, and all ends right."""
    number, service = 2_000, Service()

    async def main() -> None:
        async with fleet(database) as ours, serve(service.answer) as server:
            command = (str(WORKER), database, f"{LEASE}s")
            first, second, third, fourth = [await ours.start(*command) for _ in range(4)]
            await ours.until(lambda: ours.count("*) FROM tarry_worker") == 4)
            adding = asyncio.create_task(add(database, spec_at(server.origin), number, 0.004))
            await ours.until(lambda: ours.count("outcome) FROM tarry_job") > 100)
            first.kill()
            await ours.freeze(third)
            frozen_at = time.monotonic()
            await ours.until(lambda: ours.count("outcome) FROM tarry_job") > number // 3)
            second.kill()
            await ours.until(lambda: time.monotonic() > frozen_at + LEASE + 2)
            await ours.until(lambda: ours.count("*) FROM tarry_worker WHERE dead = 1") == 3)
            third.send_signal(signal.SIGCONT)
            # It finds out that it was declared dead, and job by job that others have them, all of which may be over.
            await ours.until(lambda: ours.count("*) FROM tarry_worker") == 5)
            await asyncio.sleep(3)
            await adding
            await ours.until(lambda: ours.count("outcome) FROM tarry_job") == number)
            refused = [json.loads(await ours.stop(process))["refused"] for process in (third, fourth)]
            assert refused[0] > 0
            check(ours, service, number)

    run(main)


@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
def test_a_rolling_restart_loses_nothing_and_storms_nobody(database: str) -> None:
    """Each of four workers is replaced under load; no second has more calls than the four may make."""
    number, each, service = 400, 20, Service(polls=3, delay=0.01)

    async def main() -> None:
        async with fleet(database) as ours, serve(service.answer) as server:
            command = ("-m", "tarry.cli", "run", "--quiet", "--db", database, "--per-second", str(each))
            working = [await ours.start(*command) for _ in range(4)]
            await ours.until(lambda: ours.count("*) FROM tarry_worker") == 4)
            await add(database, spec_at(server.origin), number, 0)
            for place in range(4):
                await ours.until(lambda: sum(service.seen.values()) > number // 2)
                await ours.stop(working[place])
                working[place] = await ours.start(*command)
            await ours.until(lambda: ours.count("outcome) FROM tarry_job") == number)
            for process in working:
                await ours.stop(process)
            # Of a second, the one that left and the one that came in its place may have had some each.
            assert busiest(service.at) <= 5 * (each + 1)
            check(ours, service, number)

    run(main)


def busiest(at: list[float]) -> int:
    """The most calls in any second."""
    first, most = 0, 0
    for last, moment in enumerate(at):
        while at[first] < moment - 1:
            first += 1
        most = max(most, last - first + 1)
    return most
