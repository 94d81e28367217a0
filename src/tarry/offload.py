"""Where blocking calls run: on a thread of their own, or right here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class ThreadOffload:
    """An `Offload` with one dedicated thread: calls run one after another, in order.

    A call that has begun ends, also when whoever awaits it is cancelled.
    `name` is what the thread is called.
    """

    def __init__(self, name: str = "tarry-store") -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        """Queue the call at once. Raises RuntimeError after `close`."""
        return asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """Finish what is queued, then end the thread; blocks meanwhile. May be called twice."""
        self._executor.shutdown(wait=True)


async def inline(work: Callable[[], T], /) -> T:
    """An `Offload` that calls right here: for work that never waits, such as a store in memory."""
    return work()
