"""One client of the stub: reads requests in order, sends replies in the manner they ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from tarry.ports import Clock
from tarry.testing.stub.faults import as_json, http_date
from tarry.testing.stub.wire import MAX_BODY, MAX_HEAD, Malformed, Manner, Reply, Request, parse, render
from tarry.words import SECOND

_GARBAGE = b"\x00\x16\x03 not HTTP at all \xff\xfe\r\n\r\n"
_ENOUGH = MAX_HEAD + MAX_BODY


class Connection(asyncio.Protocol):
    """Keep-alive and pipelining: a request is answered when all before it are.

    `respond` makes the replies; `clock` waits out their delays; the connection is in `open_ones` while it lives.
    """

    def __init__(self, respond: Callable[[Request], Reply], clock: Clock, open_ones: set[Connection]) -> None:
        self.lost = asyncio.get_running_loop().create_future()
        self._respond = respond
        self._clock = clock
        self._open_ones = open_ones
        self._buffer = bytearray()
        self._sending: asyncio.Task[None] | None = None
        self._clogged = False
        self._deaf = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self._transport = cast("asyncio.Transport", transport)
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone; nothing more to send."""
        self._open_ones.discard(self)
        if self._sending is not None:
            self._sending.cancel()
        self.lost.set_result(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of requests, cut anywhere."""
        if self._deaf:
            return
        self._buffer += data
        self._advance()
        if len(self._buffer) > _ENOUGH:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """The client does not read: answer nothing more for now."""
        self._clogged = True

    def resume_writing(self) -> None:
        """The client reads again."""
        self._clogged = False
        self._advance()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def _advance(self) -> None:
        """Answer what is complete, until a reply takes its time."""
        while not (self._sending or self._clogged or self._deaf or self._transport.is_closing()):
            try:
                request = parse(self._buffer)
            except Malformed as error:
                self._refuse(error)
                return
            if request is None:
                return
            self._answer(request, self._respond(request))
            self._transport.resume_reading()

    def _refuse(self, error: Malformed) -> None:
        """Say what is wrong, then hear out the client: closing on it half-way would destroy the answer."""
        self._deaf = True
        self._buffer.clear()
        reply = as_json(error.status, {"error": str(error)})
        self._transport.write(render(reply, date=http_date(self._clock.now()), keep_alive=False))
        self._transport.write_eof()

    def _answer(self, request: Request, reply: Reply) -> None:
        if reply.manner is Manner.WHOLE and not reply.delay:
            self._write(reply, request)
            return
        self._sending = asyncio.get_running_loop().create_task(self._send(request, reply))

    async def _send(self, request: Request, reply: Reply) -> None:
        """Send a reply that takes its time, then go on with what came meanwhile."""
        await self._clock.sleep(round(reply.delay * SECOND))
        match reply.manner:
            case Manner.WHOLE:
                self._write(reply, request)
            case Manner.DRIP:
                await self._drip(request, reply)
            case Manner.HANG:
                return  # `_sending` stays set, so that what comes behind is never answered either
            case Manner.CUT:
                whole = self._bytes(reply, request)
                self._transport.write(whole[: len(whole) - len(reply.body) + len(reply.body) // 2])
                self._transport.close()
            case Manner.GARBAGE:
                self._transport.write(_GARBAGE)
                self._transport.close()
            case Manner.DROP:
                self._transport.close()
        self._sending = None
        self._advance()

    async def _drip(self, request: Request, reply: Reply) -> None:
        pause = round(reply.pause * SECOND)
        for byte in self._bytes(reply, request):
            self._transport.write(bytes([byte]))
            await self._clock.sleep(pause)
        if not request.keep_alive:
            self._transport.close()

    def _write(self, reply: Reply, request: Request) -> None:
        self._transport.write(self._bytes(reply, request))
        if not request.keep_alive:
            self._transport.close()

    def _bytes(self, reply: Reply, request: Request) -> bytes:
        date = http_date(self._clock.now())
        return render(reply, date=date, keep_alive=request.keep_alive, head_only=request.method == "HEAD")
