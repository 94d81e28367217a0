"""PostgreSQL tells at once that another process committed an outcome or a command; nothing rests on it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Semaphore, Thread
from typing import Any

import pytest
from sqlalchemy import URL, create_engine
from sqlalchemy.pool import NullPool

from tarry.ports import Command, JobRow
from tarry.store import MemoryStore, SqlStore
from tests.acceptance.servers import emptied, postgres_url, schema_of
from tests.contract.bench import START, ending, grip, held, told, write

# Whoever else tests on this server is heard under another name.
_PREFIX = f"tarry{os.getpid()}_"
_LISTENING = f"query LIKE 'LISTEN%%{_PREFIX}heard%%' AND pid <> pg_backend_pid()"


class Bell:
    """Counts how often it was rung."""

    def __init__(self) -> None:
        self._rung = Semaphore(0)

    def __call__(self) -> None:
        self._rung.release()

    def rings(self, seconds: float = 10) -> bool:
        """Whether it was rung once more than asked for so far, within this time."""
        return self._rung.acquire(timeout=seconds)


@pytest.fixture
def stores() -> Iterator[Callable[[URL | None], SqlStore]]:
    """Makes stores on the same empty tables, each like one of another process."""
    opened: list[SqlStore] = []

    def make(url: URL | None = None) -> SqlStore:
        store = SqlStore(url or schema_of(postgres_url()), prefix=_PREFIX)
        opened.append(store)
        store.open(START)
        return store

    emptied(make())
    yield make
    for store in opened:
        store.close()


@pytest.fixture
def bell(stores: Callable[[], SqlStore]) -> Iterator[Bell]:
    """One that is rung by a store of its own, which listens by now."""
    bell = Bell()
    stop = stores().listen(bell)
    assert stop is not None
    assert bell.rings()
    yield bell
    stop()


def admin(statement: str) -> list[Any]:
    """The first column of what the server answers."""
    engine = create_engine(postgres_url(), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        return list(connection.exec_driver_sql(statement).scalars())


def paused(row: JobRow) -> Command:
    """Somebody pauses the job."""
    plain = {name: getattr(row, name) for name in ("step", "cmd", "state", "due", "deadline", "max_polls", "floor")}
    return Command(job=row.id, paused=1, events=[told("paused")], **plain)


def test_an_outcome_is_heard(bell: Bell, stores: Callable[[], SqlStore]) -> None:
    """Of all that is written while a job goes on nothing is: such commits would wait for each other."""
    store = stores()
    row = held(store)
    assert store.checkpoint([write(grip(row), 1, reserved=1, events=[told("seen")])]) == [True]
    assert store.checkpoint([ending(grip(row, 1), 2)]) == [True]
    assert bell.rings()
    assert not bell.rings(0.2)


def test_commands_are_heard(bell: Bell, stores: Callable[[], SqlStore]) -> None:
    """A pause, a wish to cancel, and an end from outside."""
    store = stores()
    row = held(store)
    assert store.command(paused(row))
    assert bell.rings()
    assert store.ask_to_cancel(row.id, row.run, START, told("cancel_requested"))
    assert bell.rings()
    assert store.cancel(row.id, row.step, "{}", START, [told("cancelled")])
    assert bell.rings()
    assert not bell.rings(0.2)


def test_what_the_same_process_commits_is_not_heard(stores: Callable[[], SqlStore]) -> None:
    """It knows."""
    store, bell = stores(), Bell()
    stop = store.listen(bell)
    assert stop is not None
    assert bell.rings()
    assert store.checkpoint([ending(grip(held(store)))]) == [True]
    assert not bell.rings(0.5)
    stop()


def test_a_connection_that_breaks_is_made_anew(bell: Bell, stores: Callable[[], SqlStore]) -> None:
    """And the bell rings, as something may have been missed meanwhile."""
    store = stores()
    assert admin(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_LISTENING}") == [True]
    assert bell.rings()
    assert store.checkpoint([ending(grip(held(store)))]) == [True]
    assert bell.rings()


def test_who_stops_listening_leaves_at_once(stores: Callable[[], SqlStore]) -> None:
    """The connection is gone, and nothing rings any more; again is fine."""
    bell, store = Bell(), stores()
    stop = stores().listen(bell)
    assert stop is not None
    assert bell.rings()
    (pid,) = admin(f"SELECT pid FROM pg_stat_activity WHERE {_LISTENING}")
    stop()
    stop()
    for _ in range(500):
        if not admin(f"SELECT pid FROM pg_stat_activity WHERE pid = {pid}"):
            break
    else:
        pytest.fail("the connection stayed open")
    assert store.checkpoint([ending(grip(held(store)))]) == [True]
    assert not bell.rings(0.2)


def test_a_server_that_is_away_is_tried_again_quietly(
    stores: Callable[[URL], SqlStore], caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody is told, as nothing is lost by it."""
    with closing(Pooler(postgres_url(), hides_its_server=False)) as way:
        bell = Bell()
        stop = stores(schema_of(postgres_url()).set(port=way.port)).listen(bell)
        assert stop is not None
        assert bell.rings()
    assert not bell.rings(0.2)
    stop()
    assert caplog.records == []


def test_behind_a_pooler_nobody_listens(stores: Callable[[URL], SqlStore]) -> None:
    """It would give the connection to somebody else next; everything else goes on as ever."""
    with closing(Pooler(postgres_url(), hides_its_server=True)) as pooler:
        store, bell = stores(schema_of(postgres_url()).set(port=pooler.port)), Bell()
        stop = store.listen(bell)
        assert stop is not None
        assert not bell.rings(0.5)
        assert admin(f"SELECT pid FROM pg_stat_activity WHERE {_LISTENING}") == []
        assert store.checkpoint([ending(grip(held(store)))]) == [True]
        stop()
        store.close()


def test_other_databases_have_no_way_to_tell(tmp_path: Path) -> None:
    """Who wants to know looks."""
    assert MemoryStore().listen(Bell()) is None
    assert SqlStore(f"sqlite:///{tmp_path / 'jobs.db'}").listen(Bell()) is None


class Pooler:
    """Stands between clients and a server, and may say that its processes have other numbers, as poolers do."""

    def __init__(self, server: URL, *, hides_its_server: bool) -> None:
        self._server = (str(server.host), int(server.port or 0))
        self._hides = hides_its_server
        self._open: list[socket.socket] = [socket.create_server(("127.0.0.1", 0))]
        self.port = int(self._open[0].getsockname()[1])
        Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Cut all connections."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._open[0].accept()
                server = socket.create_connection(self._server)
                self._open += [client, server]
                threading.Thread(target=self._forward, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._forward, args=(server, client, self._hides), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, hides: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                # BackendKeyData: a letter, a length, the number of the process and a secret.
                at = data.find(b"K\x00\x00\x00\x0c") if hides else -1
                if at >= 0:
                    data, hides = data[: at + 5] + b"\x00\x00\x00\x07" + data[at + 9 :], False
                target.sendall(data)
