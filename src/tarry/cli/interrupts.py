"""SIGINT and SIGTERM as a cancellation, so that jobs and children are given back in order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast


@contextmanager
def interruptible() -> Iterator[None]:
    """While inside, SIGINT and SIGTERM cancel the current coroutine instead of ending the process."""
    loop = asyncio.get_running_loop()
    current = cast("asyncio.Task[Any]", asyncio.current_task())
    caught = []
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, current.cancel)
        # Windows, or not the main thread: Ctrl-C is a KeyboardInterrupt there.
        except (NotImplementedError, RuntimeError, ValueError):
            continue
        caught.append(number)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
