"""A worker's calls carry the right time, however long they wait for their turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tarry.runtime.units import Units
from tarry.runtime.worker import Worker
from tarry.store import MemoryStore
from tarry.testing import FakeClock
from tarry.words import SECOND


class Graves(MemoryStore):
    """Keeps the times at which it was asked to bury."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_at: list[int] = []

    def bury(self, worker: int, now: int) -> int:
        self.asked_at.append(now)
        return super().bury(worker, now)


def test_burying_takes_the_time_at_which_it_runs() -> None:
    """A poll may start and its process die while the call waits: the floor counts from no earlier than the call."""
    clock, store = FakeClock(), Graves()

    async def busy(work: Callable[[], Any], /) -> Any:
        await clock.sleep(3 * SECOND)
        return work()

    async def main() -> None:
        worker = Worker(store, Units(busy, clock), clock, lambda: "w1", 30 * SECOND)
        store.open(clock.now())
        await worker.keep()
        asked = clock.now()
        await worker.bury()
        assert store.asked_at == [asked + 3 * SECOND]

    clock.run(main)
