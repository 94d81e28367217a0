"""A client of the caller's, of httpx or httpx2: used as it is, for one request a call."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

from tarry.http.exchange import Call, NotSent
from tarry.http.once import sent_once
from tarry.ports import Prepared
from tarry.words import SECOND, CallKind, ErrorKind

IN_FLIGHT = 16
"""Calls at once over one client: what a call costs in its pool grows with all that are under way."""

_POOL_SHARE = 0.9  # of the call's time, so that a full pool is noticed before the call is cut


class Given:
    """Sends over the client, with its headers, cookies, auth and hooks; never closes it."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._library = library_of(client)

    @property
    def in_flight(self) -> int:
        return IN_FLIGHT

    async def send(self, request: Prepared, call: Call) -> None:
        if self._client.is_closed:
            raise NotSent(ErrorKind.CONNECT, "the client is closed")
        progress = Progress(call)
        try:
            async with self._sent(request, progress) as response:
                if response.is_stream_consumed:  # by a hook, which has unpacked it too
                    await call.read(response.status_code, response.headers.raw, response.content, is_unpacked=True)
                else:
                    async with aclosing(response.aiter_raw()) as chunks:
                        await call.read(response.status_code, response.headers.raw, chunks)
        finally:
            await progress.hang_up()

    async def aclose(self) -> None:
        """Nothing: the client is the caller's."""

    def _sent(self, request: Prepared, progress: Progress) -> AbstractAsyncContextManager[Any]:
        message = self._message(request, progress)
        if request.kind is not CallKind.POLL or self._client.auth is None:
            return self._plainly(message)
        return sent_once(self._client, message, self._library.Auth())

    @asynccontextmanager
    async def _plainly(self, message: Any) -> AsyncIterator[Any]:
        response = await self._client.send(message, stream=True, follow_redirects=False)
        try:
            yield response
        finally:
            await response.aclose()

    def _message(self, request: Prepared, progress: Progress) -> Any:
        message = self._client.build_request(
            request.method,
            request.url,
            content=request.content,
            headers=[*request.headers, ("Accept-Encoding", "gzip, identity")],
            extensions={"trace": progress.trace, "timeout": timeouts(request)},
        )
        # A client's default params would have replaced the query, and with it a URL's signature.
        message.url = self._library.URL(request.url)
        return message


class Progress:
    """Follows a call through the connection pool."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._stream: Any = None

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Told by the pool what it is about to do, and what came of it."""
        if event.endswith("send_request_headers.started"):
            self._call.leave()
        elif self._call.left is None:
            self._call.left = False
        if event.endswith("connect_tcp.complete"):
            self._stream = info.get("return_value")

    async def hang_up(self) -> None:
        """Close a connection that no request was sent over: the pool forgets it when a TLS handshake is cut."""
        if self._stream is not None and not self._call.left:
            await self._stream.aclose()


def library_of(client: Any) -> Any:
    """The module that the client is from, told by its name so that neither library has to be there."""
    names = (base.__module__.partition(".")[0] for base in type(client).__mro__ if base.__name__ == "AsyncClient")
    return sys.modules[next(name for name in names if name in {"httpx", "httpx2"})]


def timeouts(request: Prepared) -> dict[str, float | None]:
    """The bounds of the parts of a call, in seconds; where the request has none, that of the whole call is enough."""
    return {
        "connect": None if request.connect_timeout is None else request.connect_timeout / SECOND,
        "read": None if request.read_timeout is None else request.read_timeout / SECOND,
        "write": None,
        "pool": request.timeout * _POOL_SHARE / SECOND,
    }
