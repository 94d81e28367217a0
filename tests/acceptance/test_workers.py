"""Two workers on one database, one of them killed: every job ends once and right."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tarry import Fixed, JobSpec, Limits, Match, Request, sync
from tarry.testing import StubService

pytestmark = pytest.mark.slow

JOBS = 60
# Measuring what a process covers that dies anyway would only slow its start.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Two workers on one database, gone at the end however it ends."""
    command = [sys.executable, "-m", "tarry.cli", "run", "--json", "--db", str(tmp_path / "jobs.db")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    begun = [subprocess.Popen(command, text=True, env=ENVIRONMENT, **pipes) for _ in range(2)]
    yield begun
    for process in begun:
        process.kill()
        process.communicate()


def spec_at(url: str) -> JobSpec:
    """A job of the stubbed service, polled once a second."""
    return JobSpec(
        submit=Request("POST", f"{url}/jobs", json={"name": "{key}"}, idempotent=True),
        poll=Request("GET", f"{url}/jobs/{{submit.body.jobId}}"),
        until=Match("body.state", succeeded="SUCCEEDED", failed="FAILED", pending=["QUEUED", "RUNNING"]),
        strategy=Fixed("1s"),
        limits=Limits(min_interval="500ms", max_polls=30, total_duration="10m"),
        result="body.result",
    )


def count(database: Path, what: str) -> int:
    """A number that the database knows, read from outside; 0 before there are tables."""
    if not database.exists():
        return 0
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)) as connection:
        try:
            return int(connection.execute(f"SELECT count({what}").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def wait_until(holds: Callable[[], bool]) -> None:
    """Look every 10 ms, for a minute."""
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen within a minute")


def test_a_killed_worker_is_replaced_by_the_other(tmp_path: Path, workers: list[subprocess.Popen[str]]) -> None:
    """Every job has one right outcome and one remote job, and no poll was made that is not counted."""
    database = tmp_path / "jobs.db"
    wait_until(lambda: count(database, "*) FROM tarry_worker") == 2)
    with StubService().run_in_thread() as stub:
        with sync.Poller(f"sqlite:///{database}") as poller:
            for number in range(JOBS):
                poller.add(f"job-{number}", spec_at(stub.url))
                time.sleep(0.02)
        wait_until(lambda: count(database, "DISTINCT owner) FROM tarry_job") == 2)
        workers[0].send_signal(signal.SIGKILL)
        wait_until(lambda: count(database, "outcome) FROM tarry_job") == JOBS)
        workers[1].send_signal(signal.SIGTERM)
        told, _ = workers[1].communicate(timeout=30)
        seen = sum(request["kind"] == "poll" for request in stub.requests)
        assert len(stub.jobs) == JOBS
    assert workers[1].returncode == 0
    lines = [json.loads(line) for line in told.splitlines()]
    # One that took a minute also tells how it is doing.
    assert {line["key"] for line in lines if "health" not in line} <= {f"job-{number}" for number in range(JOBS)}
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT key, outcome, polls, reserved, owner, output FROM tarry_job").fetchall()
    for key, outcome, polls, reserved, owner, output in rows:
        assert (outcome, reserved, owner, json.loads(output)["rows"]) == ("succeeded", 0, None, 4211), key
        assert polls <= 30
    assert seen <= sum(row[2] for row in rows)
