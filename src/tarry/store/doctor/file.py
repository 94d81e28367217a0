"""An SQLite file: where it lies, who may read it, and what a commit to it means."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

from tarry.errors import StoreError
from tarry.store.doctor.findings import Finding, Level, Patient
from tarry.store.locks import HAS_FLOCK, folder_beside
from tarry.store.sqlite import SqliteFile, journal_mode

_LITTLE = 500 << 20
_NOTHING = 50 << 20
_FIXED = "3.51.3"


def around(database: SqliteFile) -> Iterator[Finding]:
    """What can be told without opening it."""
    path = database.path
    if not path.exists():
        raise StoreError(f"there is no database at {path}")
    yield _place(path, database.network)
    yield _rights(path)
    yield _locks(folder_beside(path))
    yield _room(path)


def settings(patient: Patient, database: SqliteFile) -> Iterator[Finding]:
    """The library, and what makes a commit mean "on disk"."""
    library, names = sqlite3.sqlite_version_info, sqlite3.sqlite_version
    if journal_mode(library, network=False) == "wal":
        yield Finding("library", Level.OK, f"SQLite {names}")
    else:
        text = f"SQLite {names} has the WAL-reset race, so the slower rollback journal is used; {_FIXED} has it not"
        yield Finding("library", Level.NOTE, text)
    yield _journal(str(_pragma(patient, "journal_mode")), database.journal, database.path)
    # The connection that looks is set up as every other is; it would not be here had it not taken this.
    is_full = _pragma(patient, "synchronous") == 2
    text = "FULL: a commit is on disk" if is_full else "not FULL: a power cut can lose what was committed"
    yield Finding("synchronous", Level.OK if is_full else Level.ERROR, text)


def integrity(patient: Patient) -> Iterator[Finding]:
    """Whether SQLite finds its own structures sound."""
    found = " ".join(str(_pragma(patient, "quick_check(1)")).split())
    if found == "ok":
        yield Finding("integrity", Level.OK, "quick_check found nothing")
    else:
        text = f"the database is damaged ({found}): stop all, restore a backup, or try `sqlite3 FILE .recover`"
        yield Finding("integrity", Level.ERROR, text)


def _place(path: Path, network: str | None) -> Finding:
    if network is None:
        return Finding("place", Level.OK, f"{path}, on a local file system as far as can be told")
    text = f"{path} is on a network file system ({network}): locks there may not hold; use a local disk"
    return Finding("place", Level.WARNING, text)


def _rights(path: Path) -> Finding:
    if not (os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK)):
        return Finding("rights", Level.ERROR, "this user cannot write the file and its folder: workers would fail here")
    sides = (path.with_name(path.name + end) for end in ("", "-wal", "-shm", "-journal"))
    opened = [side.name for side in sides if _is_open(side)]
    if not opened:
        return Finding("rights", Level.OK, "only its owner may read or write it")
    return Finding("rights", Level.WARNING, f"others than the owner may use {', '.join(opened)}: chmod 600")


def _locks(folder: Path) -> Finding:
    if not HAS_FLOCK:
        text = "there are no file locks on this system: a worker that was killed is replaced when its lease ends"
        return Finding("locks", Level.NOTE, text)
    if not folder.exists():
        return Finding("locks", Level.OK, "no worker has been here yet")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Finding("locks", Level.ERROR, f"this user cannot use {folder.name}: no worker can start")
    if _is_open(folder):
        return Finding("locks", Level.WARNING, f"others than the owner may use {folder.name}: chmod 700")
    return Finding("locks", Level.OK, f"{folder.name} is the owner's alone")


def _room(path: Path) -> Finding:
    free = shutil.disk_usage(path.parent).free
    text = f"{free >> 20:,} MB free"
    if free < _NOTHING:
        return Finding("disk", Level.ERROR, f"{text}: nothing is polled while the disk is full; make room")
    return Finding("disk", Level.WARNING, f"{text}: make room") if free < _LITTLE else Finding("disk", Level.OK, text)


def _journal(found: str, wanted: str, path: Path) -> Finding:
    if found == "wal" and wanted != "wal":
        text = (
            "WAL, which can damage the database with this SQLite library or on this file system: stop all processes, "
            f"then sqlite3 {path.name} 'PRAGMA journal_mode=persist'"
        )
        return Finding("journal", Level.ERROR, text)
    is_other = wanted == "wal" != found
    return Finding(
        "journal", Level.NOTE if is_other else Level.OK, found + (", wal from the next use on" if is_other else "")
    )


def _is_open(path: Path) -> bool:
    """Whether others than the owner may use it, where that can be told by its rights."""
    try:
        return os.name == "posix" and bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except OSError:
        return False


def _pragma(patient: Patient, text: str) -> object:
    return patient.connection.exec_driver_sql(f"PRAGMA {text}").scalar()
