"""Which library makes the calls: a client of the caller's, or our own by the library's name."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

from tarry.errors import SpecError
from tarry.http.exchange import Sender
from tarry.ports import Clock

_KINDS = "must be an AsyncClient of httpx or httpx2, a ClientSession of aiohttp, or one of these libraries' names"


class AsyncClient(Protocol):
    """What httpx and httpx2 have in common, as far as it is used here."""

    @property
    def auth(self) -> Any:
        """What signs its requests; None when nothing does."""
        ...

    def build_request(self, *args: Any, **kwargs: Any) -> Any:
        """A request with the client's own headers and cookies merged in."""
        ...

    async def send(self, request: Any, **kwargs: Any) -> Any:
        """Send it, with the client's own auth."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


class ClientSession(Protocol):
    """The session of aiohttp, as far as it is used here."""

    @property
    def connector(self) -> Any:
        """Its pool of connections."""
        ...

    def request(self, *args: Any, **kwargs: Any) -> Any:
        """Send a request through its middlewares."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


ClientName: TypeAlias = Literal["httpx", "httpx2", "aiohttp"]
Client: TypeAlias = AsyncClient | ClientSession | ClientName


def sender_of(client: Client | None, clock: Clock) -> Sender:
    """What sends over this client, or over our own of the library named. Raises `SpecError`."""
    name = client or "httpx"
    if isinstance(name, str):
        return _own(name, clock)
    for base in type(client).__mro__:
        match base.__module__.partition(".")[0], base.__name__:
            case (("httpx" | "httpx2"), "AsyncClient"):
                from tarry.http.given import Given

                return Given(client)
            case "aiohttp", "ClientSession":
                from tarry.http.aio import GivenSession

                return GivenSession(client)
    raise SpecError("client", f"{_KINDS}; got {type(client).__name__}")


def _own(name: str, clock: Clock) -> Sender:
    try:
        if name in {"httpx", "httpx2"}:
            from tarry.http.lanes import Lanes

            return Lanes(name, clock)
        if name == "aiohttp":
            from tarry.http.aio import OwnSession

            return OwnSession(clock)
    except ImportError as error:
        extra = "fast" if name == "aiohttp" else name
        raise SpecError("client", f"{name} is not installed; pip install 'tarry[{extra}]'") from error
    raise SpecError("client", f"{_KINDS}; got {name!r}")
