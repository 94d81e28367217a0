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
