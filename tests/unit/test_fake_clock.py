"""Virtual time: long waits take none, in the right order, to the microsecond."""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import threading
from collections import deque
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tarry import testing
from tarry.offload import ThreadOffload
from tarry.testing.clock import FakeClock, NothingToWaitFor, VirtualLoop
from tarry.words import DAY, HOUR, MILLISECOND, SECOND, instant


async def later(seconds: float) -> None:
    """Wait by a timer of asyncio's own."""
    awake = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, awake.set)
    await awake.wait()


def test_starts_where_told() -> None:
    """Text, datetime and microseconds name the same start."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert FakeClock().now() == instant(start)
    assert FakeClock(start).now() == instant(start)
    assert FakeClock(42).now() == 42
    assert FakeClock("2026-01-01T02:00:00+02:00").now() == instant(start)
    assert FakeClock(datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))).now() == instant(start)


def test_refuses_a_start_without_a_zone() -> None:
    """A local time would mean another instant on another machine."""
    with pytest.raises(ValueError, match="zone"):
        FakeClock("2026-01-01T00:00:00")


def test_advance_goes_forward_only_in_whole_microseconds() -> None:
    """Jumps add up exactly; back, or by a fraction, is an error."""
    clock = FakeClock(0)
    assert clock.advance(1) == 1
    assert clock.advance(timedelta(hours=1)) == HOUR + 1
    with pytest.raises(ValueError, match="forward"):
        clock.advance(-1)
    with pytest.raises(TypeError):
        clock.advance(0.5)  # type: ignore[arg-type]  # what a caller without types may do
    assert clock.now() == HOUR + 1


def test_a_sleep_of_two_hours_takes_two_virtual_hours() -> None:
    """The clock stands where the sleep ends, and the result comes back."""
    clock = FakeClock(0)

    async def main() -> str:
        await clock.sleep(2 * HOUR)
        return "done"

    assert clock.run(main) == "done"
    assert clock.now() == 2 * HOUR


def test_timers_and_time_of_the_loop_move_with_the_clock() -> None:
    """What asyncio itself waits by is the clock's."""
    clock = FakeClock(0)

    async def main() -> float:
        await later(1.5)
        return asyncio.get_running_loop().time()

    assert clock.run(main()) == 1.5
    assert clock.now() == 1_500_000


def test_asyncio_timeout_cuts_at_its_virtual_time() -> None:
    """A timeout fires exactly when it should."""
    clock = FakeClock(0)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await clock.sleep(HOUR)

    clock.run(main)
    assert clock.now() == 30 * SECOND


def test_sleepers_wake_in_order_of_time() -> None:
    """Whoever sleeps less wakes first, at its own instant."""
    clock, woken = FakeClock(0), list[tuple[int, int]]()

    async def sleeper(span: int) -> None:
        await clock.sleep(span)
        woken.append((span, clock.now()))

    async def main() -> None:
        await asyncio.gather(*map(sleeper, [3 * HOUR, 1, 5 * SECOND, 400 * DAY]))

    clock.run(main)
    assert woken == [(span, span) for span in (1, 5 * SECOND, 3 * HOUR, 400 * DAY)]


def test_time_stays_exact_over_many_sleeps() -> None:
    """No float drift: many odd microseconds add up to their sum, late in a long life too."""
    clock = FakeClock(0)

    async def main() -> None:
        await clock.sleep(30 * 365 * DAY)
        for _ in range(1000):
            await clock.sleep(333_333)

    clock.run(main)
    assert clock.now() == 30 * 365 * DAY + 333_333_000


def test_time_goes_on_over_two_runs() -> None:
    """A second run starts where the first one ended."""
    clock = FakeClock(0)
    clock.run(lambda: clock.sleep(SECOND))
    clock.run(lambda: clock.sleep(SECOND))
    assert clock.now() == 2 * SECOND


def test_advance_inside_a_run_makes_timers_due() -> None:
    """A jump by hand wakes the sleepers that it passed."""
    clock = FakeClock(0)

    async def main() -> int:
        sleeper = asyncio.create_task(clock.sleep(MILLISECOND))
        await clock.sleep(0)
        clock.advance(HOUR)
        await sleeper
        return clock.now()

    assert clock.run(main) == HOUR


@pytest.mark.parametrize("span", [0, -5])
def test_sleep_of_nothing_yields_once(span: int) -> None:
    """Zero or less gives others a turn and takes no time."""
    clock, turns = FakeClock(0), list[str]()

    async def main() -> None:
        asyncio.get_running_loop().call_soon(turns.append, "other")
        await clock.sleep(span)
        turns.append("main")

    clock.run(main)
    assert turns == ["other", "main"]
    assert clock.now() == 0


@pytest.mark.parametrize("span", [float("nan"), float("inf")])
def test_sleep_refuses_what_is_not_finite(span: float) -> None:
    """A broken span is an error, not a hang."""
    clock = FakeClock()
    with pytest.raises(ValueError, match="cannot sleep"):
        clock.run(lambda: clock.sleep(span))  # type: ignore[arg-type]  # what a caller without types may do


def test_sleep_outside_its_run_is_a_clear_error() -> None:
    """On another event loop nothing would ever wake the sleeper."""
    clock = FakeClock()
    with pytest.raises(RuntimeError, match=r"run\(\)"):
        asyncio.run(clock.sleep(1))
    with pytest.raises(RuntimeError, match=r"run\(\)"):
        FakeClock().run(lambda: clock.sleep(1))


def test_a_cancelled_sleep_leaves_nothing_behind() -> None:
    """Cancelling a sleep frees its timer: time does not jump to it."""
    clock = FakeClock(0)

    async def main() -> None:
        sleeper = asyncio.create_task(clock.sleep(DAY))
        await clock.sleep(SECOND)
        sleeper.cancel()
        await asyncio.wait([sleeper])
        await clock.sleep(SECOND)

    clock.run(main)
    assert clock.now() == 2 * SECOND


def test_a_sleep_cancelled_as_it_ends_is_quiet() -> None:
    """Cancelled in the very turn in which its timer fires, a sleep is cancelled and nothing breaks."""
    clock, cancelled = FakeClock(0), list[bool]()

    async def main() -> None:
        sleeper = asyncio.create_task(clock.sleep(SECOND))
        asyncio.get_running_loop().call_at(1, sleeper.cancel)
        await asyncio.wait([sleeper])
        cancelled.append(sleeper.cancelled())

    clock.run(main)
    assert len(cancelled) == 1


def test_a_deadlock_is_an_error_that_says_where() -> None:
    """Waiting for what never comes fails at once and names the coroutine's line."""
    clock = FakeClock()

    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(NothingToWaitFor, match=r"locks\.py|test_fake_clock\.py"):
        clock.run(main)


def test_an_endless_timer_is_a_deadlock() -> None:
    """An infinite timer never fires, and cancelling it is harmless."""
    clock = FakeClock(0)

    async def cut() -> None:
        asyncio.get_running_loop().call_later(float("inf"), pytest.fail).cancel()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await later(float("inf"))

    clock.run(cut)
    assert clock.now() == SECOND
    with pytest.raises(NothingToWaitFor):
        clock.run(lambda: later(float("inf")))


def test_a_timer_at_nan_is_refused() -> None:
    """A timer without a time is an error."""

    async def main() -> None:
        asyncio.get_running_loop().call_at(float("nan"), print)

    with pytest.raises(ValueError, match="NaN"):
        FakeClock().run(main)


def test_waiting_less_than_a_microsecond_still_moves_time() -> None:
    """A loop of tiny waits reaches its end."""
    clock = FakeClock(0)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < 0.00001:
            await later(1e-9)

    clock.run(main)
    assert clock.now() == 10


def test_leftovers_are_cancelled_at_the_end() -> None:
    """What still runs when main returns is cancelled and gets to clean up, in virtual time."""
    clock, log = FakeClock(0), list[str]()

    async def leftover() -> None:
        try:
            await clock.sleep(DAY)
        finally:
            await clock.sleep(SECOND)
            log.append("cleaned")

    async def main() -> None:
        started = asyncio.create_task(leftover())
        await clock.sleep(0)
        log.append(str(started.done()))

    clock.run(main)
    assert log == ["False", "cleaned"]
    assert clock.now() == SECOND


def test_async_generators_are_closed() -> None:
    """A generator left half-way runs its finally before the loop closes."""
    clock, log = FakeClock(), list[str]()

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    generator = numbers()

    async def main() -> None:
        await anext(generator)

    clock.run(main)
    assert log == ["closed"]


def test_errors_come_through_and_the_clock_stays_usable() -> None:
    """What main raises is what run raises, and the next run works."""
    clock = FakeClock(0)

    async def main() -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        clock.run(main)
    clock.run(lambda: clock.sleep(1))
    assert clock.now() == 1


def test_time_stands_still_while_a_thread_works() -> None:
    """A blocking call takes no virtual time, however long the timers beside it."""
    clock = FakeClock(0)
    offload, gate = ThreadOffload(), threading.Event()

    async def main() -> tuple[int, int]:
        sleeper = asyncio.create_task(clock.sleep(HOUR))
        asyncio.get_running_loop().call_soon(gate.set)
        await offload(gate.wait)
        blocking = clock.now()
        await sleeper
        return blocking, await asyncio.to_thread(clock.now)

    assert clock.run(main) == (0, HOUR)
    offload.close()


def test_a_socket_beside_is_waited_for() -> None:
    """Bytes from another thread arrive, though no timer is set."""
    clock = FakeClock()
    near, far = socket.socketpair()
    near.setblocking(False)

    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        loop.call_soon(threading.Thread(target=far.sendall, args=(b"hello",)).start)
        return await loop.sock_recv(near, 5)

    with near, far:
        assert clock.run(main) == b"hello"


def test_socket_streams_work_in_virtual_time() -> None:
    """A server and a client on one loop talk, with virtual sleeps between."""
    clock = FakeClock(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        await clock.sleep(HOUR)
        writer.write(b"late\n")
        writer.close()

    async def main() -> bytes:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"now\n")
        answer = await reader.readline()
        writer.close()
        server.close()
        return answer

    assert clock.run(main) == b"late\n"
    assert clock.now() >= HOUR
    gc.collect()


class Shuffling(VirtualLoop):
    """Runs what is ready in an order drawn from a seed."""

    def __init__(self, clock: FakeClock, seed: int) -> None:
        self.random = random.Random(seed)
        super().__init__(clock)

    def order(self, ready: deque[asyncio.Handle]) -> None:
        self.random.shuffle(ready)


def interleaving(seed: int) -> str:
    """In which order five equal sleepers wake under this seed."""
    clock, woken = FakeClock(0, loop=lambda clock: Shuffling(clock, seed)), list[str]()

    async def sleeper(name: str) -> None:
        await clock.sleep(SECOND)
        woken.append(name)

    async def main() -> None:
        await asyncio.gather(*map(sleeper, "abcde"))

    clock.run(main)
    assert clock.now() == SECOND
    return "".join(woken)


def test_a_subclass_can_shuffle_by_seed() -> None:
    """Another seed gives another order, the same seed the same one."""
    orders = [interleaving(seed) for seed in range(20)]
    assert orders == [interleaving(seed) for seed in range(20)]
    assert len(set(orders)) > 5
    assert all(sorted(order) == list("abcde") for order in orders)


def test_a_timer_in_the_past_runs_at_the_next_turn() -> None:
    """Late is at once, and moves no time."""
    clock, ran = FakeClock(0), asyncio.Event()

    async def main() -> None:
        await clock.sleep(5 * SECOND)
        asyncio.get_running_loop().call_at(1, ran.set)
        await ran.wait()

    clock.run(main)
    assert clock.now() == 5 * SECOND


def test_the_public_names_are_there() -> None:
    """Every exported name resolves, and the list is sorted and whole; any other is an AttributeError."""
    assert testing.__all__ == sorted(testing.__all__)
    assert set(testing.__all__) == set(testing._HOMES)
    assert all(getattr(testing, name).__name__ == name for name in testing.__all__)
    with pytest.raises(AttributeError, match="FakeClok"):
        getattr(testing, "FakeClok")  # noqa: B009  # a checker would see through the plain spelling
