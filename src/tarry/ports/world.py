"""What the runtime needs of the world but for its store: a clock, a transport, and a way to block."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from tarry.core.observation import Observation
from tarry.frozen import quick
from tarry.words import SECOND, CallKind, Instant, Micros

T = TypeVar("T")


class Clock(Protocol):
    """Time, from one source, going forward only and through a suspend."""

    def now(self) -> Instant:
        """Microseconds UTC."""
        ...

    async def sleep(self, span: Micros) -> None:
        """Sleep this long; zero or less yields once."""
        ...


@quick
@dataclass(frozen=True, slots=True)
class Prepared:
    """One HTTP request, ready to send; it may hold secrets, so its repr hides all but the origin.

    `known` is the digest of the last answer, where whoever asks needs no `body` of one that says the same: its
    `text` is enough.
    """

    kind: CallKind
    method: str
    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    content: bytes | None = field(default=None, repr=False)
    timeout: Micros = 30 * SECOND
    connect_timeout: Micros | None = None
    read_timeout: Micros | None = None
    known: int | None = field(default=None, compare=False, repr=False)


class Transport(Protocol):
    """One method: a request in, an observation out."""

    async def send(self, request: Prepared) -> Observation:
        """Send once; every failure is an observation with an error, never an exception.

        Bounds: the whole call by `timeout`, the decoded body in bytes. No
        redirect is followed, nothing is resent. The body of an answer whose digest is `known` may be left out.
        """
        ...

    async def aclose(self) -> None:
        """Give back what the transport itself opened."""
        ...


class Offload(Protocol):
    """Runs one blocking call off the event loop and gives its result."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...
