"""Real kills of a real process, judged by what the remote service saw and by the database."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tarry.testing import StubService

pytestmark = pytest.mark.slow

WAITER = Path(__file__).with_name("waiter.py")
MAX_POLLS = 100
RUNS = 40
MOMENTS = ("before-submit", "after-submit", "before-poll", "after-poll", "before-commit", "after-commit", "in-sleep")

# Measuring what a process covers that dies anyway would only slow its start.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}
STARTED: list[subprocess.Popen[str]] = []


@dataclass(frozen=True)
class Row:
    """What the database says of the job."""

    polls: int
    reserved: int
    deadline: int
    outcome: str | None


@pytest.fixture
def stub() -> Iterator[StubService]:
    """A service that knows nothing but this test's job."""
    with StubService().run_in_thread() as service:
        yield service


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Whatever a test started has ended when it ends, however it ends."""
    yield
    while STARTED:
        process = STARTED.pop()
        process.kill()
        process.communicate()


def row(database: Path) -> Row | None:
    """The job's row, read from outside; None before it exists."""
    if not database.exists():
        return None
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)) as connection:
        try:
            found = connection.execute("SELECT polls, reserved, deadline, outcome FROM tarry_job").fetchone()
        except sqlite3.OperationalError:
            return None
    return None if found is None else Row(*found)


def gets(stub: StubService) -> int:
    """How many status calls the service saw."""
    return sum(1 for request in stub.requests if request["kind"] == "poll")


def begin(
    stub: StubService, database: Path, moment: str = "", *, seconds: float | None = None, idempotent: bool = True
) -> subprocess.Popen[str]:
    """Start the waiting program."""
    submit = {"json": {} if seconds is None else {"seconds": seconds}, "idempotent": idempotent}
    command = [sys.executable, str(WAITER), stub.url, str(database), json.dumps(submit), moment]
    STARTED.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT))
    return STARTED[-1]


def workers(database: Path) -> int:
    """How many workers have registered."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)) as connection:
        return int(connection.execute("SELECT count(*) FROM tarry_worker").fetchone()[0])


def wait_until(holds: Callable[[], bool], *processes: subprocess.Popen[str]) -> None:
    """Look every 10 ms, for 30 s, while the processes live."""
    for _ in range(3000):
        if holds():
            return
        assert all(process.poll() is None for process in processes)
        time.sleep(0.01)
    raise AssertionError("it did not happen within 30 s")


def look(stub: StubService, database: Path, deadlines: set[int]) -> None:
    """What must hold at every look: one remote job, and no more calls seen than are accounted for."""
    seen, found = gets(stub), row(database)
    assert len(stub.jobs) <= 1, "two remote jobs for one key"
    if found is None:
        assert seen == 0
        return
    deadlines.add(found.deadline)
    assert seen <= found.polls + found.reserved <= MAX_POLLS
    assert len(deadlines) == 1, "the deadline moved"


@pytest.mark.parametrize("run", range(RUNS))
def test_killed_at_any_moment_the_job_ends_right(run: int, stub: StubService, tmp_path: Path) -> None:
    """After kills at random moments: one remote job, every call accounted for, the right result, one deadline."""
    chance, database, deadlines = random.Random(run), tmp_path / "jobs.db", set[int]()
    for _ in range(chance.randint(1, 2)):
        if run % 4 == 3:
            process = begin(stub, database)
            time.sleep(chance.uniform(0.3, 2))
            process.send_signal(signal.SIGKILL)
        else:
            what = MOMENTS[(run + chance.randint(0, 6)) % len(MOMENTS)]
            process = begin(stub, database, f"{what}:{chance.randint(1, 1 if 'submit' in what else 6)}")
        process.communicate(timeout=60)
        assert process.returncode in {0, -signal.SIGKILL}
        look(stub, database, deadlines)
    process = begin(stub, database)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    look(stub, database, deadlines)
    ended = json.loads(output)
    assert (ended["outcome"], ended["output"]["rows"], len(stub.jobs)) == ("succeeded", 4211, 1)
    assert gets(stub) <= ended["polls"] <= MAX_POLLS


def test_a_submit_killed_half_way_is_for_a_person_to_decide(stub: StubService, tmp_path: Path) -> None:
    """Where nothing promises that a second submit is safe, there is no second submit."""
    database = tmp_path / "jobs.db"
    for moment in ("after-submit:1", ""):
        process = begin(stub, database, moment, idempotent=False)
        output, _ = process.communicate(timeout=60)
    assert json.loads(output)["outcome"] == "submit_unknown"
    assert len(stub.jobs) == 1


def test_a_killed_process_is_replaced_within_two_seconds(stub: StubService, tmp_path: Path) -> None:
    """A second process that waits for the same key goes on within 2 s of the kill, in one of three tries.

    A machine with much else to do may be late once; whoever waited for the lease to end would be late each time.
    """
    assert any(replaced_after(stub, tmp_path / f"{run}.db") < 2 for run in range(3))


def replaced_after(stub: StubService, database: Path) -> float:
    """Seconds from the kill of one process to the first poll of the other."""
    seen = gets(stub)
    first = begin(stub, database, seconds=6)
    wait_until(lambda: gets(stub) > seen, first)
    second = begin(stub, database, seconds=6)
    wait_until(lambda: workers(database) == 2, first, second)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    killed_at, seen = time.monotonic(), gets(stub)
    wait_until(lambda: gets(stub) > seen, second)
    took = time.monotonic() - killed_at
    output, _ = second.communicate(timeout=60)
    assert json.loads(output)["outcome"] == "succeeded"
    return took
