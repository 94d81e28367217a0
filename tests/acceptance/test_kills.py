"""Real kills of a real process, judged by what the remote service saw and by the database."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tarry.testing import StubService

WAITER = Path(__file__).with_name("waiter.py")
MAX_POLLS = 30
RUNS = 40
MOMENTS = ("before-submit", "after-submit", "before-poll", "after-poll", "before-commit", "after-commit", "in-sleep")


@dataclass(frozen=True)
class Row:
    """What the database says of the job."""

    polls: int
    reserved: int
    deadline: int
    outcome: str | None


@pytest.fixture(scope="module")
def stub() -> Iterator[StubService]:
    """One service for all runs: each run has a key of its own."""
    with StubService().run_in_thread() as service:
        yield service


def row(database: Path, key: str) -> Row | None:
    """The job's row, read from outside; None before it exists."""
    if not database.exists():
        return None
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10) as connection:
        try:
            found = connection.execute(
                "SELECT polls, reserved, deadline, outcome FROM tarry_job WHERE key = ?", (key,)
            ).fetchone()
        except sqlite3.OperationalError:
            return None
    return None if found is None else Row(*found)


def gets(stub: StubService, key: str) -> tuple[int, int]:
    """How many remote jobs the key has, and how many status calls they got."""
    jobs = [job for job in stub.jobs() if job["input"].get("dataset") == key]
    return len(jobs), sum(job["polls"] for job in jobs)


def begin(stub: StubService, database: Path, key: str, moment: str = "") -> subprocess.Popen[str]:
    """Start the waiting program."""
    command = [sys.executable, str(WAITER), stub.url, str(database), key, moment]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def look(stub: StubService, database: Path, key: str, deadlines: set[int]) -> None:
    """What must hold at every look: one remote job, and no more calls seen than are accounted for."""
    jobs, seen = gets(stub, key)
    found = row(database, key)
    assert jobs <= 1, "two remote jobs for one key"
    if found is None:
        assert seen == 0
        return
    deadlines.add(found.deadline)
    assert seen <= found.polls + found.reserved <= MAX_POLLS
    assert len(deadlines) == 1, "the deadline moved"


def finish(stub: StubService, database: Path, key: str, deadlines: set[int]) -> dict[str, Any]:
    """Run to the end; the result."""
    process = begin(stub, database, key)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    look(stub, database, key, deadlines)
    return dict(json.loads(output))


@pytest.mark.parametrize("run", range(RUNS))
def test_killed_at_any_moment_the_job_ends_right(run: int, stub: StubService, tmp_path: Path) -> None:
    """After kills at random moments: one remote job, every call accounted for, the right result, one deadline."""
    chance = random.Random(run)
    database, key, deadlines = tmp_path / "jobs.db", f"orders-{run}", set[int]()
    for _ in range(chance.randint(1, 3)):
        if run % 4 == 3:
            process = begin(stub, database, key)
            time.sleep(chance.uniform(0.2, 1.6))
            process.send_signal(signal.SIGKILL)
        else:
            moment = f"{MOMENTS[(run + chance.randint(0, 6)) % len(MOMENTS)]}:{chance.randint(1, 3)}"
            process = begin(stub, database, key, moment)
        process.communicate(timeout=60)
        assert process.returncode in {0, -signal.SIGKILL}
        look(stub, database, key, deadlines)
    ended = finish(stub, database, key, deadlines)
    assert ended["outcome"] == "succeeded"
    assert ended["output"]["rows"] == 4211
    assert gets(stub, key)[1] <= ended["polls"] <= MAX_POLLS


@pytest.mark.parametrize("run", range(3))
def test_a_killed_process_is_replaced_within_two_seconds(run: int, stub: StubService, tmp_path: Path) -> None:
    """A second process that waits for the same key goes on within 2 s of the kill."""
    database, key = tmp_path / "jobs.db", f"taken-over-{run}"
    first = begin(stub, database, key)
    while gets(stub, key)[1] < 1:
        assert first.poll() is None
        time.sleep(0.01)
    second = begin(stub, database, key)
    first.send_signal(signal.SIGKILL)
    killed_at, seen_then = time.monotonic(), gets(stub, key)[1]
    first.communicate(timeout=10)
    while gets(stub, key)[1] <= seen_then:
        assert time.monotonic() - killed_at < 5
        time.sleep(0.01)
    took = time.monotonic() - killed_at
    output, _ = second.communicate(timeout=60)
    assert json.loads(output)["outcome"] == "succeeded"
    assert took < 2 + 1.5, "the second process had to start as well"
