"""A database server that is stopped at once and started again, under load: nothing is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

import pytest
from sqlalchemy import URL, select

from tarry import Fixed, JobSpec, Limits, Match, Poller, Request
from tarry.clock import SystemClock
from tarry.store import SqlStore
from tarry.store.doctor import Level
from tarry.testing import StubService
from tests.acceptance import servers
from tests.acceptance.outside import ENVIRONMENT, TABLES, count, rows, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="it stops a server by a signal")]

JOBS = 40
MAX_POLLS = 100
JOB = TABLES.job.c


@dataclass
class Server:
    """A PostgreSQL server of the test's own."""

    folder: Path
    url: URL
    pid: int

    @property
    def database(self) -> str:
        """Where its jobs are."""
        return self.url.render_as_string(hide_password=False)

    def restart(self) -> None:
        """As `pg_ctl restart -m immediate`: no connection is ended in order, and nothing is written first."""
        servers.stop(self.pid, signal.SIGQUIT)
        self.pid = servers.serve_postgres(self.folder, self.url)


@pytest.fixture
def server() -> Iterator[Server]:
    """Gone at the end, however it ends."""
    with tempfile.TemporaryDirectory(dir=os.environ[servers.FOLDER]) as folder:
        servers.give(Path(folder))
        try:
            pid, url = servers.start_postgres(Path(folder))
        except servers.Missing as missing:
            pytest.skip(str(missing))
        made = Server(Path(folder), url, pid)
        try:
            yield made
        finally:
            servers.stop(made.pid, signal.SIGQUIT)


def spec_at(url: str) -> JobSpec:
    """A job of the stubbed service, polled often for some ten seconds."""
    return JobSpec(
        submit=Request("POST", f"{url}/jobs", json={"seconds": 8}, idempotent=True),
        poll=Request("GET", f"{url}/jobs/{{submit.body.jobId}}"),
        until=Match("body.state", succeeded="SUCCEEDED", failed="FAILED", pending=["QUEUED", "RUNNING"]),
        strategy=Fixed("500ms"),
        limits=Limits(min_interval="300ms", max_polls=MAX_POLLS, total_duration="10m"),
        result="body.result",
    )


@asynccontextmanager
async def worker(database: str) -> AsyncIterator[None]:
    """A process that polls what is due, whatever happens to its database."""
    command = (sys.executable, "-m", "tarry.cli", "run", "--quiet", "--db", database)
    process = await asyncio.create_subprocess_exec(*command, env=ENVIRONMENT)
    try:
        yield
        assert process.returncode is None
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 30) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def check(database: str, stub: StubService) -> None:
    """Each job has one end and a remote job of its own, whose every call is counted."""
    found = rows(database, select(JOB.key, JOB.outcome, JOB.polls, JOB.reserved, JOB.owner, JOB.output))
    remote = {row.key: PurePath(json.loads(row.output)["artifact"]).stem for row in found}
    assert len(found) == len(set(remote.values())) == len(stub.jobs) == JOBS
    for row in found:
        assert (row.outcome, row.reserved, row.owner) == ("succeeded", 0, None), row.key
        assert stub.polls[remote[row.key]] <= row.polls <= MAX_POLLS, row.key
    event = TABLES.event.c
    ends = rows(database, select(event.job).where(event.kind == "finished"))
    assert len(ends) == len({row.job for row in ends}) == JOBS
    findings = SqlStore(database).doctor(SystemClock().now())
    assert [finding for finding in findings if finding.level is Level.ERROR] == []


async def restart_under_load(server: Server, stub: StubService) -> None:
    """Half of the jobs are awaited here, half are for a worker; the server goes and comes back twice."""
    spec, half = spec_at(stub.url), JOBS // 2
    async with Poller(server.database) as poller, worker(server.database):
        for number in range(half):
            await poller.add(f"job-{number}", spec)
        awaited = {f"job-{number}": spec for number in range(half, JOBS)}
        waiting = asyncio.create_task(poller.await_all(awaited))
        for _ in range(2):
            enough = sum(stub.polls.values()) + half
            await asyncio.to_thread(wait_until, lambda enough=enough: sum(stub.polls.values()) > enough)
            assert count(server.database, JOB.outcome) < half
            await asyncio.to_thread(server.restart)
        results = await waiting
        assert {result.output["rows"] for result in results.values()} == {4211}
        await asyncio.to_thread(wait_until, lambda: count(server.database, JOB.outcome) == JOBS)


def test_nothing_is_lost_when_the_server_restarts_at_once_under_load(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Twice it goes without a word. Every job ends once, was submitted once, and the pollers go on by themselves."""
    with StubService().run_in_thread() as stub:
        asyncio.run(asyncio.wait_for(restart_under_load(server, stub), 120))
        assert "the store is away" in caplog.text
        check(server.database, stub)
