"""The jobs that are polled: one spec, and a store full of those that only wait."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.load import document
from tarry import Fixed, JobSpec, Limits, Match, Politeness, Poller, Request
from tarry.clock import SystemClock
from tarry.core.observation import Observation
from tarry.ports import Clock, Prepared
from tarry.words import SECOND, Instant

ALONE = "http://127.0.0.1:9/jobs/{key}"
"""Where jobs are polled whose transport is scripted."""

BUSY = Politeness(concurrent=64)
"""One host may have as many calls under way as the process itself."""


def spec_of(url: str, every: str | float = "1ms") -> JobSpec:
    """A job that is polled at this URL every so often, judged by a status map."""
    return JobSpec(
        poll=Request("GET", url),
        until=Match("body.state", succeeded="SUCCEEDED", failed="FAILED", pending=["QUEUED", "RUNNING"]),
        strategy=Fixed(every),
        limits=Limits(min_interval="1ms"),
    )


@contextmanager
def folder() -> Iterator[Path]:
    """A folder on a disk, not in memory, for as long as the block runs."""
    # A peer's threads may write on while it is taken away.
    with tempfile.TemporaryDirectory(prefix="tarry-bench-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def sqlite_file() -> Iterator[str]:
    """The URL of a new SQLite store."""
    with folder() as place:
        yield f"sqlite:///{place / 'tarry.db'}"


class Scripted:
    """A transport that answers at once: what is measured with it is Tarry alone."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.sent = 0
        self._body = document("RUNNING")
        self._digest = hash(repr(self._body))

    async def send(self, request: Prepared) -> Observation:
        """One more poll, and the same answer."""
        self.sent += 1
        now = self.clock.now()
        url, digest = request.url, self._digest  # as after HTTP: the same bytes have the same digest
        return Observation(request.kind, now, now, 200, body=self._body, is_json=True, url=url, digest=digest)

    async def aclose(self) -> None:
        """Nothing was opened."""

    async def polls(self) -> int:
        """How many there were."""
        return self.sent


async def fill(store: str, spec: JobSpec, count: int, first: Instant, spread: int, prefix: str = "row") -> None:
    """So many jobs as `add` would make them, in one statement, due one after another within `spread` µs from `first`."""
    template = f"{prefix}-template"
    async with Poller(store, transport=Scripted()) as poller:
        job = await poller.add(template, spec)
    with store_connection(store) as database:
        names = [row[1] for row in database.execute("PRAGMA table_info(tarry_job)") if row[1] != "id"]
        due = f"{first} + n.i * {spread} / {count}"
        key = f"'{prefix}-' || n.i"
        made = {"key": key, "due": due, "wake": due, "token": "lower(hex(randomblob(16)))"}
        # The template was due at once: its wait, of nothing, would show these that the clock was set back.
        made["state"] = f"json_remove(replace(t.state, '{template}', {key}), '$.wait')"
        chosen = ", ".join(made.get(name, f"t.{name}") for name in names)
        database.execute(
            f"INSERT INTO tarry_job ({', '.join(names)}) WITH RECURSIVE n(i) AS "  # noqa: S608  # names of our own columns
            f"(SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {count}) "
            f"SELECT {chosen} FROM tarry_job t, n WHERE t.id = {job.id}"
        )
        database.execute(f"DELETE FROM tarry_job WHERE id = {job.id}")  # noqa: S608  # a number


@contextmanager
def store_connection(url: str) -> Iterator[sqlite3.Connection]:
    """The file of a SQLite store by itself: quick, and not durable before it is closed."""
    database = sqlite3.connect(url.removeprefix("sqlite:///"))
    database.execute("PRAGMA synchronous=OFF")
    with database:
        yield database
    database.close()


def hours(count: float) -> int:
    """So many hours in microseconds."""
    return round(count * 3600 * SECOND)
