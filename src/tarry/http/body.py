"""From the bytes of a response to its body, every step bounded."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tarry.core.observation import CallError
from tarry.core.request import MAX_DEPTH
from tarry.core.texts import no_constant
from tarry.frozen import quick
from tarry.words import ErrorKind, Json

MAX_TEXT = 16_384
"""Characters kept of a body that is not JSON."""

_MAX_LABEL = 1_000
_GZIP = 16 + zlib.MAX_WBITS
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
_LATIN_1 = {"latin-1", "latin1", "iso-8859-1", "iso8859-1"}
# Possessive, and a text that never ends is matched up to the end: linear on any input.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKET = re.compile(r"[^\[\]{}]+")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class BodyError(Exception):
    """The body cannot be used; `kind` and `detail` are those of the observation's error."""

    def __init__(self, kind: ErrorKind, detail: str) -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail

    def as_error(self) -> CallError:
        """The error of a call whose request was sent."""
        return CallError(self.kind, self.detail)


class Decoder:
    """Collects a raw body, unpacking gzip, and stops as soon as it passes `limit` bytes.

    At most one content coding, gzip: more of them is how a few bytes grow into gigabytes.
    """

    def __init__(self, content_encoding: str, limit: int) -> None:
        self._unpacker = zlib.decompressobj(_GZIP) if content_encoding and _is_packed(content_encoding) else None
        self._limit = limit
        self._raw = 0
        self._body = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes off the wire; `BodyError` when they are too many or not gzip."""
        self._raw += len(chunk)
        # Packed bytes are bounded as well: members that unpack to nothing would go on for ever.
        self._bound(self._raw)
        if self._unpacker is None:
            self._body += chunk
        else:
            self._unpack(chunk, self._unpacker)

    def finish(self) -> bytes:
        """The whole body; `BodyError` when packed data ends early."""
        if self._unpacker is not None and self._raw and not self._unpacker.eof:
            raise BodyError(ErrorKind.BAD_BODY, "the gzip body ends early")
        return bytes(self._body)

    def _unpack(self, chunk: bytes, unpacker: Any) -> None:
        while chunk:
            if unpacker.eof:
                self._unpacker = unpacker = zlib.decompressobj(_GZIP)
            try:
                self._body += unpacker.decompress(chunk, self._limit + 1 - len(self._body))
            except zlib.error:
                raise BodyError(ErrorKind.BAD_BODY, "the body is labelled gzip and is not") from None
            self._bound(len(self._body))
            chunk = unpacker.unconsumed_tail or unpacker.unused_data

    def _bound(self, size: int) -> None:
        if size > self._limit:
            raise BodyError(ErrorKind.TOO_LARGE, f"the body is larger than {self._limit} bytes")


def unpacked(body: bytes, content_encoding: str, limit: int) -> bytes:
    """A raw body that came at once, as a `Decoder` gives it."""
    if not content_encoding and len(body) <= limit:
        return body
    decoder = Decoder(content_encoding, limit)
    decoder.feed(body)
    return decoder.finish()


def _is_packed(content_encoding: str) -> bool:
    codings = [coding.strip().lower() for coding in content_encoding.split(",")]
    codings = [coding for coding in codings if coding not in {"", "identity"}]
    if len(codings) > 1:
        raise BodyError(ErrorKind.BAD_BODY, "the body is packed more than once")
    if codings and codings[0] not in {"gzip", "x-gzip"}:
        raise BodyError(ErrorKind.BAD_BODY, "the body is packed in a way that was not asked for; only gzip is")
    return bool(codings)


@quick
@dataclass(frozen=True, slots=True)
class Body:
    """A body as an observation holds it: the JSON value, text when it is none, None when it is empty or known.

    `digest` and `text` are those of the observation.
    """

    value: Json
    is_json: bool
    digest: int | None = field(default=None, compare=False)
    text: str | None = field(default=None, compare=False)


EMPTY = Body(None, is_json=False)


def parse(data: bytes, content_type: str = "", redact: Callable[[str], str] = str, known: int | None = None) -> Body:
    """The body, judged by its content: the label says JSON too often, and too seldom.

    JSON may have a byte order mark and be UTF-8, UTF-16 or Latin-1. Of members with
    one name the last counts, lone surrogates become U+FFFD. What is
    nested deeper than 64, holds NaN or an infinity (1e999 too) or a number of over 4,300
    digits is kept as text, cut to 16,384 characters. `redact` takes secrets out of a text;
    it is given what JSON says, as one string has many spellings there. One that is false has nothing to take out.
    A body with the digest `known` was read before: its text is given without its value, where that says all of it.
    """
    text = decode(data, content_type)
    digest = hash(text)
    if digest == known and "\\" not in text and (not bool(redact) or redact(text) == text):
        return Body(None, is_json=True, digest=digest, text=text)
    if not text.strip():
        return EMPTY
    try:
        read = _json(text)
    except (ValueError, RecursionError):
        return Body(redact(text)[:MAX_TEXT], is_json=False)
    value = _redacted(read, text, redact) if bool(redact) else read
    # An escape may have stood for half a character, which was replaced.
    says_all = value is read and "\\" not in text
    return Body(value, is_json=True, digest=digest, text=text if says_all else None)


def decode(data: bytes, content_type: str = "") -> str:
    """The bytes as text, with U+FFFD for what cannot be read; never a codec that the server picks freely."""
    if data.isascii() and b"\0" not in data:
        return data.decode()  # most bodies are: no byte order mark, no two bytes a character
    sniffed = json.detect_encoding(data)
    if sniffed == "utf-8-sig" or sniffed.startswith("utf-16"):
        return data.decode(sniffed, "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(_charset(content_type), "replace")


def _charset(content_type: str) -> str:
    found = _CHARSET.search(content_type[:_MAX_LABEL])
    return "latin-1" if found and found[1].lower() in _LATIN_1 else "utf-8"


def _json(text: str) -> Json:
    if _is_too_deep(text):
        raise ValueError("nested too deep")
    trimmed = text.strip(" \t\n\r")
    value: Json
    value, end = _DECODER.raw_decode(trimmed)
    if end < len(trimmed):
        raise ValueError("more than one value")
    if "\\" in text and _ESCAPED_SURROGATE.search(text):
        # Half characters: no store and no URL can hold them.
        return _changed(value, lambda part: _SURROGATE.sub("\ufffd", part))
    return value


def _is_too_deep(text: str) -> bool:
    """Whether brackets nest deeper than 64, or do not match: told without parsing.

    Each round takes away the innermost pairs, so what is left after 64 rounds was deeper.
    """
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text))
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = brackets.replace("[]", "").replace("{}", "")
    return bool(brackets)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number out of range")
    return number


_DECODER = json.JSONDecoder(parse_constant=no_constant, parse_float=_finite)


def _redacted(value: Json, text: str, redact: Callable[[str], str]) -> Json:
    """The value without secrets, in its strings, names and numbers; `text` is what it was read from."""
    # Without an escape the text shows whatever the strings hold, and is searched at once.
    shown = "\n".join(_scalars(value)) if "\\" in text else text
    if redact(shown) == shown:
        return value
    return _changed(value, redact, lambda number: _without(number, redact))


def _scalars(value: Any) -> Iterator[str]:
    """The strings, names and numbers of the value."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield from part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
        else:
            yield str(part)


def _without(number: Json, redact: Callable[[str], str]) -> Json:
    """The number itself, or a string when a secret of digits is in it."""
    digits = json.dumps(number)
    kept = redact(digits)
    return number if kept == digits else kept


def _same(value: Json) -> Json:
    return value


def _changed(value: Any, text: Callable[[str], str], other: Callable[[Json], Json] = _same) -> Json:
    """The value with each string and name as `text` makes it, and all else that is no list or dict as `other` does."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return [_changed(item, text, other) for item in value]
    if isinstance(value, dict):
        return {text(name): _changed(item, text, other) for name, item in value.items()}
    return other(value)
