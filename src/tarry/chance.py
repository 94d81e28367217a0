"""The only source of randomness: names that nobody used before."""

from __future__ import annotations

from uuid import uuid4


def token() -> str:
    """32 hexadecimal digits, never seen before."""
    return uuid4().hex
