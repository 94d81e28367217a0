"""Foreign words made fit to keep and to show: one line, bounded, always encodable."""

from __future__ import annotations

import json
import math
import re
from typing import NoReturn

from pydantic_core import to_json

from tarry.words import Json

_MARK = "…"
_DEEPEST = 100
MAX_BITS = 14_000
"""Bits of the largest whole number: about 4,200 decimal digits; Python refuses to print or read much more."""

_HUGE_NUMBER = re.compile(rb"[0-9]{4000}")

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    0x09: "\\t",
    0x0A: "\\n",
    0x0D: "\\r",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_SORTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True).encode


def plain(text: str) -> str:
    """The text on one line: control characters and lone surrogates are shown as escapes."""
    return text if text.isascii() and text.isprintable() else storable_text(text.translate(_CONTROLS))


def stored_size(text: str) -> int:
    """How many bytes the text takes as a JSON string, quotes not counted."""
    return len(as_json_text(text).encode("utf-8", "backslashreplace")) - 2


def short(text: str, limit: int) -> str:
    """The text on one line and, stored as JSON, in at most `limit` bytes; a cut shows as "…"."""
    if len(text) <= limit and text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text  # as it is, like most
    line = plain(text[:limit])  # every character takes a byte at least
    if len(text) <= limit and stored_size(line) <= limit:
        return line
    room = limit - len(_MARK.encode())
    while stored_size(line) > room:
        line = line[: max(0, len(line) - max(1, (stored_size(line) - room) // 4))]
    return line + _MARK


def as_text(value: Json) -> str:
    """A JSON value as text: a text as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else as_json_text(storable(value))


def as_json_text(value: object, *, sort_keys: bool = False) -> str:
    """Compact JSON text; raises ValueError for NaN and infinities."""
    return _SORTED(value) if sort_keys else _COMPACT(value)


def plain_json_text(value: object) -> str:
    """As `as_json_text`, and several times as fast, for plain JSON without NaN and infinities."""
    try:
        return to_json(value).decode()
    except ValueError:  # a lone surrogate
        return _COMPACT(value)


def no_constant(name: str) -> NoReturn:
    """Refuses NaN and the infinities, which JSON does not have: for `json.loads` as its `parse_constant`."""
    raise ValueError(f"{name} is no JSON")


def bounded(value: object, limit: int) -> tuple[Json, bool]:
    """The value as it can be stored in `limit` bytes, and whether that is all of it; a cut one is a text."""
    safe = storable(value)
    text = as_text(safe).encode()
    if len(text) <= limit:
        return safe, True
    return text[:limit].decode("utf-8", "ignore") + f"… [cut, {len(text)} bytes]", False


def bounded_text(value: object, limit: int) -> tuple[str, bool]:
    """The value as JSON text of what can be stored in `limit` bytes, and whether that is all of it, as `bounded`."""
    try:
        text = to_json(value, inf_nan_mode="null")
        is_whole = len(text) <= limit and _HUGE_NUMBER.search(text) is None
        if is_whole and text.count(b"[") + text.count(b"{") < _DEEPEST:
            return text.decode(), True
    except ValueError:
        pass  # it holds what JSON text cannot
    safe, is_whole = bounded(value, limit)
    return _COMPACT(safe), is_whole


def storable(value: object, depth: int = 0) -> Json:
    """The value without what JSON text cannot hold: NaN, infinities, broken characters, endless depth."""
    if not isinstance(value, list | tuple | dict):
        return _storable_scalar(value)
    if depth >= _DEEPEST:
        return _MARK
    if isinstance(value, dict):
        return {storable_text(str(name)): storable(item, depth + 1) for name, item in value.items()}
    return [storable(item, depth + 1) for item in value]


def _storable_scalar(value: object) -> Json:
    match value:
        case None | bool():
            return value
        case str():
            return storable_text(value)
        case int():
            return value if value.bit_length() <= MAX_BITS else None
        case float():
            return value if math.isfinite(value) else None
        case _:
            return f"<{type(value).__name__}>"


def storable_text(text: str) -> str:
    """The text with lone surrogates shown as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
