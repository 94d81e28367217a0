"""Callables with importable names, for `then` and `cancel`; what they were called with is in `CALLS`."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

CALLS: list[Any] = []
TROUBLE: list[BaseException] = []


def note(told: Any) -> None:
    """Remember it; raise what is next in `TROUBLE`."""
    assert threading.current_thread() is not threading.main_thread()
    CALLS.append(told)
    if TROUBLE:
        raise TROUBLE.pop(0)


async def note_async(told: Any) -> None:
    """Remember it, on the event loop."""
    CALLS.append(told)
    if TROUBLE:
        raise TROUBLE.pop(0)


async def hang(told: Any) -> None:
    """Never end."""
    CALLS.append(told)
    await asyncio.Event().wait()


def stop(name: str) -> str:
    """Cancel the job of this name."""
    CALLS.append(name)
    return "stopped"
