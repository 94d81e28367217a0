"""SQLite stores of several processes: who is alive, and who may write."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tarry.store import SqlStore
from tarry.store.files import create_private
from tests.contract.bench import FLOOR, START, TTL, held

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}

Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def start(database: Path) -> Iterator[Start]:
    """Starts a holder; all are gone afterwards."""
    started: list[subprocess.Popen[str]] = []

    def begin(mode: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.integration.holder", str(database), mode]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        holder = subprocess.Popen(command, env=ENVIRONMENT, cwd=ROOT, **pipes)  # type: ignore[call-overload]  # pipes by name
        started.append(holder)
        return holder

    yield begin
    for holder in started:
        holder.kill()
        holder.communicate()


@pytest.fixture
def store(database: Path) -> Iterator[SqlStore]:
    made = SqlStore(f"sqlite:///{database}")
    made.open(START)
    yield made
    made.close()


def line(holder: subprocess.Popen[str]) -> str:
    """The next line that the holder says."""
    assert holder.stdout is not None
    return holder.stdout.readline().rstrip()


@pytest.mark.parametrize("mode", ["hold", "fork"])
def test_a_killed_process_frees_its_jobs_at_once(store: SqlStore, start: Start, mode: str) -> None:
    """No lease is waited for: the lock ends with the process, even where a child it forked lives on."""
    holder = start(mode)
    assert line(holder) == "holding 1"
    me = store.register("me", START, TTL)
    assert store.bury(me, START) == 0
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert store.bury(me, START + 1) == 1
    (row,) = store.rows([1])
    # The poll it may have sent started before it died, not when its lease would have ended.
    assert (row.polls, row.strikes, row.polled_at, row.due) == (1, 1, START + 1, START + 1 + FLOOR)
    assert len(store.claim(me, "n2", START + 1, [1])) == 1


def test_a_paused_process_is_not_dead(store: SqlStore, start: Start) -> None:
    """A stopped process keeps its lock, and its jobs until its lease ends."""
    holder = start("hold")
    line(holder)
    holder.send_signal(signal.SIGSTOP)
    me = store.register("me", START, 10 * TTL)
    assert store.bury(me, START + TTL - 1) == 0
    assert store.bury(me, START + TTL) == 1


def test_a_process_that_closed_without_retiring_is_gone(store: SqlStore, start: Start) -> None:
    """The end of the process, however it came, is the end of its lock."""
    holder = start("hold")
    line(holder)
    holder.communicate("")
    assert holder.returncode == 0
    assert store.bury(store.register("me", START, TTL), START) == 1


def test_a_forked_child_is_refused(start: Start) -> None:
    """SQLite connections do not survive a fork; the parent goes on unharmed."""
    holder = start("use-after-fork")
    assert [line(holder) for _ in range(2)] == [
        "the store was opened before this process was forked: open a store of its own in each"
    ] * 2
    assert line(holder) == "holding 1"
    holder.communicate("")
    assert holder.returncode == 0


def test_two_stores_in_one_process_see_each_other_alive(store: SqlStore, database: Path) -> None:
    """Locks belong to open files, not to processes: a neighbour in the same process is not taken for dead."""
    neighbour = SqlStore(f"sqlite:///{database}")
    neighbour.open(START)
    row = held(neighbour, uuid="neighbour")
    me = store.register("me", START, TTL)
    assert store.bury(me, START) == 0
    neighbour.close()
    assert store.bury(me, START) == 1
    assert store.rows([row.id])[0].owner is None


def test_locks_are_private_and_cleared_away(store: SqlStore, database: Path) -> None:
    """The folder and its files are their owner's alone; the retired and the buried leave none."""
    folder = database.with_name("jobs.db-workers")
    old = os.umask(0)
    try:
        worker = store.register("first", START, TTL)
    finally:
        os.umask(old)
    store.register("second", START, TTL)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == {
        "first.lock": 0o600,
        "second.lock": 0o600,
    }
    store.retire(worker, START)
    assert [path.name for path in folder.iterdir()] == ["second.lock"]
    store.bury(store.register("third", START + TTL, TTL), START + TTL)
    assert [path.name for path in folder.iterdir()] == ["third.lock"]


def test_a_lock_that_was_removed_is_a_worker_that_is_gone(store: SqlStore, database: Path) -> None:
    """Fenced off, it loses its jobs and registers anew: nothing worse."""
    row = held(store, uuid="first")
    (database.with_name("jobs.db-workers") / "first.lock").unlink()
    other = SqlStore(f"sqlite:///{database}")
    other.open(START)
    assert other.bury(other.register("me", START, TTL), START) == 1
    other.close()
    assert row.owner is not None
    assert not store.renew(row.owner, START, TTL)


def locked_elsewhere(database: Path) -> str:
    """What another process hears when it wants to write now."""
    script = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "try:\n    connection.execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.OperationalError as error:\n    print(error.sqlite_errorname)\n"
        "connection.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(database)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_write_holds_the_lock_from_its_begin(store: SqlStore, database: Path) -> None:
    """BEGIN IMMEDIATE, before any statement: another process is told to wait, not surprised later."""
    assert locked_elsewhere(database) == ""
    with store._database.write() as connection:
        assert connection.connection.dbapi_connection.in_transaction  # type: ignore[union-attr]  # sqlite3's
        assert locked_elsewhere(database) == "SQLITE_BUSY"
        # What a second store in this process does to the file must not drop the lock: any close() of it would.
        create_private(database)
        assert locked_elsewhere(database) == "SQLITE_BUSY"


def test_a_store_that_is_gone_leaves_a_sound_database(start: Start, database: Path) -> None:
    """Killed while it held a job, what it was told is written is there, and the file is whole."""
    holder = start("hold")
    line(holder)
    holder.kill()
    holder.wait()
    connection = sqlite3.connect(database)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT reserved FROM tarry_job").fetchall() == [(1,)]
    connection.close()
