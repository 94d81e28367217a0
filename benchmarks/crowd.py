"""Tarry beside very many jobs that only wait in the store."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import monotonic

from benchmarks.jobs import ALONE, BUSY, Scripted, fill, hours, spec_of, sqlite_file
from benchmarks.load import serving
from benchmarks.meter import Reading, look_less_often, resident, while_running, window
from benchmarks.restart import restarted
from benchmarks.scale import Scale
from tarry import Poller
from tarry.clock import SystemClock


async def among(scale: Scale) -> Reading:
    """Two workers at once poll some jobs quickly, one beside few jobs that wait, one beside very many: CPU, memory.

    In the same seconds, because a process that mostly rests costs now this and now that.
    """
    with sqlite_file() as few, sqlite_file() as many, ProcessPoolExecutor(2, get_context("spawn")) as processes:
        for store, waiting in ((few, scale.few), (many, scale.many)):
            due = SystemClock().now() + hours(1)
            await fill(store, spec_of(ALONE, every="1h"), waiting, due, hours(1), "waiting")
        among_few, among_many = processes.map(_worked, (few, many), (scale, scale))
    found = {f"{name}_few": value for name, value in among_few.items()}
    found |= {f"{name}_many": value for name, value in among_many.items()}
    return found | {"more": scale.many - scale.few}


def _worked(store: str, scale: Scale) -> Reading:
    look_less_often()
    return asyncio.run(_working(store, scale))


async def _working(store: str, scale: Scale) -> Reading:
    transport = Scripted()
    # Due only now: what is overdue would be spread out.
    await fill(store, spec_of(ALONE, every="200ms"), scale.jobs // 5, transport.clock.now(), 0, "busy")
    async with Poller(store, transport=transport, politeness=BUSY) as poller:
        reading = await while_running(poller.run(), window(transport.polls, scale))
        gc.collect()
        return reading | {"rss": resident()}


async def first_poll(scale: Scale) -> Reading:
    """A start beside very many jobs that wait: until the one that is due is polled."""
    return await _restart(scale.many, 1)


async def overdue_some(scale: Scale) -> Reading:
    """A restart with many overdue among some that wait: until all are polled and written down."""
    return await _restart(scale.some, scale.overdue)


async def overdue_many(scale: Scale) -> Reading:
    """The same among very many."""
    return await _restart(scale.many, scale.overdue)


async def _restart(waiting: int, overdue: int) -> Reading:
    with sqlite_file() as store, serving() as service:
        now, spec = SystemClock().now(), spec_of(service.template(), every="1h")
        await fill(store, spec, waiting, now + hours(1), hours(1), "waiting")
        await fill(store, spec, overdue, now - hours(1), hours(1) // 2, "overdue")
        begun = monotonic()
        found = await asyncio.to_thread(restarted, store, overdue)
        found["first_s"] = await service.first()
    if found["done"] != overdue:
        raise RuntimeError(f"{found['done']} of {overdue} overdue jobs were polled")
    return {name: at - begun for name, at in found.items() if name != "done"}
