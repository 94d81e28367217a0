"""Hears of what other processes commit, by PostgreSQL's NOTIFY, on a connection of its own.

What is heard is a hint and no more: who hears it looks at once, and who does not looks a little later. So everything
that goes wrong here is passed over. A connection that broke is made anew; behind a pooler, which would give the
connection to somebody else next, nobody listens at all.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import closing
from selectors import EVENT_READ, DefaultSelector
from threading import Event, Thread
from typing import Any, TypeAlias

import psycopg
from psycopg import sql

log = logging.getLogger("tarry.store")

Connection: TypeAlias = psycopg.Connection[Any]

_PAUSE = 2.0
"""Seconds between a connection that broke and the next one."""


class Listener:
    """A thread that calls `ring` for each word that comes over the channel, but for those of `myself`.

    `connect` gives a connection in autocommit. It rings as well whenever it begins to listen: something may have been missed.
    """

    def __init__(
        self, connect: Callable[[], Connection], channel: str, myself: str, ring: Callable[[], object]
    ) -> None:
        self._connect = connect
        self._listen = sql.SQL("LISTEN {}").format(sql.Identifier(channel))
        self._myself = myself
        self._ring = ring
        self._is_over = Event()
        self._woken, self._wake = socket.socketpair()
        Thread(target=self._run, name="tarry-listener", daemon=True).start()

    def stop(self) -> None:
        """Listen no more; what the thread has open it closes at once, but nobody waits for that."""
        self._is_over.set()
        self._wake.close()

    def _run(self) -> None:
        with closing(self._woken):
            while not self._is_over.is_set():
                try:
                    with closing(self._connect()) as connection:
                        if not _is_direct(connection):
                            log.debug("there is a pooler before the database: nobody listens to it")
                            return
                        connection.execute(self._listen)
                        self._ring()
                        self._hear(connection)
                except (psycopg.Error, OSError) as lost:
                    log.debug("nobody listens to the database for now: %s", type(lost).__name__)
                self._is_over.wait(_PAUSE)

    def _hear(self, connection: Connection) -> None:
        with DefaultSelector() as ready:
            ready.register(connection.fileno(), EVENT_READ)
            ready.register(self._woken, EVENT_READ)
            while not self._is_over.is_set():
                ready.select()
                if {word.payload for word in connection.notifies(timeout=0)} - {self._myself}:
                    self._ring()


def _is_direct(connection: Connection) -> bool:
    """Whether the server itself is at the other end: a pooler begins with a number that is none of its processes."""
    found = connection.execute("SELECT pg_backend_pid()").fetchone()
    return found is not None and found[0] == connection.info.backend_pid
