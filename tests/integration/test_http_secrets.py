"""From a spec's request to the wire and back: where secrets go, and where they do not."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

import pytest

from tarry.core.observation import Observation
from tarry.core.request import Request
from tarry.http.prepare import CallRefused, prepare
from tarry.http.secrets import Secrets
from tarry.http.transport import HttpTransport
from tarry.testing.clock import FakeClock
from tarry.words import SECOND, CallKind
from tests.raw_server import RawServer, response, serve

CANARY = "hunter2-canary"
SUBMIT_HEADERS = {"Authorization": "Bearer {secret.TOKEN}", "X-Tenant": "7"}


class Calls:
    """Submits to one server and polls what it answered, with one secret."""

    def __init__(self) -> None:
        self.secrets = Secrets({"TOKEN": CANARY})
        self.transport = HttpTransport(clock=FakeClock(), redact=self.secrets.redact)

    async def submit(self, home: RawServer) -> dict[str, Any]:
        request = Request("POST", f"{home.origin}/jobs", headers=SUBMIT_HEADERS, json={"a": "{key}"})
        return asdict(await self._call(request, CallKind.SUBMIT, {}))

    async def poll(self, submit: dict[str, Any], **options: Any) -> Observation:
        request = Request("GET", "{submit.headers.location}", headers=SUBMIT_HEADERS)
        return await self._call(request, CallKind.POLL, submit, **options)

    async def _call(self, request: Request, kind: CallKind, submit: dict[str, Any], **options: Any) -> Observation:
        values = {"key": "k", "input": None, "submit": submit}
        prepared = prepare(
            request,
            kind=kind,
            values=values,
            secrets=self.secrets,
            timeout=5 * SECOND,
            idempotency_key="once",
            **options,
        )
        return await self.transport.send(prepared)


def test_a_secret_goes_to_its_origin() -> None:
    """With the submit and with the poll of the URL that it found; the key goes with the submit alone."""

    async def scenario() -> RawServer:
        async with serve(response(b"{}", "Location: /jobs/7?sig=a%2Bb")) as home:
            calls = Calls()
            await calls.poll(await calls.submit(home))
            await calls.transport.aclose()
            return home

    submit, poll = asyncio.run(scenario()).requests
    assert submit.startswith(b"POST /jobs HTTP")
    assert b"Idempotency-Key: once" in submit
    assert submit.endswith(b'{"a":"k"}')
    assert poll.startswith(b"GET /jobs/7?sig=a%2Bb HTTP")
    assert b"Idempotency-Key" not in poll
    assert f"Authorization: Bearer {CANARY}".encode() in submit
    assert f"Authorization: Bearer {CANARY}".encode() in poll


def test_a_secret_does_not_leave_its_origin() -> None:
    """A found URL of another origin is refused before a byte is sent; allowed, it is called without the secret."""

    async def scenario() -> list[bytes]:
        async with serve(response(b"{}")) as away, serve(response(b"{}", f"Location: {away.origin}/jobs/7")) as home:
            calls = Calls()
            submit = await calls.submit(home)
            with pytest.raises(CallRefused, match="allowed_hosts") as refused:
                await calls.poll(submit)
            assert CANARY not in str(refused.value)
            assert away.requests == []
            await calls.poll(submit, allowed_hosts=["127.0.0.1"])
            await calls.transport.aclose()
            return away.requests

    (poll,) = asyncio.run(scenario())
    assert CANARY.encode() not in poll
    assert b"X-Tenant: 7" in poll


@pytest.mark.parametrize("status", [302, 307, 308])
def test_a_redirect_takes_nothing_along(status: int) -> None:
    """The other origin is not called: neither the secret nor the body reaches it."""

    async def scenario() -> tuple[dict[str, Any], RawServer]:
        async with (
            serve(response(b"{}")) as away,
            serve(response(b"", f"Location: {away.origin}/jobs", f"{status} Elsewhere")) as home,
        ):
            calls = Calls()
            submit = await calls.submit(home)
            await calls.transport.aclose()
            return submit, away

    submit, away = asyncio.run(scenario())
    assert submit["status"] == status
    assert away.requests == []


def test_an_echoed_secret_is_not_observed() -> None:
    """What a server repeats of the request is masked before anything can keep it."""

    async def scenario() -> dict[str, Any]:
        async with serve(response(f'{{"you sent": "Bearer {CANARY}"}}'.encode(), f"X-Echo: {CANARY}")) as home:
            calls = Calls()
            submit = await calls.submit(home)
            await calls.transport.aclose()
            return submit

    observed = asyncio.run(scenario())
    assert CANARY not in repr(observed)
    assert observed["body"] == {"you sent": "Bearer ***"}


def escaped(text: str, digits: str = "04x") -> str:
    """Each character as a JSON escape."""
    halves = text.encode("utf-16-be").hex()
    return "".join(f"\\u{int(halves[at : at + 4], 16):{digits}}" for at in range(0, len(halves), 4))


def observed_echo(secret: str, body: str, head: str = "") -> Observation:
    """What is observed when a server answers a call with this secret like this."""

    async def call() -> Observation:
        secrets = Secrets({"T": secret})
        async with serve(response(body.encode(), head)) as server:
            transport = HttpTransport(clock=FakeClock(), redact=secrets.redact)
            request = Request("GET", server.origin, params={"t": "{secret.T}"})
            prepared = prepare(request, kind=CallKind.POLL, values={}, secrets=secrets, timeout=5 * SECOND)
            seen = await transport.send(prepared)
            await transport.aclose()
            return seen

    return asyncio.run(call())


SLASHED = "AbC/dEf+gH1jK=="
SPOKEN = 'p\u00e4ss "w\U0001f600rd"/x'


@pytest.mark.parametrize(
    ("secret", "spelling"),
    [
        (SLASHED, SLASHED),
        (SLASHED, SLASHED.replace("/", "\\/")),
        (SLASHED, escaped(SLASHED)),
        (SLASHED, escaped(SLASHED, "04X")),
        (SLASHED, "\\u0041" + SLASHED[1:]),
        (SLASHED, "AbC%2FdEf%2BgH1jK%3D%3D"),
        (SLASHED, "AbC%2fdEf%2bgH1jK%3d%3d"),
        (SLASHED, "AbC%2FdEf%2bgH1jK%3D%3d"),
        (SLASHED, "AbC/dEf%2bgH1jK%3d%3d"),
        (SLASHED, "%41bC/dEf+gH1jK=="),
        (SLASHED, escaped(SLASHED).replace("\\", "\\\\")),
        (SPOKEN, SPOKEN.replace('"', '\\"')),
        (SPOKEN, SPOKEN.replace('"', '\\"').replace("/", "\\/")),
        (SPOKEN, escaped(SPOKEN)),
        ("blank one/two", "blank+one%2Ftwo"),
        ("blank one/two", "blank+one%2ftwo"),
        ("blank one/two", "blank+one/two"),
        ("blank one/two", "blank%20one%2ftwo"),
    ],
)
def test_a_secret_is_masked_in_any_spelling(secret: str, spelling: str) -> None:
    """As a value, as a name, and in a text that is no JSON: escaped, percent-encoded or plain."""
    seen = observed_echo(secret, f'{{"state": "DONE", "echo": "<{spelling}>", "{spelling}": [1, null]}}')
    assert seen.body == {"state": "DONE", "echo": "<***>", "***": [1, None]}
    assert observed_echo(secret, f'DONE "<{spelling}>"').body == 'DONE "<***>"'


def test_a_secret_of_digits_is_masked_in_a_number() -> None:
    """The body stays JSON: the number becomes a string, its neighbours stay numbers."""
    seen = observed_echo("123456", '{"echo": 123456, "n": [1.5, true, null, "\\/"]}')
    assert (seen.body, seen.is_json) == ({"echo": "***", "n": [1.5, True, None, "/"]}, True)


def test_an_escape_is_not_cut_by_a_mask() -> None:
    """A secret that begins like the end of an escape leaves the JSON whole."""
    seen = observed_echo("nightfall", '{"a": "one\\nightfall", "b": "nightfall"}')
    assert seen.body == {"a": "one\nightfall", "b": "***"}


def test_a_header_is_masked_in_any_spelling() -> None:
    """A URL or a JSON text in a header is no way round either."""
    head = "Location: /jobs?t=AbC%2fdEf%2bgH1jK%3d%3d&n=1\r\nX-Echo: AbC\\/dEf+gH1jK=="
    seen = observed_echo(SLASHED, "{}", head)
    assert seen.headers["location"] == "/jobs?t=***&n=1"
    assert seen.headers["x-echo"] == "***"


@pytest.mark.parametrize(
    ("charset", "body", "seen"),
    [
        *(
            (charset, b'{"state": "DONE"}', {"state": "DONE"})
            for charset in ("zlib", "hex", "rot13", "idna", "punycode")
        ),
        *(
            (charset, b'{"state": "DONE"}', {"state": "DONE"})
            for charset in ("undefined", "utf-16", "base64", "x" * 5_000)
        ),
        ("iso-8859-1", b'{"state": "caf\xe9"}', {"state": "caf\u00e9"}),
        ("utf-8", b"\xef\xbb\xbf[1]", [1]),
    ],
)
def test_no_charset_is_a_trap(charset: str, body: bytes, seen: Any) -> None:
    """A label that names a strange codec changes nothing."""

    async def scenario() -> dict[str, Any]:
        async with serve(response(body, f"Content-Type: application/json; charset={charset}")) as home:
            calls = Calls()
            submit = await calls.submit(home)
            await calls.transport.aclose()
            return submit

    assert asyncio.run(scenario())["body"] == seen
