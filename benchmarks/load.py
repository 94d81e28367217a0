"""The service under load: the least that answers HTTP, in a process of its own.

`tarry stub` does much more for each request, and would be measured along. Here a
request is its first line, and an answer is a ready text of 1 KB.

    GET /running/...   a job that goes on, and says so with the same words
    GET /changing/...  a job that goes on, and says something else each time
    GET /done/...      a job that has succeeded
    GET /count         how many polls came so far
    GET /first         when the first one came, by the monotonic clock, in microseconds
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, cast

_END = b"\r\n\r\n"


def document(state: str) -> dict[str, Any]:
    """What a poll shows: about 1 KB, as a real service would say it."""
    steps = [{"name": f"step-{n}", "state": "DONE", "rows": 1000 + n, "worker": f"worker-{n:04}"} for n in range(13)]
    return {"jobId": "job-1", "state": state, "progress": 42, "result": {"rows": 4211}, "steps": steps}


def _answer(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


_NUMBERED = "job-00000000"
_RUNNING, _DONE = (_answer(json.dumps(document(state)).encode()) for state in ("RUNNING", "SUCCEEDED"))

_CHANGING = _answer(json.dumps(document("RUNNING") | {"jobId": _NUMBERED}).encode()).replace(
    _NUMBERED.encode(), b"job-%08d"
)


class _Connection(asyncio.Protocol):
    polls = 0
    first = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *requests, self._rest = (self._rest + data).split(_END)
        for request in requests:
            self._transport.write(self._respond(request))

    def _respond(self, request: bytes) -> bytes:
        if request.startswith(b"GET /count"):
            return _answer(b"%d" % _Connection.polls)
        if request.startswith(b"GET /first"):
            return _answer(b"%d" % (_Connection.first * 1e6))
        _Connection.first = _Connection.first or monotonic()
        _Connection.polls += 1
        if request.startswith(b"GET /changing"):
            return _CHANGING % _Connection.polls
        return _DONE if request.startswith(b"GET /done") else _RUNNING


def addresses(count: int) -> list[str]:
    """So many hosts, all of them this one."""
    return [f"127.0.{n // 250}.{n % 250 + 1}" for n in range(count)]


async def _serve(hosts: int) -> None:
    """Until the one who started it goes away."""
    loop = asyncio.get_running_loop()
    first, *others = addresses(hosts)
    server = await loop.create_server(_Connection, first, 0, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    if others:
        await loop.create_server(_Connection, others, port, backlog=64)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


@dataclass(frozen=True, slots=True)
class Service:
    """A service that was started: where it is, and what it saw."""

    port: int
    hosts: tuple[str, ...]

    def url(self, number: int = 0, path: str = "running") -> str:
        """Where the job of this number is polled; the jobs take turns over the hosts."""
        return f"http://{self.hosts[number % len(self.hosts)]}:{self.port}/{path}/{number}"

    def template(self, path: str = "running") -> str:
        """The same for all jobs at once, on one host: each has its key in the URL."""
        return f"http://{self.hosts[0]}:{self.port}/{path}/{{key}}"

    async def polls(self) -> int:
        """How many polls it saw so far."""
        return await self._told("count")

    async def first(self) -> float:
        """When the first came, as `monotonic` tells it."""
        return await self._told("first") / 1e6

    async def _told(self, what: str) -> int:
        reader, writer = await asyncio.open_connection(self.hosts[0], self.port)
        writer.write(f"GET /{what} HTTP/1.1".encode() + _END)
        head = await reader.readuntil(_END)
        length = int(head.rpartition(b"Content-Length: ")[2])
        number = int(await reader.readexactly(length))
        writer.close()
        return number


@contextmanager
def serving(hosts: int = 1) -> Iterator[Service]:
    """A service in a child process while the block runs."""
    allow_many_files()
    command = [sys.executable, "-m", "benchmarks.load", str(hosts)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None  # noqa: S101  # for the checker: a pipe was asked for
            yield Service(int(process.stdout.readline()), tuple(addresses(hosts)))
        finally:
            process.terminate()


def allow_many_files() -> None:
    """As many open sockets as the machine allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    allow_many_files()
    asyncio.run(_serve(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
