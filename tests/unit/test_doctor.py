"""The doctor: finds what is wrong with a database, says what to do, and changes nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tarry.codec import encode_spec, encode_state
from tarry.core.machine import start
from tarry.ports import QUARANTINED
from tarry.store import MemoryStore, SqlStore
from tarry.store.doctor import Level
from tarry.store.sqlite import SqliteFile
from tarry.words import DAY, HOUR, MINUTE, SECOND
from tests.contract.bench import START, TTL, ending, grip, new_job
from tests.pollers import polled

SPEC = polled()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the database is."""
    return tmp_path / "jobs.db"


@pytest.fixture
def store(file: Path) -> Iterator[SqlStore]:
    """A store with one job that is due, as a library without the WAL race sees it."""
    made = SqlStore(SqliteFile(file, library=(3, 51, 3)))
    made.open(START)
    state, _ = start(SPEC, "orders", START)
    made.add(new_job(spec=encode_spec(SPEC), state=encode_state(state), phase=state.phase))
    yield made
    made.close()


def found(store: SqlStore, now: int = START) -> dict[str, tuple[Level, str]]:
    """The findings by name, but for those that depend on the machine."""
    return {
        finding.name: (finding.level, finding.text)
        for finding in store.doctor(now)
        if finding.name not in {"library", "disk", "place"}
    }


def troubles(store: SqlStore, now: int = START) -> dict[str, Level]:
    """What is not all right."""
    return {name: level for name, (level, _) in found(store, now).items() if level is not Level.OK}


def wreck(file: Path, statement: str) -> None:
    """Write past Tarry."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def test_a_sound_database_has_no_trouble(store: SqlStore) -> None:
    """Every check is told, and all are well, also while a worker holds a job."""
    worker = store.register("first", START, TTL)
    (row,) = store.claim(worker, "n1", START, [1])
    store.reserve([grip(row)])
    assert troubles(store) == {}
    assert {"synchronous", "journal", "integrity", "schema", "rules", "damaged", "workers"} <= found(store).keys()
    assert found(store)["workers"] == (Level.OK, "1 alive")


def test_it_changes_nothing(tmp_path: Path, file: Path) -> None:
    """Not a byte of a file that nobody has open, and no file is made; one that is no store yet stays none."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE mine (a)")
    file.chmod(0o600)
    before = file.read_bytes()
    assert troubles(SqlStore(f"sqlite:///{file}")) == {"schema": Level.NOTE}
    assert file.read_bytes() == before
    assert troubles(SqlStore(f"sqlite:///{tmp_path / 'none.db'}")) == {"database": Level.ERROR}
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.db"]


def test_nobody_waits_for_it(file: Path) -> None:
    """Between two looks it holds no lock, where a reader would keep a writer from its commit."""
    database = SqliteFile(file, library=(3, 40, 1))
    store = SqlStore(database)
    store.open(START)
    with database.look() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM tarry_job").scalar() == 0
        with closing(sqlite3.connect(file, timeout=0)) as other, other:
            other.execute("DELETE FROM tarry_job")
    store.close()


@pytest.mark.parametrize("damage", ["header", "page", "nothing in it"])
def test_a_damaged_database_is_told_in_one_line(file: Path, store: SqlStore, damage: str) -> None:
    """What was found before stands, and the error says what to do."""
    store.close()
    content = bytearray(file.read_bytes())
    if damage == "header":
        content[:16] = b"x" * 16
    elif damage == "page":
        content[4096 * 3 : 4096 * 4] = b"\x07" * 4096
    else:
        content = content[:1000]
    file.write_bytes(content)
    after = found(SqlStore(f"sqlite:///{file}"))
    errors = [text for level, text in after.values() if level is Level.ERROR]
    assert errors
    assert all("\n" not in text for text in errors)
    assert any("restore a backup" in text or "no SQLite database" in text for text in errors)


def test_settings_that_are_weaker_are_told(tmp_path: Path) -> None:
    """WAL with a library that must not use it is an error; on a network, and readable by others, a warning."""
    file = tmp_path / "jobs.db"
    wreck(file, "PRAGMA journal_mode=wal")
    file.chmod(0o644)
    shared = SqlStore(SqliteFile(file, library=(3, 40, 1), network=lambda _: "nfs4"))
    after = {finding.name: finding.level for finding in shared.doctor(START)}
    assert (after["journal"], after["place"], after["rights"]) == (Level.ERROR, Level.WARNING, Level.WARNING)
    assert found(shared)["journal"][1].startswith("WAL, which can damage the database")


@pytest.mark.parametrize(("megabytes", "level"), [(40, Level.ERROR), (400, Level.WARNING), (4000, Level.OK)])
def test_a_disk_that_fills_up_is_told(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, megabytes: int, level: Level
) -> None:
    """Before there is no room for a commit."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=megabytes << 20))
    assert {finding.level for finding in store.doctor(START) if finding.name == "disk"} == {level}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_cannot_be_written_is_an_error(file: Path, store: SqlStore) -> None:
    """A worker of this user would fail there."""
    store.close()
    file.chmod(0o400)
    assert troubles(store)["rights"] is Level.ERROR


def test_who_works_is_told(store: SqlStore) -> None:
    """A worker that ended while it held a job, by its lease or by its lock, and one that held none."""
    worker = store.register("first", START, TTL)
    assert troubles(store, START + TTL) == {"ended": Level.NOTE}
    store.claim(worker, "n1", START, [1])
    level, text = found(store, START + TTL)["held"]
    assert (level, text) == (
        Level.WARNING,
        "1 job ('orders') held by a worker that ended: freed when a worker runs: `tarry run`",
    )
    assert "held" not in found(store)
    store.close()
    assert found(store)["held"][0] is Level.WARNING


def test_what_nobody_polls_is_told(store: SqlStore) -> None:
    """Due for more than a minute: because nobody works, or because those who do cannot."""
    late = START + 2 * MINUTE
    assert found(store, late)["overdue"] == (
        Level.WARNING,
        "1 job ('orders') due for up to 2m: no worker runs: `tarry run`",
    )
    store.register("first", late, TTL)
    assert "too few, or cannot poll them" in found(store, late)["overdue"][1]


TROUBLES = {
    "wake = NULL": ("asleep", Level.ERROR),
    f"paused = {QUARANTINED}, wake = NULL": ("quarantine", Level.WARNING),
    f"created_at = {START + 2 * HOUR}": ("clock", Level.WARNING),
    "labels = 'x'": ("damaged", Level.ERROR),
    "state = '{}'": ("damaged", Level.ERROR),
    "fingerprint = x'ff'": ("damaged", Level.ERROR),
    "polls = 4": ("rule", Level.ERROR),
    "polls = -1": ("rule", Level.ERROR),
    f"finished_at = {START}": ("rule", Level.ERROR),
    "reserved = 1": ("rule", Level.ERROR),
    "paused = 1": ("rule", Level.ERROR),
    "told = 99": ("rule", Level.ERROR),
    "event_seq = 0, told = 0": ("rule", Level.ERROR),
}


@pytest.mark.parametrize("change", TROUBLES)
def test_rows_that_are_wrong_are_told(file: Path, store: SqlStore, change: str) -> None:
    """With the key of the job that somebody has to look at."""
    if "event_seq" in change:
        wreck(file, f"INSERT INTO tarry_event VALUES (1, 1, 1, 'created', {START}, '{{}}')")
    wreck(file, f"UPDATE tarry_job SET {change}")
    name, level = TROUBLES[change]
    assert troubles(store) == {name: level}
    assert name == "clock" or "'orders'" in found(store)[name][1]


def test_a_spec_that_is_gone_and_rows_without_a_job_are_told(file: Path, store: SqlStore) -> None:
    """A job without its spec breaks a rule and cannot be read; what is left of a job that is gone is litter."""
    wreck(file, "DELETE FROM tarry_spec")
    assert troubles(store) == {"rule": Level.ERROR, "damaged": Level.ERROR}
    wreck(file, f"INSERT INTO tarry_event VALUES (9, 1, 1, 'created', {START}, '{{}}')")
    assert troubles(store)["strays"] is Level.WARNING


def test_what_was_given_up_and_what_is_old_is_told(file: Path, store: SqlStore) -> None:
    """Dead letters, and jobs that have been over for long."""
    worker = store.register("first", START, TTL)
    (row,) = store.claim(worker, "n1", START, [1])
    store.checkpoint([ending(grip(row))])
    wreck(file, "INSERT INTO tarry_outbox (job, run, kind, state, tries) VALUES (1, 1, 'then', 'dead', 9)")
    store.retire(worker, START)
    after: Any = troubles(store, START + 31 * DAY)
    assert after == {"deliveries": Level.WARNING, "retention": Level.NOTE}


def test_many_keys_are_cut_short(store: SqlStore) -> None:
    """Three are enough to look at."""
    for number in range(5):
        store.add(new_job(f"job-{number}", spec=encode_spec(SPEC)))
    text = found(store, START + HOUR)["overdue"][1]
    assert text.startswith("6 jobs ('orders', 'job-0', 'job-1', …) due for up to 1h: ")


def test_a_schema_that_differs_is_told_and_the_jobs_are_left(file: Path, store: SqlStore) -> None:
    """Newer: an error; older: it is brought up to date at the next use, and not by the doctor."""
    for version, level in (("99", Level.ERROR), ("0", Level.NOTE)):
        wreck(file, f"UPDATE tarry_meta SET value = '{version}'")
        assert troubles(store) == {"schema": level}
        assert "rules" not in found(store)
    wreck(file, "UPDATE tarry_meta SET value = 'x'")
    assert troubles(store) == {"database": Level.ERROR}


def test_a_store_in_memory_can_be_looked_at(store: SqlStore) -> None:
    """Without what a file has."""
    memory = MemoryStore()
    memory.open(START)
    assert {finding.level for finding in memory.doctor(START + SECOND)} == {Level.OK}
