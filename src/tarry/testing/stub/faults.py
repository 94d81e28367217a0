"""Bends a good reply into an odd one, as a behaviour says."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from email.utils import format_datetime
from functools import lru_cache

from tarry.testing.stub.behaviour import Behaviour, Hint
from tarry.testing.stub.jobs import Document
from tarry.testing.stub.wire import Manner, Reply
from tarry.words import SECOND, Instant, moment

_MIB = 1024 * 1024
_GZIP = 16 + zlib.MAX_WBITS
_ERRORS = {404: "no such job", 429: "too many requests"}


def http_date(at: Instant) -> str:
    """As in `Date: Thu, 01 Jan 2026 00:00:00 GMT`."""
    return _date_of_second(at // SECOND)


@lru_cache(maxsize=16)
def _date_of_second(second: int) -> str:
    return format_datetime(moment(second * SECOND), usegmt=True)


def as_json(status: int, document: Document) -> Reply:
    """A JSON reply."""
    return Reply(status, json.dumps(document).encode())


def bend(reply: Reply, document: Document, behaviour: Behaviour, *, call: int, now: Instant) -> Reply:
    """The reply that carries `document`, made odd for the n-th call."""
    headers = dict(reply.headers) | _hint_headers(behaviour, now) | behaviour.headers
    odd = replace(
        _content(reply, document, behaviour, call),
        delay=behaviour.delay,
        pause=behaviour.pause,
        manner=_manner(behaviour),
    )
    return replace(odd, headers=headers | dict(odd.headers))


def marked(reply: Reply, known: str | None) -> Reply:
    """The reply with its ETag; a 304 for a client that knows it as `known`."""
    etag = f'"{zlib.crc32(reply.body):08x}"'
    headers = {**reply.headers, "ETag": etag}
    return replace(reply, status=304, body=b"", headers=headers) if known == etag else replace(reply, headers=headers)


def _content(reply: Reply, document: Document, behaviour: Behaviour, call: int) -> Reply:
    """What the odd reply says; how it is sent comes later."""
    status = behaviour.status
    if behaviour.states:
        document = document | {"state": behaviour.states[(call - 1) % len(behaviour.states)]}
    match behaviour.mode:
        case "redirect":
            return replace(as_json(status or 302, {}), headers={"Location": behaviour.url})
        case "text":
            page = b"<!doctype html><title>Oops</title><p>This is not JSON."
            return Reply(status or reply.status, page, content_type="text/html; charset=utf-8")
        case "huge" | "bomb":
            return _huge(status or reply.status, document, behaviour)
    if status is not None and status >= 300:
        return as_json(status, {"error": _ERRORS.get(status, f"scripted {status}")})
    return as_json(status or reply.status, document)


def _huge(status: int, document: Document, behaviour: Behaviour) -> Reply:
    start = json.dumps(document | {"padding": ""}).encode()[:-2]
    if behaviour.mode == "huge":
        return Reply(status, start + b" " * (behaviour.mib * _MIB) + b'"}')
    packed = zlib.compressobj(wbits=_GZIP)
    pieces = [packed.compress(start)]
    pieces += [packed.compress(_blank()) for _ in range(behaviour.mib)]
    pieces += [packed.compress(b'"}'), packed.flush()]
    return Reply(status, b"".join(pieces), {"Content-Encoding": "gzip"})


@lru_cache(maxsize=1)
def _blank() -> bytes:
    return b" " * _MIB


def _manner(behaviour: Behaviour) -> Manner:
    known = {manner.value for manner in Manner}
    return Manner(behaviour.mode) if behaviour.mode in known else Manner.WHOLE


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


_HINTS: dict[Hint, Callable[[float, Instant], tuple[str, str]]] = {
    "seconds": lambda wait, _: ("Retry-After", _number(wait)),
    "date": lambda wait, now: ("Retry-After", http_date(now + round(wait * SECOND))),
    "ms": lambda wait, _: ("retry-after-ms", _number(wait * 1000)),
    "x-ms": lambda wait, _: ("x-ms-retry-after-ms", _number(wait * 1000)),
    "openai-ms": lambda wait, _: ("openai-poll-after-ms", _number(wait * 1000)),
    "interval": lambda wait, _: ("x-poll-interval", _number(wait)),
    "garbage": lambda _, __: ("Retry-After", "when the moon is full"),
}


def _hint_headers(behaviour: Behaviour, now: Instant) -> dict[str, str]:
    if behaviour.hint is None:
        return {}
    name, value = _HINTS[behaviour.hint](behaviour.wait, now)
    return {name: value}
