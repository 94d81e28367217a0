"""HTTP/1.1 as bytes: just as much as the stub needs, and deaf to garbage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from urllib.parse import unquote

MAX_HEAD = 16 * 1024
"""Bytes of a request line with its headers."""
MAX_BODY = 1024 * 1024
"""Bytes of a request's body."""

_END = b"\r\n\r\n"


class Manner(StrEnum):
    """How a reply goes over the wire."""

    WHOLE = "whole"
    DRIP = "drip"
    """A byte at a time."""
    DROP = "drop"
    """Not at all: the connection is closed."""
    CUT = "cut"
    """Half of it, then the connection is closed."""
    GARBAGE = "garbage"
    """Bytes that are not HTTP, then the connection is closed."""
    HANG = "hang"
    """Never, on a connection that stays open."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `headers` has lower-case names; `target` is the path with its query."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""
    keep_alive: bool = True

    @property
    def parts(self) -> tuple[str, ...]:
        """The path in decoded segments: `/jobs/a%20b` is ("jobs", "a b")."""
        return tuple(unquote(part) for part in self.target.partition("?")[0].split("/")[1:])

    @property
    def query(self) -> str:
        """What follows the question mark."""
        return self.target.partition("?")[2]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, and how to send it: after `delay` seconds, with `pause` seconds between dripped bytes."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    manner: Manner = Manner.WHOLE
    delay: float = 0
    pause: float = 0


class Malformed(Exception):
    """The bytes are no request that can be served; `status` says why."""

    def __init__(self, status: HTTPStatus, problem: str) -> None:
        super().__init__(problem)
        self.status = status


def parse(buffer: bytearray) -> Request | None:
    """Take one request off the front of the buffer; None while it is incomplete. Raises `Malformed`."""
    while buffer.startswith(b"\r\n"):
        del buffer[:2]
    if buffer and not buffer[:1].isalpha():
        raise Malformed(HTTPStatus.BAD_REQUEST, "this is not HTTP")
    end = buffer.find(_END)
    if max(end, 0) > MAX_HEAD or (end < 0 and len(buffer) > MAX_HEAD):
        raise Malformed(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"headers are over {MAX_HEAD} bytes")
    if end < 0:
        return None
    first, *lines = buffer[:end].decode("latin-1").split("\r\n")
    method, target, version = _request_line(first)
    headers = _headers(lines)
    stop = end + len(_END) + _content_length(headers)
    if len(buffer) < stop:
        return None
    content = bytes(buffer[end + len(_END) : stop])
    del buffer[:stop]
    return Request(method, target, headers, content, _keeps_alive(version, headers))


def render(reply: Reply, *, date: str, keep_alive: bool, head_only: bool = False) -> bytes:
    """The whole answer as bytes; `head_only` for a HEAD."""
    try:
        reason = HTTPStatus(reply.status).phrase
    except ValueError:
        reason = "Unknown"
    lines = [
        f"HTTP/1.1 {reply.status} {reason}",
        f"Date: {date}",
        *[f"{name}: {value}" for name, value in reply.headers.items()],
    ]
    bodiless = reply.status in {204, 304}
    if not bodiless:
        lines += [f"Content-Type: {reply.content_type}", f"Content-Length: {len(reply.body)}"]
    if not keep_alive:
        lines.append("Connection: close")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
    return head if head_only or bodiless else head + reply.body


def _request_line(line: str) -> tuple[str, str, str]:
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/"):
        raise Malformed(HTTPStatus.BAD_REQUEST, "the request line is not: METHOD /path HTTP/1.1")
    if words[2] not in {"HTTP/1.1", "HTTP/1.0"}:
        raise Malformed(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "only HTTP/1.1 and HTTP/1.0 are spoken here")
    method, target, version = words
    if target.lower().startswith(("http://", "https://")):  # as a client behind a proxy writes it
        target = "/" + target.split("://", 1)[1].partition("/")[2]
    return method, target, version


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t")
        if not colon or not name or name != name.strip():
            raise Malformed(HTTPStatus.BAD_REQUEST, "a header line is not: Name: value")
        if name == "content-length" and headers.get(name, value) != value:
            raise Malformed(HTTPStatus.BAD_REQUEST, "Content-Length is there twice, and differs")
        headers[name] = value
    return headers


def _content_length(headers: Mapping[str, str]) -> int:
    coding = headers.get("transfer-encoding")
    if coding is not None:
        chunked = coding.lower() == "chunked"
        status = HTTPStatus.LENGTH_REQUIRED if chunked else HTTPStatus.NOT_IMPLEMENTED
        raise Malformed(status, "send a Content-Length; no transfer coding is read here")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise Malformed(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
    if len(text) > 12 or int(text) > MAX_BODY:
        raise Malformed(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {MAX_BODY} bytes")
    return int(text)


def _keeps_alive(version: str, headers: Mapping[str, str]) -> bool:
    wish = headers.get("connection", "").lower()
    return "close" not in wish if version == "HTTP/1.1" else "keep-alive" in wish
