"""Waits in real time: for tests of real sockets and threads, which are few and quick."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tarry import JobResult, JobSpec, Poller
from tarry.store import MemoryStore

T = TypeVar("T")


async def awaited(spec: JobSpec, key: str = "orders", **options: Any) -> JobResult[Any]:
    """The job's end, whatever it is, by a poller of its own with its own HTTP client."""
    store = MemoryStore()
    try:
        async with Poller(store, **options) as poller:
            return await poller.await_job(key, spec, raises=False)
    finally:
        store.close()


def in_real_time(main: Callable[[], Coroutine[Any, Any, T]], seconds: float = 60) -> T:
    """Run to the end; the bound is there for what hangs, and is long for a machine that has much else to do."""

    async def bounded() -> T:
        async with asyncio.timeout(seconds):
            return await main()

    return asyncio.run(bounded())
