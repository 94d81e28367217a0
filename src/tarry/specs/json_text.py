"""JSON text: strict, each name once, and its lines where something is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tarry.core.texts import no_constant
from tarry.specs.document import Way

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:\n]|[^\s{}\[\],:"]+')

_INSIDE: Mapping[str, tuple[int | None]] = {"{": (None,), "[": (0,)}


def read(text: str) -> Any:
    """The value. Raises ValueError that says where it is no JSON, too deep, or has a name twice."""
    try:
        return json.loads(text, parse_constant=no_constant, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("too deep") from None


def lines(text: str) -> Mapping[Way, int]:
    """The line of each part of a text that `read` can read."""
    found: dict[Way, int] = {(): 1}
    line, here = 1, list[str | int | None]()
    for word in _TOKEN.findall(text):
        match word:
            case "\n":
                line += 1
            case "}" | "]":
                here.pop()
            case ",":
                here[-1] = None if isinstance(here[-1], str) else _next(here[-1])
            case ":":
                continue
            case _:
                if here and here[-1] is None:
                    here[-1] = json.loads(word)
                found.setdefault(tuple(step for step in here if step is not None), line)
                here += _INSIDE.get(word, ())
    return found


def _next(position: str | int | None) -> int:
    return position + 1 if isinstance(position, int) else 0


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two values under one name are a mistake, and JSON alone would drop one in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice in one object")
    return found
