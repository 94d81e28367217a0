"""What is read off: polls a second, CPU a poll, memory."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.scale import Scale, Skipped

_ROUNDS = 3
_AS_IT_COMES = gc.get_threshold()

Reading = dict[str, float]
"""What a part found out, by name."""


async def window(polls: Callable[[], Awaitable[int]], scale: Scale) -> Reading:
    """Polls a second and CPU a poll (µs) of this process, once every job has been polled, or the patience ends.

    Who begins polls some jobs while others are still to come: that is over after some polls of each.
    """
    if not await until(polls, _ROUNDS * scale.jobs, scale.warm):
        raise Skipped(f"no poll within {scale.warm} s")
    before, cpu, at = await polls(), process_time(), perf_counter()
    await asyncio.sleep(scale.seconds)
    made, cpu, took = await polls() - before, process_time() - cpu, perf_counter() - at
    return {"polls_s": made / took, "cpu_us": cpu * 1e6 / max(made, 1)}


def look_less_often() -> None:
    """Have Python's collector look for garbage less often, as the guide advises: it stops all else meanwhile."""
    gc.set_threshold(100_000)


def look_as_it_comes() -> None:
    """Have it look as often as where nobody says anything."""
    gc.set_threshold(*_AS_IT_COMES)


async def until(polls: Callable[[], Awaitable[int]], enough: int, seconds: float) -> int:
    """Wait until there are so many, this long at most; how many there are."""
    last = perf_counter() + seconds
    while (seen := await polls()) < enough and perf_counter() < last:  # noqa: ASYNC110  # another process counts
        await asyncio.sleep(0.02)
    return seen


async def while_running(work: Awaitable[object], measured: Awaitable[Reading]) -> Reading:
    """Measure while the work goes on, then end it."""
    task = asyncio.ensure_future(work)
    try:
        return await measured
    finally:
        if task.done() and not task.cancelled():
            task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def resident() -> int:
    """Bytes of memory that this process has by now."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        raise Skipped("memory is read from /proc, which is not here")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
