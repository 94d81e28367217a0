"""An HTTP server of bytes: it answers whatever a test writes, and keeps every request it saw."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

Answer = bytes | Callable[["Exchange"], Awaitable[None]]


@dataclass
class Exchange:
    """One request, and the way back."""

    request: bytes
    number: int
    writer: asyncio.StreamWriter

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """Break the connection without a farewell."""
        self.writer.transport.abort()

    async def hang(self) -> None:
        """Say nothing until the other side, or the server, goes away."""
        await asyncio.Event().wait()

    async def drip(self, data: bytes) -> None:
        """Write the data again and again, a little later each time, until the other side goes away."""
        loop = asyncio.get_running_loop()
        while True:
            await self.write(data)
            later = loop.create_future()
            loop.call_later(0.01, lambda later=later: later.done() or later.set_result(None))
            await later


@dataclass
class RawServer:
    """What the server saw: the requests in order, how many connections they came over, how many are open."""

    origin: str = ""
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)


def response(body: bytes = b"", head: str = "", status: str = "200 OK") -> bytes:
    """A whole answer with its length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *([head] if head else []), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


async def _read(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return head + (await reader.readexactly(int(length[1])) if length else b"")


@asynccontextmanager
async def serve(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """A server on loopback that answers every request with these bytes, or as this function does."""
    seen = RawServer()
    under_way: set[asyncio.Task[None]] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way.add(task)
        seen.connections += 1
        seen.open += 1
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while not writer.is_closing():
                    seen.requests.append(await _read(reader))
                    seen.arrived.set()
                    exchange = Exchange(seen.requests[-1], len(seen.requests), writer)
                    await (exchange.write(answer) if isinstance(answer, bytes) else answer(exchange))
        finally:
            seen.open -= 1
            seen.left.set()
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    server = await asyncio.start_server(converse, "127.0.0.1", 0, ssl=tls)
    seen.origin = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield seen
    finally:
        server.close()
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
