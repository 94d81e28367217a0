"""A worker's calls carry the right time, however long they wait for their turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tarry.errors import StoreUnavailable
from tarry.runtime.units import Units
from tarry.runtime.worker import SHORTEST_LEASE, Worker
from tarry.store import MemoryStore, servers, sqlite
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


def test_a_worker_buried_before_it_knew_of_itself_registers_anew() -> None:
    """A registration whose answer came later than its lease is made again, under a name not used before."""
    clock, store, names = FakeClock(), MemoryStore(), iter(["w1", "w2"])
    calls = 0

    async def deaf(work: Callable[[], Any], /) -> Any:
        nonlocal calls
        calls += 1
        answer = work()
        if calls > 1:
            return answer
        await clock.sleep(60 * SECOND)
        other = store.register("other", clock.now(), 30 * SECOND)
        store.bury(other, clock.now())
        raise StoreUnavailable("the answer was lost")

    async def main() -> None:
        worker = Worker(store, Units(deaf, clock), clock, lambda: next(names), 30 * SECOND)
        store.open(clock.now())
        assert await worker.keep()
        assert worker.id is not None
        assert worker.may_send(clock.now())
        assert store.renew(worker.id, clock.now(), 30 * SECOND)

    clock.run(main)


def test_a_store_call_that_gives_up_leaves_the_time_to_renew() -> None:
    """The longest wait of each store, after a third of the shortest lease, ends before the lease does."""
    silent = servers.ANSWER_SECONDS + servers.CONNECT_SECONDS
    for seconds in (silent, sqlite.BUSY_SECONDS):
        assert seconds <= 10
        assert seconds * SECOND + 10 * SECOND <= SHORTEST_LEASE
    assert max(servers.STATEMENT_SECONDS, servers.LOCK_SECONDS) < servers.ANSWER_SECONDS
