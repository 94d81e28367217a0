"""What a transport and the HTTP library under it tell each other about one call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from tarry.core.observation import CallError
from tarry.http.body import EMPTY, Decoder, parse, unpacked
from tarry.http.head import read_headers
from tarry.ports import Clock, Prepared
from tarry.words import ErrorKind

ENCODING = ("Accept-Encoding", "gzip, identity")
"""What a body may be packed in; `body.Decoder` unpacks it."""

_DETAIL = 200


class NotSent(Exception):
    """The call could not be made here: `kind` and `words` are those of its error."""

    def __init__(self, kind: ErrorKind, words: str) -> None:
        super().__init__(kind, words)
        self.kind = kind
        self.words = words

    def as_error(self, where: str) -> CallError:
        """The error of a call to `where`, an origin."""
        return CallError(self.kind, f"{self.words}: {where}"[:_DETAIL], sent=False)


class Call:
    """One call: how far it has come, what it may claim when it breaks off, and what its answer brought by then."""

    __slots__ = (
        "_clock",
        "_known",
        "_max_body",
        "_redact",
        "body",
        "headers",
        "left",
        "queued",
        "started_at",
        "status",
    )

    def __init__(self, max_body: int, redact: Callable[[str], str], clock: Clock, known: int | None = None) -> None:
        self._known = known
        self._max_body = max_body
        self._redact = redact
        self._clock = clock
        self.started_at = clock.now()
        self.queued = True
        # Whether a byte of the request can have left; None while nobody knows, and the error has to tell.
        self.left: bool | None = None
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.body = EMPTY

    def leave(self) -> None:
        """The request leaves now, or has left since: whatever it waited for, a connection or a place in a pool."""
        self.left = True
        self.started_at = self._clock.now()

    async def read(
        self,
        status: int,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes | AsyncIterator[bytes],
        *,
        is_unpacked: bool = False,
    ) -> None:
        """Take an answer in while its connection is held; `BodyError` where it is out of bounds.

        The body comes off the wire, or at once where all of it is there; `is_unpacked` says that somebody has read
        it before, and unpacked it.
        """
        self.status = status
        self.headers = read_headers(headers)
        coding = "" if is_unpacked else self.headers.get("content-encoding", "")
        if isinstance(body, bytes):
            raw = unpacked(body, coding, self._max_body)
        else:
            raw = await self._collected(body, coding)
        self.body = parse(raw, self.headers.get("content-type", ""), self._redact, self._known)

    @property
    def is_told_by_status(self) -> bool:
        """Whether an answer came that is not 2xx: an error page that cannot be read takes nothing away from that."""
        return self.status is not None and not 200 <= self.status < 300

    def failed(self, error: CallError) -> CallError:
        """The error, corrected by what is known of how far the request came."""
        if not error.sent or self.left is not False:
            return error
        kind = ErrorKind.CONNECT if error.kind in {ErrorKind.PROTOCOL, ErrorKind.TIMEOUT} else error.kind
        return replace(error, kind=kind, sent=False)

    def timed_out(self, where: str, in_flight: int) -> CallError:
        """The error of a call cut at its bound."""
        if self.queued:
            return CallError(ErrorKind.POOL, f"{in_flight} other calls were under way: {where}", sent=False)
        if self.left is False:
            return CallError(ErrorKind.CONNECT, f"connecting took too long: {where}", sent=False)
        return CallError(ErrorKind.TIMEOUT, f"the call took too long: {where}")

    async def _collected(self, body: AsyncIterator[bytes], coding: str) -> bytes:
        decoder = Decoder(coding, self._max_body)
        async for chunk in body:
            decoder.feed(chunk)
        return decoder.finish()


class Sender(Protocol):
    """One HTTP library: sends a request once."""

    @property
    def in_flight(self) -> int:
        """Calls at once that it does well with."""
        ...

    async def send(self, request: Prepared, call: Call) -> None:
        """Send once, have the call read the answer, and hang up or give the connection back. Raises what the others raise."""
        ...

    async def aclose(self) -> None:
        """Close what it opened itself."""
        ...
