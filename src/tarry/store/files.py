"""The database file: made private, told apart from an impostor, and judged by where it lies.

The file is never opened here once SQLite may have it open: closing any
handle of a process on a file drops all of that process's POSIX locks on it,
SQLite's among them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tarry.errors import StoreError

_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs"})
_MOUNTS = Path("/proc/self/mountinfo")


@dataclass(frozen=True, slots=True)
class Identity:
    """Which file it is, whatever its name: a file put in its place has another."""

    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Identity | None:
        """The identity of the file at `path`; None when there is none."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        return cls(found.st_dev, found.st_ino)


def create_private(path: Path) -> None:
    """Make the file, readable by its owner only, where there is none yet.

    SQLite gives its side files the rights of the database, so this covers them too.
    Raises `StoreError` where no database can be at `path`.
    """
    if path.is_dir():
        raise StoreError(f"{path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise StoreError(f"the folder {path.parent} does not exist: make it first, or name another")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return


def check_same(path: Path, expected: Identity | None) -> None:
    """Raise `StoreError` when `path` no longer names the file that was opened.

    SQLite would go on writing to the old file, and say that all is well.
    """
    if Identity.of(path) != expected:
        raise StoreError(
            f"the database file {path} was deleted or replaced while in use: nothing more is written; "
            "put the right file in place and start again"
        )


def network_kind(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """The kind of network file system that holds `path`; None when local, or not to be known."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    best, kind = "", None
    for line in lines:
        left, _, right = line.partition(" - ")
        point, name = left.split(" ")[4], right.split(" ")[0]
        if len(point) >= len(best) and path.is_relative_to(point):
            best, kind = point, name
    return kind if kind in _NETWORK else None
