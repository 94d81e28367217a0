"""Reading what was stored: nothing is taken for granted, and nothing is guessed at."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from tarry.core.texts import no_constant
from tarry.errors import CheckpointError

VERSION = 1

T = TypeVar("T")


def parsed(text: str, what: str) -> Any:
    """JSON text as a value. Raises `CheckpointError`."""
    try:
        return json.loads(text, parse_constant=no_constant)
    except (ValueError, RecursionError, TypeError) as error:
        raise CheckpointError(f"{what}: damaged: {error}") from error


def versioned(text: str, what: str) -> dict[str, Any]:
    """The fields of a versioned text of this version. Raises `CheckpointError`."""
    fields = parsed(text, what)
    if not isinstance(fields, dict) or not isinstance(fields.get("v"), int):
        raise CheckpointError(f"{what}: damaged: it has no version")
    version = fields.pop("v")
    if version != VERSION:
        raise CheckpointError(f"{what}: has version {version}; this version of Tarry reads {VERSION}")
    return fields


def read(name: str, reader: Callable[[Any], T], value: object) -> T:
    """What the reader makes of the value. Raises `CheckpointError` for what it refuses."""
    try:
        return reader(value)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{name}: damaged: {error}") from error


def whole(value: object) -> int:
    """A whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError(f"expected a whole number, got {type(value).__name__}")


def count(value: object) -> int:
    """A whole number, 0 or more."""
    count = whole(value)
    if count < 0:
        raise ValueError(f"expected a count, got {count}")
    return count


def flag(value: object) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    raise TypeError(f"expected true or false, got {type(value).__name__}")


def text(value: object) -> str:
    """A text."""
    if isinstance(value, str):
        return value
    raise TypeError(f"expected a text, got {type(value).__name__}")


def items(value: object) -> list[Any]:
    """A list."""
    if isinstance(value, list):
        return value
    raise TypeError(f"expected a list, got {type(value).__name__}")


def texts(value: object) -> dict[str, str]:
    """Texts by name."""
    if isinstance(value, dict):
        return {text(name): text(item) for name, item in value.items()}
    raise TypeError(f"expected texts by name, got {type(value).__name__}")


def optional(reader: Callable[[object], T]) -> Callable[[object], T | None]:
    """A reader that takes null too."""
    return lambda value: None if value is None else reader(value)
