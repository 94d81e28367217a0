"""Workers on one database, killed and stopped: every job ends once and right."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import distinct, select

from tarry import Fixed, JobSpec, Limits, Match, Request, sync
from tarry.testing import StubService
from tests.acceptance.outside import ENVIRONMENT, TABLES, count, end_leases, rows, wait_until
from tests.acceptance.outside import workers as registered

pytestmark = pytest.mark.slow

JOB = TABLES.job.c


@pytest.fixture
def workers(database: str, tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Two workers on one database, gone at the end however it ends; what they print is in files."""
    command = [sys.executable, "-m", "tarry.cli", "run", "--json", "--db", database]
    begun = []
    for number in range(2):
        # Nobody reads what they print before the end: a pipe would be full by then, and they would wait for ever.
        with told_by(tmp_path, number).open("w") as file:
            begun.append(subprocess.Popen(command, text=True, env=ENVIRONMENT, stdout=file, stderr=subprocess.PIPE))
    try:
        wait_until(lambda: registered(database) == 2, *begun)
        yield begun
    finally:
        for process in begun:
            process.kill()
            process.communicate()


def told_by(folder: Path, number: int) -> Path:
    """Where the worker's lines go."""
    return folder / f"worker-{number}.jsonl"


@pytest.fixture
def stub() -> Iterator[StubService]:
    """A service that knows nothing but this test's jobs."""
    with StubService().run_in_thread() as service:
        yield service


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


def shared(database: str, stub: StubService, least: int) -> int:
    """Store so many jobs or more, one after the other, until both workers hold some; how many."""
    with sync.Poller(database) as poller:
        for number in range(1000):
            if number >= least and count(database, distinct(JOB.owner)) == 2:
                return number
            poller.add(f"job-{number}", spec_at(stub.url))
            time.sleep(0.02)
    raise AssertionError("one of them took all")


def check(database: str, stub: StubService, jobs: int) -> None:
    """Every job has one end, the right one, and one remote job, and no poll was made that is not counted."""
    found = rows(database, select(JOB.key, JOB.outcome, JOB.polls, JOB.reserved, JOB.owner, JOB.output))
    assert len(stub.jobs) == len(found) == jobs
    for key, outcome, polls, reserved, owner, output in found:
        assert (outcome, reserved, owner, json.loads(output)["rows"]) == ("succeeded", 0, None, 4211), key
        assert polls <= 30
    assert sum(stub.polls.values()) <= sum(row.polls for row in found)
    event = TABLES.event.c
    ends = rows(database, select(event.job).where(event.kind == "finished"))
    assert len(ends) == len({row.job for row in ends}) == jobs


def test_a_killed_worker_is_replaced_by_the_other(
    database: str, workers: list[subprocess.Popen[str]], stub: StubService, tmp_path: Path
) -> None:
    """Both share the jobs until one is killed; all end once and right, and the other tells of no job but these."""
    jobs = shared(database, stub, 50)
    workers[0].send_signal(signal.SIGKILL)
    workers[0].wait(30)
    end_leases(database)
    wait_until(lambda: count(database, JOB.outcome) == jobs, workers[1])
    workers[1].send_signal(signal.SIGTERM)
    workers[1].wait(30)
    assert workers[1].returncode == 0
    # One that took a minute also tells how it is doing.
    lines = [line for line in map(json.loads, told_by(tmp_path, 1).read_text().splitlines()) if "health" not in line]
    assert {line["key"] for line in lines} <= {f"job-{number}" for number in range(jobs)}
    check(database, stub, jobs)


@pytest.mark.parametrize("database", ["postgres", "mariadb"], indirect=True)
def test_a_stopped_worker_gives_its_jobs_back(
    database: str, workers: list[subprocess.Popen[str]], stub: StubService
) -> None:
    """When it has ended it holds nothing, and the other goes on with its jobs without waiting for a lease."""
    jobs, worker = shared(database, stub, 10), TABLES.worker.c
    workers[0].send_signal(signal.SIGTERM)
    workers[0].wait(30)
    assert workers[0].returncode == 0
    (gone,) = rows(database, select(worker.id).where(worker.released == 1))
    assert rows(database, select(JOB.key).where(JOB.owner == gone.id)) == []
    assert count(database, JOB.outcome) < jobs
    wait_until(lambda: count(database, JOB.outcome) == jobs, workers[1])
    assert rows(database, select(worker.id).where(worker.dead == 1)) == []
    check(database, stub, jobs)
