"""Our own connections, over each library: whom they trust, when they are kept, and what is sent over them."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tarry.core.observation import Observation
from tarry.http.clients import ClientName
from tarry.http.transport import HttpTransport
from tarry.ports import Prepared
from tarry.testing import FakeClock
from tarry.words import SECOND, CallKind, ErrorKind
from tests.raw_server import Answer, Exchange, RawServer, response, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LIBRARIES: list[ClientName] = ["httpx", "httpx2", "aiohttp"]
SECURE = LIBRARIES[:2]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and its certificate, signed by itself, of localhost alone."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate")
    made = tmp_path_factory.mktemp("tls") / "localhost.pem"
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "-", "-out", "-"]
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "9"]
    both = subprocess.run([openssl, "req", "-x509", *key, *name], check=True, capture_output=True)
    made.write_bytes(both.stdout)
    return made


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> ClientName:
    """The library below our own connections."""
    found: ClientName = request.param
    return found


@asynccontextmanager
async def own(library: ClientName) -> AsyncIterator[HttpTransport]:
    """A transport over connections of our own."""
    made = HttpTransport(library, clock=FakeClock())
    try:
        yield made
    finally:
        await made.aclose()


async def call(transport: HttpTransport, url: str, method: str = "GET", **options: Any) -> Observation:
    """What one call brings."""
    return await transport.send(Prepared(CallKind.POLL, method, url, timeout=5 * SECOND, **options))


def secured(certificate: Path, names: list[str | None]) -> ssl.SSLContext:
    """A server's side of TLS; `names` are those that clients ask for."""

    def asked(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
        names.append(name)

    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate)
    made.sni_callback = asked
    return made


def trusted(library: ClientName, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the library trust this certificate as well."""
    module = import_module(library)
    real = module.create_ssl_context

    def create_ssl_context(**options: Any) -> Any:
        made = real(**options)
        made.load_verify_locations(certificate)
        return made

    monkeypatch.setattr(module, "create_ssl_context", create_ssl_context)


@pytest.mark.parametrize("library", SECURE)
def test_who_is_trusted_is_called(library: ClientName, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the name of the URL, and the connection is kept like any other."""
    trusted(library, certificate, monkeypatch)
    names: list[str | None] = []

    async def main() -> tuple[list[Observation], RawServer]:
        async with serve(response(b"{}"), secured(certificate, names)) as server, own(library) as made:
            url = server.origin.replace("127.0.0.1", "localhost")
            return [await call(made, f"{url}/{number}") for number in range(3)], server

    seen, server = asyncio.run(main())
    assert [(each.status, each.body, each.error) for each in seen] == [(200, {}, None)] * 3
    assert (names, server.connections, len(server.requests)) == (["localhost"], 1, 3)


@pytest.mark.parametrize("is_trusted", [True, False])
@pytest.mark.parametrize("library", SECURE)
def test_who_cannot_show_who_it_is_is_not_called(
    library: ClientName, certificate: Path, monkeypatch: pytest.MonkeyPatch, is_trusted: bool
) -> None:
    """No byte of a request leaves where nobody vouches for the certificate, or it is that of another host."""
    if is_trusted:
        trusted(library, certificate, monkeypatch)

    async def main() -> tuple[Observation, RawServer]:
        async with serve(response(b"{}"), secured(certificate, [])) as server, own(library) as made:
            url = server.origin if is_trusted else server.origin.replace("127.0.0.1", "localhost")
            return await call(made, url), server

    seen, server = asyncio.run(main())
    assert seen.error is not None
    assert (seen.error.kind, seen.error.sent, server.requests) == (ErrorKind.CONNECT, False, [])
    assert "CERTIFICATE_VERIFY_FAILED" in seen.error.detail


@pytest.mark.parametrize(
    ("method", "first"),
    [
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
        ("GET", b"HTTP/1.1 103 Early Hints\r\n\r\n" + response(b"{}")),
    ],
    ids=["204", "304", "head", "103"],
)
def test_an_answer_without_a_body_keeps_the_connection(library: ClientName, method: str, first: bytes) -> None:
    """Whatever length it names: none follows."""
    seen, server = two_calls(library, first, method)
    assert [each.error for each in seen] == [None, None]
    assert (seen[1].body, server.connections) == ("second", 1)


def test_what_comes_after_an_answer_is_no_answer_to_the_next_call(library: ClientName) -> None:
    """A connection on which a service says too much is given up."""
    seen, server = two_calls(library, response(b"{}") + response(b'"stray"'))
    assert seen[1].error is None
    assert (seen[1].body, server.connections) == ("second", 2)


def two_calls(library: ClientName, first: bytes, method: str = "GET") -> tuple[list[Observation], RawServer]:
    """What a call that is answered with these bytes brings, and a GET after it, that is answered as it should be."""

    async def answer(exchange: Exchange) -> None:
        await exchange.write(first if exchange.number == 1 else response(b'"second"'))

    return asyncio.run(called(library, answer, method))


async def called(library: ClientName, answer: Answer, method: str) -> tuple[list[Observation], RawServer]:
    async with serve(answer) as server, own(library) as made:
        return [await call(made, server.origin, method), await call(made, server.origin)], server


def test_a_user_agent_of_the_spec_is_the_only_one(library: ClientName) -> None:
    """Without one, the library's name stands there."""

    async def main() -> list[bytes]:
        async with serve(response(b"{}")) as server, own(library) as made:
            await call(made, server.origin, headers=(("user-agent", "exports/1.0"),))
            await call(made, server.origin)
            return server.requests

    agents = [
        [line.partition(b": ")[2] for line in request.split(b"\r\n") if line.lower().startswith(b"user-agent:")]
        for request in asyncio.run(main())
    ]
    assert agents[0] == [b"exports/1.0"]
    assert len(agents[1]) == 1
    assert library.rstrip("2").encode() in agents[1][0].lower()
