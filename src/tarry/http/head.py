"""From the head of a response to its headers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from tarry.http.body import BodyError
from tarry.words import ErrorKind

MAX_HEADERS = 64 << 10
"""Bytes of the headers of an answer."""

_SHORT = 50  # characters of a header's name that is worth to be remembered
_NOT_KEPT = frozenset({"set-cookie", "set-cookie2"})


def read_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by lower-case name; several of one name are joined by commas. `BodyError` where they are too large."""
    found: dict[str, str] = {}
    size = 0
    for name_, value_ in raw:
        size += len(name_) + len(value_)
        name, value = _name(name_) if len(name_) <= _SHORT else _read_name(name_), value_.decode("latin-1")
        if name not in _NOT_KEPT:
            found[name] = f"{found[name]}, {value}" if name in found else value
    if size > MAX_HEADERS:
        raise BodyError(ErrorKind.TOO_LARGE, f"the headers are larger than {MAX_HEADERS} bytes")
    return found


def _read_name(name: bytes) -> str:
    return name.decode("latin-1").lower()


_name = lru_cache(512)(_read_name)  # services say the same names again and again
