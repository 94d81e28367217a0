"""Begins what goes on beside the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def begin(work: Coroutine[Any, Any, T], *, name: str, surroundings: Context | None = None) -> asyncio.Task[T]:
    """Have this done from the loop's next turn on, in these contextvars or a copy of the current ones.

    Where the application has a task factory it is passed by: what an eager one makes would have begun, and might be
    over, before whoever begins it has written down that there is something.
    """
    loop = asyncio.get_running_loop()
    if loop.get_task_factory() is None:
        return loop.create_task(work, name=name, context=surroundings)
    return asyncio.Task(work, loop=loop, name=name, context=surroundings)
