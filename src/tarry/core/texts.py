"""Foreign words made fit to keep and to show: one line, bounded, always encodable."""

from __future__ import annotations

import json

from tarry.words import Json

_MARK = "…"
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    0x09: "\\t",
    0x0A: "\\n",
    0x0D: "\\r",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def plain(text: str) -> str:
    """The text on one line: control characters and lone surrogates are shown as escapes."""
    return text.translate(_CONTROLS).encode("utf-8", "backslashreplace").decode("utf-8")


def stored_size(text: str) -> int:
    """How many bytes the text takes as a JSON string, quotes not counted."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "backslashreplace")) - 2


def short(text: str, limit: int) -> str:
    """The text on one line and, stored as JSON, in at most `limit` bytes; a cut shows as "…"."""
    line = plain(text[:limit])  # every character takes a byte at least
    if len(text) <= limit and stored_size(line) <= limit:
        return line
    room = limit - len(_MARK.encode())
    while stored_size(line) > room:
        line = line[: max(0, len(line) - max(1, (stored_size(line) - room) // 4))]
    return line + _MARK


def as_text(value: Json) -> str:
    """A JSON value as text: a text as it is, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__}>"
