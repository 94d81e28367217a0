"""Locks that tell whether a worker's process is alive.

Each worker on a SQLite file holds an exclusive lock on a file of its own,
`<database>-workers/<uuid>.lock`. The system drops it when the process ends,
however it ends: whoever can take the lock, or finds no file, knows that the
worker is gone and need not wait for its lease. The lock is taken before the worker's
row exists and the file is removed after the row is dead or released, so that a
live row always has a locked file.

The locks are never on the database file itself (see `files`). They belong to open
files (`flock`), not to processes, so two stores in one process see each other rightly.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from tarry.errors import StoreError

HAS_FLOCK = find_spec("fcntl") is not None
"""Windows has no such locks: leases alone decide there."""

_UUID = re.compile(r"[0-9A-Za-z_-]{1,64}")


class Locks(Protocol):
    """What workers need of a lock per uuid."""

    def hold(self, uuid: str) -> bool:
        """Take the lock; False where locks cannot tell who is alive."""
        ...

    def drop(self, uuid: str) -> None:
        """Give the lock back, or clear away that of a dead worker."""
        ...

    def gone(self, uuid: str) -> bool:
        """Whether the process that took the lock has ended for certain."""
        ...

    def close(self) -> None:
        """Give all locks back; what the workers held is then for others to free."""
        ...


class NoLocks:
    """Nobody is ever known to be gone: leases alone decide."""

    def hold(self, uuid: str) -> bool:
        """Never."""
        check_uuid(uuid)
        return False

    def drop(self, uuid: str) -> None:
        """Nothing to do."""

    def gone(self, uuid: str) -> bool:  # noqa: ARG002 - the port's name for it
        """Never known."""
        return False

    def close(self) -> None:
        """Nothing to do."""


class FileLocks:
    """Locked files in one folder, which is made (private) with the first lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}
        _ALL.add(self)

    def hold(self, uuid: str) -> bool:
        """Make and lock the file; again is fine. False where the file system has no such locks."""
        path = self._path(uuid)
        if uuid in self._held:
            return True
        self._folder.mkdir(mode=0o700, exist_ok=True)
        # Programs that this process starts do not inherit the handle, so they cannot keep the lock.
        file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        if not _lock(file):
            os.close(file)
            path.unlink(missing_ok=True)
            return False
        self._held[uuid] = file
        return True

    def drop(self, uuid: str) -> None:
        """Remove the file, then close it: nobody finds it unlocked."""
        with suppress(OSError):  # a file left behind is litter, not harm
            self._path(uuid).unlink()
        file = self._held.pop(uuid, None)
        if file is not None:
            os.close(file)

    def gone(self, uuid: str) -> bool:
        """True when there is no file, or its lock is free; False when it cannot be told."""
        try:
            file = os.open(self._path(uuid), os.O_RDWR)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        free = _lock(file)
        os.close(file)
        return free

    def close(self) -> None:
        """Close all files, and leave them for whoever buries the workers."""
        while self._held:
            os.close(self._held.popitem()[1])

    def _path(self, uuid: str) -> Path:
        check_uuid(uuid)
        return self._folder / f"{uuid}.lock"


def locks_beside(database: Path) -> Locks:
    """The locks for workers on this database file, as good as the system has them."""
    return FileLocks(folder_beside(database)) if HAS_FLOCK else NoLocks()


def folder_beside(database: Path) -> Path:
    """Where the locks for workers on this database file are."""
    return database.with_name(f"{database.name}-workers")


def is_uuid(value: object) -> bool:
    """Whether it can be the name of a file, whatever the file system."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def check_uuid(uuid: str) -> None:
    """Refuse what cannot be a file name."""
    if not is_uuid(uuid):
        raise StoreError(f"worker uuid {uuid!r}: use 1 to 64 letters, digits, - and _")


def _lock(file: int) -> bool:
    """Take the lock if it is free; False also where the file system knows no locks."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


_ALL: WeakSet[FileLocks] = WeakSet()


def _forget_in_child() -> None:
    # A forked child shares the open files, and would keep its parent's locks held after the parent's end.
    for locks in list(_ALL):
        locks.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
