"""What any transport does: one request, one observation; held by httpx, httpx2 and aiohttp, the caller's and our own."""

from __future__ import annotations

import asyncio
import gzip
import inspect
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from types import ModuleType
from typing import Any, TypeAlias

import aiohttp
import httpcore
import httpcore2
import httpx
import httpx2
import pytest

from tarry.core.observation import CallError, Observation
from tarry.errors import SpecError
from tarry.http.errors import is_known, translate
from tarry.http.quiet import LOGGERS
from tarry.http.transport import HttpTransport
from tarry.ports import Prepared
from tarry.words import SECOND, CallKind, ErrorKind
from tests.raw_server import Answer, Exchange, RawServer, response, serve

# A name is our own client over that library, a module a client of the caller's.
Library: TypeAlias = ModuleType | str | None
LIBRARIES: dict[str, Library] = {
    "own": None,
    "own-httpx2": "httpx2",
    "own-aiohttp": "aiohttp",
    "httpx": httpx,
    "httpx2": httpx2,
    "aiohttp": aiohttp,
}
OWN = [each for each in LIBRARIES.values() if not isinstance(each, ModuleType)]
SHORT = SECOND // 5


class Ticks:
    """A clock whose every reading is a microsecond later."""

    def __init__(self) -> None:
        self.now = count(1).__next__

    async def sleep(self, span: int) -> None:
        raise AssertionError("a transport does not sleep")


@pytest.fixture(params=LIBRARIES.values(), ids=LIBRARIES.keys())
def library(request: pytest.FixtureRequest) -> Library:
    """The library of the caller's client; None or a name where the transport opens its own."""
    found: Library = request.param
    return found


@asynccontextmanager
async def transport(library: Library, *, client: dict[str, Any] | None = None, **options: Any) -> Any:
    """A transport over a client of this library, both closed at the end."""
    given = client_of(library, **(client or {})) if isinstance(library, ModuleType) else library
    made = HttpTransport(given, clock=Ticks(), **options)
    try:
        yield made
    finally:
        await made.aclose()
        if library is aiohttp:
            assert not given.closed
            await given.close()
        elif isinstance(library, ModuleType):
            assert not given.is_closed
            await given.aclose()


def client_of(library: ModuleType, **options: Any) -> Any:
    """A client of the caller's."""
    if library is aiohttp:
        return aiohttp.ClientSession(**options)
    return library.AsyncClient(trust_env=False, **options)


def get(url: str, **options: Any) -> Prepared:
    """A poll of this URL."""
    return Prepared(CallKind.POLL, "GET", url, **options)


def seen(
    library: Library, answer: Answer, *, path: str = "/", timeout: int = 5 * SECOND, **options: Any
) -> tuple[Observation, RawServer]:
    """What one call to a server that answers like this brings, and what the server saw."""

    async def call() -> tuple[Observation, RawServer]:
        async with serve(answer) as server, transport(library, **options) as made:
            return await made.send(get(server.origin + path, timeout=timeout)), server

    return asyncio.run(call())


@pytest.mark.parametrize("module", [library for library in LIBRARIES.values() if isinstance(library, ModuleType)])
def test_a_client_that_is_closed_sends_nothing(module: ModuleType) -> None:
    """So that a submit is not taken for one whose answer was lost."""

    async def call() -> Observation:
        given = client_of(module)
        await (given.close if module is aiohttp else given.aclose)()
        return await HttpTransport(given, clock=Ticks()).send(get("http://127.0.0.1:9/"))

    found = error_of(asyncio.run(call()))
    assert (found.kind, found.sent, found.detail) == (
        ErrorKind.CONNECT,
        False,
        "the client is closed: http://127.0.0.1:9",
    )


def error_of(observation: Observation) -> CallError:
    """The error that must be there."""
    assert observation.error is not None
    assert len(observation.error.detail) <= 200
    assert "\n" not in observation.error.detail
    return observation.error


def test_an_answer_is_an_observation(library: Library) -> None:
    """Status, lower-case headers with equal names joined, the JSON value, the URL without its query, two instants."""
    observation, server = seen(
        library,
        response(b'{"a": [1]}', "X-One: 1\r\nx-one: 2\r\nSet-Cookie: sid=1", "202 Accepted"),
        path="/jobs/7?sig=abc",
    )
    assert observation == Observation(
        CallKind.POLL,
        observation.started_at,
        observation.finished_at,
        status=202,
        headers={"content-length": "10", "x-one": "1, 2"},
        body={"a": [1]},
        is_json=True,
        url=f"{server.origin}/jobs/7",
    )
    assert 0 < observation.started_at < observation.finished_at
    assert len(server.requests) == 1


def test_a_request_is_sent_as_prepared(library: Library) -> None:
    """Method, target, headers and body arrive; nothing is asked for that could not be unpacked within bounds."""

    async def call() -> bytes:
        async with serve(response()) as server, transport(library) as made:
            await made.send(
                Prepared(
                    CallKind.SUBMIT,
                    "POST",
                    f"{server.origin}/a%2Fb?sig=a%2Bb%3D&x=y",
                    headers=(("Accept", "application/json"), ("X-Key", "1")),
                    content=b'{"a":1}',
                )
            )
            return server.requests[0]

    head, _, body = asyncio.run(call()).partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert lines[0] == b"post /a%2fb?sig=a%2bb%3d&x=y http/1.1"
    assert {b"accept: application/json", b"x-key: 1", b"accept-encoding: gzip, identity"} <= set(lines)
    assert sum(line.startswith((b"accept:", b"accept-encoding:")) for line in lines) == 2
    assert body == b'{"a":1}'


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer(library: Library, status: int) -> None:
    """It is never followed, not even by a client that would."""
    options = {"client": {"follow_redirects": True}} if library in {httpx, httpx2} else {}
    observation, server = seen(library, response(b"", "Location: /elsewhere", f"{status} Moved"), **options)
    assert (observation.status, observation.headers["location"]) == (status, "/elsewhere")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [204, 304, 404, 429, 500, 503, 599, 999])
def test_any_status_is_an_answer(library: Library, status: int) -> None:
    """What it means is not the transport's to say."""
    observation, _ = seen(library, f"HTTP/1.1 {status} X\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n".encode())
    assert (observation.status, observation.error, observation.headers["retry-after"]) == (status, None, "7")


def test_a_known_answer_comes_without_its_body(library: Library) -> None:
    """Only its text, where whoever asks knows what it says."""

    async def call() -> list[Observation]:
        async with serve(response(b'{"a": 1}')) as server, transport(library) as made:
            request = Prepared(CallKind.POLL, "GET", f"{server.origin}/jobs/7")
            first = await made.send(request)
            return [first, *[await made.send(replace(request, known=known)) for known in (first.digest, 7)]]

    first, again, other = asyncio.run(call())
    assert (again.body, again.text, again.is_json, again.digest) == (None, '{"a": 1}', True, first.digest)
    assert first.body == other.body == {"a": 1}


def test_gzip_is_unpacked(library: Library) -> None:
    """One coding, by our own hand."""
    observation, _ = seen(library, response(gzip.compress(b'{"a": 1}'), "Content-Encoding: gzip"))
    assert (observation.body, observation.is_json, observation.error) == ({"a": 1}, True, None)


@pytest.mark.parametrize(
    ("body", "head", "kind"),
    [
        (b"x" * 2_000, "", ErrorKind.TOO_LARGE),
        (gzip.compress(b"x" * 1_000_000), "Content-Encoding: gzip", ErrorKind.TOO_LARGE),
        (b'{"a": 1}', "Content-Encoding: gzip", ErrorKind.BAD_BODY),
        (gzip.compress(gzip.compress(b"{}")), "Content-Encoding: gzip, gzip", ErrorKind.BAD_BODY),
        (b"{}", "Content-Encoding: br", ErrorKind.BAD_BODY),
        (b"{}", f"X-Long: {'x' * 40_000}\r\nX-More: {'x' * 40_000}", ErrorKind.TOO_LARGE),
    ],
)
def test_a_body_out_of_bounds_is_an_error(library: Library, body: bytes, head: str, kind: ErrorKind) -> None:
    """The status stays known, and that the request was sent."""
    observation, _ = seen(library, response(body, head), max_body=1_000)
    assert (observation.status, observation.body) == (200, None)
    assert (error_of(observation).kind, error_of(observation).sent) == (kind, True)


def test_an_error_page_that_cannot_be_read_leaves_its_status(library: Library) -> None:
    """What is not 2xx is judged by its status and headers."""
    observation, _ = seen(library, response(b"x" * 2_000, "Retry-After: 7", "429 Slow Down"), max_body=1_000)
    assert (observation.status, observation.headers["retry-after"], observation.body) == (429, "7", None)
    assert observation.error is None


@pytest.mark.parametrize("ending", ["cut", "stalled"])
def test_an_error_page_that_never_ends_leaves_its_status(library: Library, ending: str) -> None:
    """Cut on the wire, or longer than the call's time: a 429 stays one, with its hint."""

    async def broken_off(exchange: Exchange) -> None:
        await exchange.write(response(b"try later", "Retry-After: 7", "429 Slow Down")[:-5])
        if ending == "stalled":
            await exchange.hang()
        exchange.writer.close()

    observation, _ = seen(library, broken_off, timeout=SECOND // 2)
    assert (observation.status, observation.headers["retry-after"], observation.body) == (429, "7", None)
    assert observation.error is None


def test_a_good_answer_that_breaks_off_is_an_error(library: Library) -> None:
    """The status stays known, and that the request was sent."""

    async def broken_off(exchange: Exchange) -> None:
        await exchange.write(response(b'{"state": "SUCCEEDED"}')[:-5])
        exchange.writer.close()

    observation, _ = seen(library, broken_off)
    assert (observation.status, observation.body) == (200, None)
    assert (error_of(observation).kind, error_of(observation).sent) == (ErrorKind.PROTOCOL, True)


def test_an_endless_body_is_stopped_early(library: Library) -> None:
    """The transport hangs up once it has read enough, long before the call's time is over."""

    async def endless(exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await exchange.write(b"x" * 65_536)

    observation, _ = seen(library, endless, timeout=60 * SECOND)
    assert error_of(observation).kind is ErrorKind.TOO_LARGE


async def garbage(exchange: Exchange) -> None:
    """Something that is not HTTP."""
    await exchange.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    exchange.writer.close()


async def short(exchange: Exchange) -> None:
    """Half of the body."""
    await exchange.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"a"')
    exchange.writer.close()


async def reset(exchange: Exchange) -> None:
    """No answer at all, rudely."""
    exchange.reset()


async def closed(exchange: Exchange) -> None:
    """No answer at all, politely."""
    exchange.writer.close()


@pytest.mark.parametrize("answer", [garbage, short, reset, closed])
def test_a_broken_exchange_is_one_failed_call(library: Library, answer: Callable[[Exchange], Awaitable[None]]) -> None:
    """The request may have arrived, and is not sent again."""
    observation, server = seen(library, answer)
    assert (error_of(observation).kind, error_of(observation).sent) == (ErrorKind.PROTOCOL, True)
    assert len(server.requests) == 1


async def hang(exchange: Exchange) -> None:
    """No answer, and no end."""
    await exchange.hang()


async def drip_body(exchange: Exchange) -> None:
    """A body that never ends, in small pieces."""
    await exchange.write(b"HTTP/1.1 200 OK\r\n\r\n")
    await exchange.drip(b" ")


async def drip_headers(exchange: Exchange) -> None:
    """Headers that never end, in small pieces."""
    await exchange.write(b"HTTP/1.1 200 OK\r\nX: ")
    await exchange.drip(b"x")


async def early_answers(exchange: Exchange) -> None:
    """Interim answers for ever."""
    await exchange.drip(b"HTTP/1.1 103 Early Hints\r\n\r\n")


@pytest.mark.parametrize("answer", [hang, drip_body, drip_headers, early_answers])
def test_the_whole_call_is_bounded(library: Library, answer: Callable[[Exchange], Awaitable[None]]) -> None:
    """No server keeps a call alive by sending a little: one bound from the first byte to the last."""

    async def call() -> tuple[Observation, float]:
        async with serve(answer) as server, transport(library) as made:
            before = asyncio.get_running_loop().time()
            observation = await made.send(get(server.origin, timeout=SHORT))
            return observation, asyncio.get_running_loop().time() - before

    observation, took = asyncio.run(call())
    assert (error_of(observation).kind, error_of(observation).sent) == (ErrorKind.TIMEOUT, True)
    assert took < 30


@pytest.mark.parametrize("timeouts", [{"read_timeout": SHORT}, {"read_timeout": SHORT, "connect_timeout": SHORT}])
def test_a_read_may_be_bounded_by_itself(library: Library, timeouts: dict[str, int]) -> None:
    """The request's own read timeout cuts earlier than the call's bound."""

    async def call() -> Observation:
        async with serve(hang) as server, transport(library) as made:
            observed: Observation = await made.send(get(server.origin, timeout=60 * SECOND, **timeouts))
            return observed

    assert error_of(asyncio.run(call())).kind is ErrorKind.TIMEOUT


def test_a_refused_connection_sent_nothing(library: Library) -> None:
    """No byte of the request left, and the error says so."""

    async def call() -> Observation:
        async with serve(b"") as server:
            gone = server.origin
        async with transport(library) as made:
            observed: Observation = await made.send(get(f"{gone}/x?sig=canary"))
            return observed

    error = error_of(asyncio.run(call()))
    assert (error.kind, error.sent) == (ErrorKind.CONNECT, False)
    assert error.detail.startswith("could not connect: http://127.0.0.1:")
    assert "canary" not in error.detail


@pytest.mark.parametrize("options", [{"timeout": SHORT}, {"connect_timeout": SHORT, "timeout": 60 * SECOND}])
def test_a_handshake_that_hangs_sent_nothing(library: Library, options: dict[str, int]) -> None:
    """Cut before the request could leave, by the call's bound or the connection's own."""

    async def call() -> Observation:
        async with serve(hang) as server, transport(library) as made:
            observed: Observation = await made.send(get(server.origin.replace("http", "https"), **options))
            return observed

    error = error_of(asyncio.run(call()))
    assert (error.kind, error.sent) == (ErrorKind.CONNECT, False)


@pytest.mark.parametrize(
    ("url", "kinds"),
    [
        ("http://127.0.0.1:99999/", {ErrorKind.REFUSED}),
        ("http://127.0.0.1:-1/", {ErrorKind.REFUSED}),
        ("http://0177.0.0.1/", {ErrorKind.REFUSED}),
        ("ftp://127.0.0.1/", {ErrorKind.REFUSED}),
        ("http://" + "a" * 70 + "\u00e9/", {ErrorKind.REFUSED}),
        ("http://127.0.0.1/" + "x" * 70_000, {ErrorKind.REFUSED}),
        ("nonsense", {ErrorKind.REFUSED}),
    ],
)
def test_a_url_that_cannot_be_called_is_an_observation(library: Library, url: str, kinds: set[ErrorKind]) -> None:
    """Whatever the library raises for it, groups of errors included."""

    async def call() -> Observation:
        async with transport(library) as made:
            observed: Observation = await made.send(get(url))
            return observed

    error = error_of(asyncio.run(call()))
    assert error.kind in kinds
    assert not error.sent


def test_a_dropped_connection_is_not_tried_again(library: Library) -> None:
    """A kept connection that the server drops on the second request is a failed call: two calls, two requests."""

    async def once(exchange: Exchange) -> None:
        if exchange.number == 1:
            await exchange.write(response(b"1"))
        else:
            exchange.writer.close()

    async def call() -> tuple[Observation, Observation, RawServer]:
        async with serve(once) as server, transport(library) as made:
            return await made.send(get(server.origin)), await made.send(get(server.origin)), server

    first, second, server = asyncio.run(call())
    assert first.body == 1
    assert (error_of(second).kind, error_of(second).sent) == (ErrorKind.PROTOCOL, True)
    assert (len(server.requests), server.connections) == (2, 1)


def test_connections_are_kept(library: Library) -> None:
    """Polls of one service share a connection."""

    async def call() -> RawServer:
        async with serve(response(b"1")) as server, transport(library) as made:
            for _ in range(3):
                await made.send(get(server.origin))
            return server

    server = asyncio.run(call())
    assert (len(server.requests), server.connections) == (3, 1)


def test_cancelling_goes_through(library: Library) -> None:
    """The caller's cancellation is raised, at once, and the transport works on."""

    async def call() -> Observation:
        async def first_hangs(exchange: Exchange) -> None:
            await (exchange.hang() if exchange.number == 1 else exchange.write(response(b"2")))

        async with serve(first_hangs) as server, transport(library) as made:
            waiting = asyncio.create_task(made.send(get(server.origin)))
            await server.arrived.wait()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            observed: Observation = await made.send(get(server.origin))
            return observed

    assert asyncio.run(call()).body == 2


def test_waiting_for_a_turn_is_told_apart(library: Library) -> None:
    """With all places taken, a call that runs out of time says so, and that nothing was sent."""

    async def call() -> Observation:
        async with serve(hang) as server, transport(library) as made:
            assert made.in_flight >= 16
            busy = [asyncio.create_task(made.send(get(server.origin))) for _ in range(made.in_flight)]
            while len(server.requests) < made.in_flight:
                server.arrived.clear()
                await server.arrived.wait()
            observed: Observation = await made.send(get(server.origin, timeout=SHORT))
            for each in busy:
                each.cancel()
            await asyncio.gather(*busy, return_exceptions=True)
            assert len(server.requests) == made.in_flight
            return observed

    error = error_of(asyncio.run(call()))
    assert (error.kind, error.sent) == (ErrorKind.POOL, False)


def test_a_call_starts_when_it_has_its_place(library: Library) -> None:
    """Until then nothing of it has left: the floor between two polls counts from the end of the wait."""

    async def call() -> tuple[Observation, Observation]:
        async def the_first_hang(exchange: Exchange) -> None:
            await (exchange.hang() if exchange.number <= made.in_flight else exchange.write(response(b"2")))

        async with serve(the_first_hang) as server, transport(library) as made:
            busy = [asyncio.create_task(made.send(get(server.origin))) for _ in range(made.in_flight)]
            while len(server.requests) < made.in_flight:
                server.arrived.clear()
                await server.arrived.wait()
            impatient, waiting = made.send(get(server.origin, timeout=SHORT)), made.send(get(server.origin))
            others = [asyncio.create_task(impatient), asyncio.create_task(waiting)]
            given_up: Observation = await others[0]
            for each in busy:
                each.cancel()
            return given_up, await others[1]

    given_up, observed = asyncio.run(call())
    assert error_of(given_up).kind is ErrorKind.POOL
    assert observed.body == 2
    assert observed.started_at > given_up.finished_at


def narrow(library: ModuleType) -> dict[str, Any]:
    """What makes a client have one connection."""
    if library is aiohttp:
        return {"connector": aiohttp.TCPConnector(limit=1)}
    return {"limits": library.Limits(max_connections=1)}


@pytest.mark.parametrize("library", [httpx, httpx2, aiohttp])
def test_a_full_pool_of_the_callers_client_is_told_apart(library: ModuleType) -> None:
    """It is congestion here and not there, and nothing was sent."""

    async def call() -> Observation:
        async with serve(hang) as server, transport(library, client=narrow(library)) as made:
            busy = asyncio.create_task(made.send(get(server.origin)))
            await server.arrived.wait()
            # The pool is given nine tenths of the time: the last one must be long enough for whoever is slow to wake.
            observed: Observation = await made.send(get(server.origin, timeout=2 * SECOND))
            busy.cancel()
            await asyncio.gather(busy, return_exceptions=True)
            return observed

    error = error_of(asyncio.run(call()))
    assert (error.kind, error.sent) == (ErrorKind.POOL, False)


@pytest.mark.parametrize("library", [httpx, httpx2, aiohttp])
def test_a_call_starts_when_the_callers_pool_lets_it_go(library: ModuleType) -> None:
    """What it waited for a connection there is no part of it: the floor to the next poll counts from when it left."""
    answered, clock = asyncio.Event(), Ticks()
    clock.now = lambda: 0

    async def in_turn(exchange: Exchange) -> None:
        await answered.wait()
        await exchange.write(response(b"{}"))

    async def call() -> list[Observation]:
        client = client_of(library, **narrow(library))
        made = HttpTransport(client, clock=clock)
        async with serve(in_turn) as server:
            first = asyncio.create_task(made.send(get(server.origin)))
            await server.arrived.wait()
            second = asyncio.create_task(made.send(get(server.origin)))
            await asyncio.wait([second], timeout=0)
            clock.now = lambda: 7 * SECOND
            answered.set()
            found = [await first, await second]
            await (client.close if library is aiohttp else client.aclose)()
            return found

    first, second = asyncio.run(call())
    assert (first.started_at, second.started_at, second.status) == (0, 7 * SECOND, 200)


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_the_callers_client_is_used_as_it_is(library: ModuleType) -> None:
    """Its headers and auth go along, its params never into our URL, and it stays open."""
    client = {"headers": {"X-Mine": "1"}, "params": {"theirs": "1"}, "auth": ("user", "pass")}
    _, server = seen(library, response(), path="/x?ours=1", client=client)
    head = server.requests[0].lower()
    assert head.startswith(b"get /x?ours=1 ")
    assert b"x-mine: 1" in head
    assert b"authorization: basic" in head


def test_the_callers_session_is_used_as_it_is() -> None:
    """Its headers and cookies go along, and what it would raise or unpack is left to us."""

    async def call() -> tuple[Observation, RawServer]:
        mine: dict[str, Any] = {"headers": {"X-Mine": "1"}, "cookies": {"sid": "7"}, "raise_for_status": True}
        packed = response(gzip.compress(b"[1]"), "Content-Encoding: gzip", "500 X")
        jar = {"cookie_jar": aiohttp.CookieJar(unsafe=True)}
        async with serve(packed) as server, transport(aiohttp, client=mine | jar) as made:
            return await made.send(get(server.origin)), server

    seen, server = asyncio.run(call())
    assert (seen.status, seen.body, seen.error) == (500, [1], None)
    assert b"x-mine: 1" in server.requests[0].lower()
    assert b"cookie: sid=7" in server.requests[0].lower()


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_middleware_that_tries_again_does_not(method: str) -> None:
    """Whatever stands around the call of a session, a poll goes out once."""

    async def stubborn(request: Any, handler: Any) -> Any:
        for _ in range(3):
            try:
                answer = await handler(request)
            except aiohttp.ClientError:
                continue
            if answer.status == 200:
                break
        return answer

    async def call(answer: Answer) -> tuple[Observation, int]:
        async with serve(answer) as server, transport(aiohttp, client={"middlewares": [stubborn]}) as made:
            observed = await made.send(Prepared(CallKind.POLL, method, server.origin))
            return observed, len(server.requests)

    broken, sent = asyncio.run(call(reset))
    assert (error_of(broken).kind, error_of(broken).sent, sent) == (ErrorKind.PROTOCOL, True, 1)
    refused, sent = asyncio.run(call(response(b"[1]", status="500 X")))
    assert (refused.status, refused.body, sent) == (500, [1], 1)


def test_a_poll_is_one_request_with_a_digest_of_aiohttp() -> None:
    """A challenge is the answer of its poll; the next one goes out signed, and a submit is repeated."""

    async def call(*kinds: CallKind) -> tuple[list[int | None], int]:
        digest = aiohttp.DigestAuthMiddleware("user", "pass")
        async with serve(challenge) as server, transport(aiohttp, client={"middlewares": [digest]}) as made:
            seen = [await made.send(Prepared(kind, "GET", f"{server.origin}/jobs/7?x=1")) for kind in kinds]
            return [each.status for each in seen], len(server.requests)

    assert asyncio.run(call(*[CallKind.POLL] * 3)) == ([401, 200, 200], 3)
    assert asyncio.run(call(CallKind.SUBMIT, CallKind.POLL)) == ([200, 200], 3)


def test_an_aiohttp_that_cannot_be_held_back_is_refused() -> None:
    """A session without middlewares would send again by itself: said at once, not seen later."""

    class ClientSession:
        __module__ = "aiohttp.client"

    with pytest.raises(SpecError, match="3\\.12"):
        HttpTransport(ClientSession(), clock=Ticks())  # type: ignore[arg-type]  # a stand-in for an old one


CHALLENGE = response(b"", 'WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"', "401 Unauthorized")


async def challenge(exchange: Exchange) -> None:
    """Ask for a digest, and take any."""
    is_signed = b"authorization: digest" in exchange.request.lower()
    await exchange.write(response(b"[1]") if is_signed else CHALLENGE)


async def called(
    library: ModuleType, server: RawServer, auth: Any, *kinds: CallKind, **options: Any
) -> list[Observation]:
    """What calls of these kinds bring, one after the other, over one client with this auth."""
    async with transport(library, client={"auth": auth, **options}) as made:
        return [await made.send(Prepared(kind, "GET", f"{server.origin}/jobs/7?x=1")) for kind in kinds]


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_poll_is_one_request_with_any_auth(library: ModuleType) -> None:
    """A challenge is the answer of its poll; the next one goes out signed."""

    async def call() -> tuple[list[Observation], RawServer]:
        async with serve(challenge) as server:
            auth = library.DigestAuth("user", "pass")
            return await called(library, server, auth, *[CallKind.POLL] * 3), server

    observations, server = asyncio.run(call())
    assert [seen.status for seen in observations] == [401, 200, 200]
    assert [seen.error for seen in observations] == [None] * 3
    assert observations[1].body == [1]
    assert len(server.requests) == 3


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_submit_may_be_repeated_by_the_auth(library: ModuleType) -> None:
    """A submit that is refused ends its job, so the challenge is answered at once."""

    async def call() -> tuple[list[Observation], RawServer]:
        async with serve(challenge) as server:
            auth = library.DigestAuth("user", "pass")
            return await called(library, server, auth, CallKind.SUBMIT, CallKind.POLL), server

    observations, server = asyncio.run(call())
    assert [seen.status for seen in observations] == [200, 200]
    assert len(server.requests) == 3


def signing_in(library: ModuleType, *, requires_body: bool, first: bool = False, gives_up: bool = False) -> Any:
    """An auth that fetches a token from `/token`: before the call or after a 401, and then repeats the call."""

    class SigningIn(library.Auth):  # type: ignore[name-defined, misc]  # either library's class
        requires_response_body = requires_body
        token = "old"

        def auth_flow(self, request: Any) -> Any:
            if first:
                yield from self.sign_in(request)
            if gives_up:
                return
            request.headers["Authorization"] = self.token
            answer = yield library.Request(request.method, request.url, headers=request.headers)
            if answer.status_code == 401:
                yield from self.sign_in(request)
                request.headers["Authorization"] = self.token
                yield request

        def sign_in(self, request: Any) -> Any:
            answer = yield library.Request("POST", request.url.join("/token"))
            self.token = answer.headers["x-token"]

    return SigningIn()


async def guarded(exchange: Exchange) -> None:
    """Give a token at `/token`, and want it everywhere else."""
    if exchange.request.startswith(b"POST /token "):
        await exchange.write(response(b'"a token"', "X-Token: new"))
    elif b"authorization: new" in exchange.request.lower():
        await exchange.write(response(b"[1]"))
    else:
        await exchange.write(response(b'"denied"', status="401 Unauthorized"))


def signed_in(library: ModuleType, polls: int, **options: bool) -> tuple[list[Observation], list[bytes]]:
    """What polls with such an auth bring over one connection, and the first word and path of what was sent."""

    async def call() -> tuple[list[Observation], list[bytes]]:
        async with serve(guarded) as server:
            auth = signing_in(library, **options)
            narrow = library.Limits(max_connections=1)
            found = await called(library, server, auth, *[CallKind.POLL] * polls, limits=narrow)
            return found, [request.partition(b" HTTP")[0] for request in server.requests]

    return asyncio.run(call())


@pytest.mark.parametrize("library", [httpx, httpx2])
@pytest.mark.parametrize("requires_body", [False, True])
def test_a_sign_in_is_no_poll(library: ModuleType, requires_body: bool) -> None:
    """A token is fetched after the poll that was denied, or before one; its answer is never taken for the poll's."""
    later, sent = signed_in(library, 2, requires_body=requires_body)
    assert [(seen.status, seen.body) for seen in later] == [(401, "denied"), (200, [1])]
    assert sent == [b"GET /jobs/7?x=1", b"POST /token", b"GET /jobs/7?x=1"]
    (before,), sent = signed_in(library, 1, requires_body=requires_body, first=True)
    assert (before.status, before.body) == (200, [1])
    assert sent == [b"POST /token", b"GET /jobs/7?x=1"]


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_an_auth_that_gives_up_is_a_failed_call(library: ModuleType) -> None:
    """What it was told when it signed in is no answer to the poll."""
    (seen,), sent = signed_in(library, 1, requires_body=False, first=True, gives_up=True)
    assert (error_of(seen).kind, seen.status, seen.body) == (ErrorKind.PROTOCOL, None, None)
    assert sent == [b"POST /token"]


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_hook_may_read_the_answer_first(library: ModuleType) -> None:
    """What a hook of the caller's client has read is taken from there, within the same bound."""

    async def read(answer: Any) -> None:
        await answer.aread()

    hooks = {"event_hooks": {"response": [read]}}
    packed = response(gzip.compress(b"[1]"), "Content-Encoding: gzip")
    assert seen(library, packed, client=hooks)[0].body == [1]
    large, _ = seen(library, response(b"x" * 2_000), client=hooks, max_body=1_000)
    assert error_of(large).kind is ErrorKind.TOO_LARGE


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_hook_that_raises_is_a_failed_call(library: ModuleType) -> None:
    """One that refuses the status, and one that fails with a secret in its words."""

    async def refuse(answer: Any) -> None:
        answer.raise_for_status()

    async def fail(_: Any) -> None:
        raise RuntimeError("canary")

    refused, _ = seen(
        library, response(status="500 X"), path="/?sig=canary", client={"event_hooks": {"response": [refuse]}}
    )
    failed, _ = seen(library, response(), client={"event_hooks": {"response": [fail]}})
    assert error_of(refused).kind is ErrorKind.HTTP_STATUS
    assert (error_of(failed).kind, error_of(failed).sent) == (ErrorKind.PROTOCOL, True)
    assert "canary" not in error_of(refused).detail + error_of(failed).detail


@pytest.mark.parametrize("client", [httpx.Client, httpx2.Client, object])
def test_another_client_is_refused(client: type) -> None:
    """A blocking one, or a stranger: said at once."""
    with pytest.raises(SpecError, match="aiohttp"):
        HttpTransport("requests", clock=Ticks())  # type: ignore[arg-type]  # on purpose
    made = client()
    with pytest.raises(SpecError, match="AsyncClient"):
        HttpTransport(made, clock=Ticks())
    if hasattr(made, "close"):
        made.close()


@pytest.mark.parametrize("own", OWN)
def test_our_own_client_keeps_to_itself(own: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy from the environment, no netrc, no cookies from one job to the next."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    async def call() -> RawServer:
        async with serve(response(b"1", "Set-Cookie: sid=1; Path=/")) as server, transport(own) as made:
            for _ in range(2):
                observation = await made.send(get(server.origin))
                assert "set-cookie" not in observation.headers
            return server

    server = asyncio.run(call())
    assert len(server.requests) == 2
    assert b"cookie" not in server.requests[1].lower()


@pytest.mark.parametrize("own", OWN)
def test_a_transport_closes_what_it_opened(own: Library) -> None:
    """Nothing to close before the first call; after it, our own connections, once."""

    async def call() -> None:
        made = HttpTransport(own, clock=Ticks())
        await made.aclose()
        async with serve(response()) as server:
            await made.send(get(server.origin))
            assert server.open == 1
            await made.aclose()
            await made.aclose()
            await server.left.wait()
            assert server.open == 0

    asyncio.run(call())


def test_nothing_of_a_call_is_logged(library: Library, caplog: pytest.LogCaptureFixture) -> None:
    """The libraries' loggers keep quiet about our calls at any level, and speak of other calls as before."""
    caplog.set_level(logging.DEBUG)

    def foreign() -> set[str]:
        return {record.name for record in caplog.records if record.name.startswith(("httpx", "httpcore", "aiohttp"))}

    async def call() -> None:
        async with serve(response(b"{}", "Location: /x?sig=canary")) as server, transport(library) as made:
            await made.send(get(f"{server.origin}/x?sig=canary", headers=(("Authorization", "canary"),)))
            assert foreign() == set()
        logging.getLogger("aiohttp.client").debug("/theirs")
        for other in (httpx, httpx2):
            async with serve(response(b"{}")) as server, client_of(other) as client:
                await client.get(f"{server.origin}/theirs")

    asyncio.run(call())
    assert "canary" not in caplog.text
    assert caplog.text.count("/theirs") >= 3
    assert foreign() <= set(LOGGERS)


def test_known_secrets_are_masked(library: Library) -> None:
    """What a server echoes of a secret is taken out of headers and body."""
    answer = response(b'{"error": "bad key hunter2"}', "X-Echo: hunter2", "401 Unauthorized")
    observation, _ = seen(library, answer, redact=lambda text: text.replace("hunter2", "***"))
    assert observation.body == {"error": "bad key ***"}
    assert observation.headers["x-echo"] == "***"


@pytest.mark.parametrize("library", [httpx, httpx2])
@pytest.mark.parametrize(("event", "sent"), [("connect_tcp.started", False), ("send_request_headers.started", True)])
def test_how_far_a_call_came_is_known(library: ModuleType, event: str, sent: bool) -> None:
    """An error that says nothing of it is read by the last thing the connection did."""

    async def fail(request: Any) -> Any:
        await request.extensions["trace"](f"connection.{event}", {})
        raise RuntimeError

    async def call() -> Observation:
        async with transport(library, client={"transport": library.MockTransport(fail)}) as made:
            observed: Observation = await made.send(get("https://api.example.com/"))
            return observed

    error = error_of(asyncio.run(call()))
    assert (error.kind, error.sent) == (ErrorKind.PROTOCOL if sent else ErrorKind.CONNECT, sent)


# The libraries' errors


OF_WEB_SOCKETS = {"WebSocketError", "WSMessageTypeError", "EofStream"}


def classes(library: ModuleType) -> list[type[Exception]]:
    """Every exception that the library exports, warnings and those of web sockets apart."""
    exported = (getattr(library, name) for name in dir(library) if name not in OF_WEB_SOCKETS)
    return [
        found
        for found in exported
        if inspect.isclass(found) and issubclass(found, Exception) and not issubclass(found, Warning)
    ]


@pytest.mark.parametrize("foreign", [httpx, httpx2, httpcore, httpcore2, aiohttp, aiohttp.http_exceptions])
def test_every_error_of_the_libraries_has_a_meaning(foreign: ModuleType) -> None:
    """None is left over: a class that a new version adds fails here."""
    found = classes(foreign)
    assert len(found) > 10
    assert [each for each in found if not is_known(each)] == []


@pytest.mark.parametrize("kind", [each for each in classes(aiohttp) if issubclass(each, aiohttp.ClientError)])
def test_every_error_of_aiohttp_is_an_observation(kind: type[Exception]) -> None:
    """Nothing was sent only where that is certain: what is raised before the request could be written."""
    before = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ServerFingerprintMismatch)
    before += (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, aiohttp.ClientHttpProxyError)
    error = kind.__new__(kind)
    assert is_known(kind)
    assert translate(error, "http://h").sent is not isinstance(error, before)


UNSENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "InvalidURL", "UnsupportedProtocol"}


@pytest.mark.parametrize("name", [*(each.__name__ for each in classes(httpx)), "OSError", "ValueError"])
@pytest.mark.parametrize("library", [httpx, httpx2])
def test_every_error_of_the_libraries_is_an_observation(library: ModuleType, name: str) -> None:
    """Whatever is raised below, as itself or in a group; nothing was sent only where that is certain."""
    kind: Any = getattr(library, name, None) or {"OSError": OSError, "ValueError": ValueError}[name]
    arguments = {"HTTPStatusError": {"request": None, "response": None}}.get(name, {})
    message = () if name in {"StreamConsumed", "StreamClosed", "ResponseNotRead", "RequestNotRead"} else ("canary",)

    async def call(error: Exception) -> Observation:
        async def fail(_: Any) -> Any:
            raise error

        async with transport(library, client={"transport": library.MockTransport(fail)}) as made:
            observed: Observation = await made.send(get("https://api.example.com/x?sig=canary"))
            return observed

    for error in (kind(*message, **arguments), ExceptionGroup("canary", [kind(*message, **arguments)])):
        translated = error_of(asyncio.run(call(error)))
        assert translated.sent is (name not in UNSENT)
        assert "canary" not in translated.detail


def test_the_systems_words_are_kept() -> None:
    """The reason that a person can act on, from wherever it is in the chain, a circular one included."""
    outer, inner = httpx.ConnectError("All connection attempts failed"), OSError(111, "Connect\nrefused\u202e!")
    outer.__cause__ = ExceptionGroup("", [inner])
    inner.__context__ = outer
    assert translate(outer, "http://h").detail == "could not connect: http://h: Connect refused !"
    inner.strerror = None
    assert translate(outer, "http://h").detail == "could not connect: http://h: ConnectError"
    assert translate(httpx.ReadError(""), "http://h").detail == "the connection broke: http://h: ReadError"


def test_system_errors_outside_the_libraries_have_a_meaning() -> None:
    """What the system raises past the libraries."""
    assert not translate(socket.gaierror(-2, "Name or service not known"), "x").sent
    assert not translate(ConnectionRefusedError(111, "Connection refused"), "x").sent
    assert translate(ConnectionResetError(104, "Connection reset by peer"), "x").sent
    assert translate(UnicodeError("label too long"), "x").kind is ErrorKind.REFUSED
    assert translate(KeyError("x"), "x").kind is ErrorKind.PROTOCOL
