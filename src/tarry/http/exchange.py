"""What a transport and the HTTP library under it tell each other about one call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from tarry.core.observation import CallError
from tarry.ports import Prepared
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


@dataclass(slots=True)
class Call:
    """How far a call has come: what it may claim when it breaks off."""

    queued: bool = True
    left: bool | None = None
    """Whether a byte of the request can have left; None while nobody knows, and the error has to tell."""

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


@dataclass(slots=True)
class Answer:
    """The head of a response, and its body as it comes off the wire: at once where all of it is there."""

    status: int
    headers: Iterable[tuple[bytes, bytes]]
    body: bytes | AsyncIterator[bytes]
    is_unpacked: bool = False
    """Whether somebody has read the body before, and unpacked it."""


Reader: TypeAlias = Callable[[Answer], Awaitable[None]]
"""Takes in an answer while its connection is held."""


class Sender(Protocol):
    """One HTTP library: sends a request once."""

    @property
    def in_flight(self) -> int:
        """Calls at once that it does well with."""
        ...

    async def send(self, request: Prepared, call: Call, read: Reader) -> None:
        """Send once, have the answer read, and hang up or give the connection back. Raises what the others raise."""
        ...

    async def aclose(self) -> None:
        """Close what it opened itself."""
        ...
