"""What an answered poll leaves behind is gone when it is over: Python's collector of garbage finds nothing to do for it.

So a process with thousands of jobs may have the collector look seldom, as the guide on many jobs says.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tarry import Fixed, JobSpec, Limits, Poller, Request, Status
from tests.real import in_real_time

POLLS = 300
ANSWER = b'HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 19\r\n\r\n{"state":"RUNNING"}'


@pytest.fixture(autouse=True)
def _left_alone() -> Iterator[None]:
    """The collector finds what is to be found when it is asked to, and not before."""
    was_enabled = gc.isenabled()
    gc.disable()
    yield
    if was_enabled:
        gc.enable()


class Service:
    """Answers each request that comes in one piece, and rings when it has seen as many as somebody waits for."""

    def __init__(self) -> None:
        self._left = 0
        self._rung = asyncio.Event()

    async def seen(self, polls: int) -> None:
        """Until there were so many more."""
        self._left = polls
        self._rung.clear()
        await self._rung.wait()

    def answer(self, request: bytes) -> bytes:
        """A request came."""
        assert request.endswith(b"\r\n\r\n")
        self._left -= 1
        if self._left == 0:
            self._rung.set()
        return ANSWER


class Connection(asyncio.Protocol):
    """A client of the service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It came."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """It asked."""
        self._transport.write(self._service.answer(data))


@pytest.mark.parametrize("wait", ["1ms", "1010ms"], ids=["between two polls", "through a wait without a task"])
@pytest.mark.parametrize("client", ["aiohttp", "httpx", "httpx2"])
def test_a_poll_leaves_nothing_to_collect(tmp_path: Path, client: str, wait: str) -> None:
    """Whether its job keeps a task while it waits, or not; with each HTTP library."""

    async def main() -> list[int]:
        loop, service = asyncio.get_running_loop(), Service()
        server = await loop.create_server(partial(Connection, service), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        spec = JobSpec(
            poll=Request("GET", f"http://127.0.0.1:{port}/jobs/{{key}}"),
            until=Status(),
            strategy=Fixed(wait),
            limits=Limits(min_interval="1ms"),
        )
        jobs = 20 if wait == "1ms" else POLLS
        async with server, Poller(f"sqlite:///{tmp_path / 'tarry.db'}", client=client) as poller:
            waiting = asyncio.create_task(poller.await_all({f"job-{n}": spec for n in range(jobs)}))
            await service.seen(2 * POLLS)
            while gc.collect():
                """What others left is found by and by."""
            found = []
            for _ in range(3):
                await service.seen(POLLS)
                found.append(gc.collect())
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return found

    # The store may make a statement for the first time meanwhile; what each poll leaves would be there each time.
    assert min(in_real_time(main)) < POLLS // 10
