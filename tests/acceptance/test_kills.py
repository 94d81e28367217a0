"""Real kills of a real process, judged by what the remote service saw and by the database."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import select

from tarry.testing import StubService
from tests.acceptance.outside import ENVIRONMENT, TABLES, end_leases, rows, wait_until, workers

pytestmark = pytest.mark.slow

WAITER = Path(__file__).with_name("waiter.py")
MAX_POLLS = 100
# The rules are the same everywhere, and so is most of the code: a few moments on each server will do.
RUNS_ON = [("sqlite" if run < 30 else "postgres" if run < 35 else "mariadb", run) for run in range(40)]
MOMENTS = ("before-submit", "after-submit", "before-poll", "after-poll", "before-commit", "after-commit", "in-sleep")

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


def row(database: str) -> Row | None:
    """The job's row, read from outside; None before it exists."""
    job = TABLES.job.c
    found = rows(database, select(job.polls, job.reserved, job.deadline, job.outcome))
    return Row(*found[0]) if found else None


def gets(stub: StubService) -> int:
    """How many status calls the service saw."""
    return sum(1 for request in stub.requests if request["kind"] == "poll")


def begin(
    stub: StubService,
    database: str,
    moment: str = "",
    *,
    key: str = "orders",
    seconds: float | None = None,
    idempotent: bool = True,
) -> subprocess.Popen[str]:
    """Start the waiting program."""
    submit = {"json": {} if seconds is None else {"seconds": seconds}, "idempotent": idempotent}
    command = [sys.executable, str(WAITER), stub.url, database, json.dumps(submit), key, moment]
    STARTED.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT))
    return STARTED[-1]


def look(stub: StubService, database: str, deadlines: set[int]) -> None:
    """What must hold at every look: one remote job, and no more calls seen than are accounted for."""
    seen, found = gets(stub), row(database)
    assert len(stub.jobs) <= 1, "two remote jobs for one key"
    if found is None:
        assert seen == 0
        return
    deadlines.add(found.deadline)
    assert seen <= found.polls + found.reserved <= MAX_POLLS
    assert len(deadlines) == 1, "the deadline moved"


@pytest.mark.parametrize(("database", "run"), RUNS_ON, indirect=["database"])
def test_killed_at_any_moment_the_job_ends_right(run: int, stub: StubService, database: str) -> None:
    """After kills at random moments: one remote job, every call accounted for, the right result, one deadline."""
    chance, deadlines = random.Random(run), set[int]()
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
        end_leases(database)
        look(stub, database, deadlines)
    process = begin(stub, database)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    look(stub, database, deadlines)
    ended = json.loads(output)
    assert (ended["outcome"], ended["output"]["rows"], len(stub.jobs)) == ("succeeded", 4211, 1)
    assert gets(stub) <= ended["polls"] <= MAX_POLLS


def test_a_submit_killed_half_way_is_for_a_person_to_decide(stub: StubService, database: str) -> None:
    """Where nothing promises that a second submit is safe, there is no second submit."""
    for moment in ("after-submit:1", ""):
        process = begin(stub, database, moment, idempotent=False)
        output, _ = process.communicate(timeout=60)
        end_leases(database)
    assert json.loads(output)["outcome"] == "submit_unknown"
    assert len(stub.jobs) == 1


def test_a_killed_process_is_replaced_within_two_seconds(stub: StubService, database: str) -> None:
    """A second process that waits for the same key goes on within 2 s of the kill, in one of three tries.

    On servers: of the end of the lease. A machine with much else to do may be late once; on SQLite, whoever waited
    for the lease to end would be late each time. The job ends once, and was submitted once.
    """
    for run in range(3):
        took = replaced_after(stub, database, f"orders-{run}")
        assert len(stub.jobs) == run + 1
        if took < 2:
            return
    raise AssertionError("it was late each time")


def replaced_after(stub: StubService, database: str, key: str) -> float:
    """Seconds from the kill of one process to the first poll of the other."""
    before, seen = workers(database), gets(stub)
    first = begin(stub, database, key=key, seconds=5)
    wait_until(lambda: gets(stub) > seen, first)
    second = begin(stub, database, key=key, seconds=5)
    wait_until(lambda: workers(database) == before + 2, first, second)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    end_leases(database)
    killed_at, seen = time.monotonic(), gets(stub)
    wait_until(lambda: gets(stub) > seen, second)
    took = time.monotonic() - killed_at
    output, _ = second.communicate(timeout=60)
    assert json.loads(output)["outcome"] == "succeeded"
    return took
