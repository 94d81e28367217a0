"""The system clock and the offloads: real time is read in one place, and only forward."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial

import pytest

from tarry.clock import SystemClock
from tarry.offload import ThreadOffload, inline
from tarry.testing.clock import FakeClock
from tarry.words import HOUR, SECOND


def ticking(fake: FakeClock) -> SystemClock:
    """A system clock that reads a fake machine's time."""
    return SystemClock(wall_ns=lambda: fake.now() * 1000, elapsed_ns=lambda: fake.now() * 1000)


def test_now_is_the_wall_clock_in_microseconds() -> None:
    """A fresh clock agrees with the machine's wall clock."""
    before = time.time_ns() // 1000
    now = SystemClock().now()
    assert before - SECOND <= now <= time.time_ns() // 1000 + SECOND


def test_now_ignores_later_changes_of_the_wall_clock() -> None:
    """Only what passed counts: the wall clock is read once, whatever it says later."""
    wall = iter([5_000_000])
    passed = iter([1_000, 4_000, 9_999])
    clock = SystemClock(wall_ns=lambda: next(wall), elapsed_ns=lambda: next(passed))
    assert clock.now() == 5_003
    assert clock.now() == 5_008


def test_now_never_goes_back() -> None:
    """Two readings in a row are in order."""
    clock = SystemClock()
    readings = [clock.now() for _ in range(1000)]
    assert readings == sorted(readings)


def test_now_works_on_the_monotonic_clock() -> None:
    """Where the system cannot count through a suspend, the monotonic clock does."""
    clock = SystemClock(elapsed_ns=time.monotonic_ns)
    assert abs(clock.now() - time.time_ns() // 1000) < 2 * SECOND


def test_sleep_takes_as_long_as_asked() -> None:
    """A long sleep is the sum of its slices, to the microsecond."""
    fake = FakeClock()
    began = fake.now()
    fake.run(lambda: ticking(fake).sleep(2 * HOUR + 1))
    assert fake.now() - began == 2 * HOUR + 1


def test_sleep_ends_within_a_second_of_a_suspend() -> None:
    """Time that passed while the event loop's timers stood still counts as slept."""
    fake, suspended = FakeClock(), 0
    clock = SystemClock(wall_ns=lambda: 0, elapsed_ns=lambda: (fake.now() + suspended) * 1000)

    async def main() -> int:
        nonlocal suspended
        began = fake.now()
        sleeper = asyncio.create_task(clock.sleep(HOUR))
        await fake.sleep(SECOND // 2)
        suspended = 2 * HOUR
        await sleeper
        return fake.now() - began

    assert fake.run(main) <= SECOND


@pytest.mark.parametrize("span", [0, -1, -(10**400)])
def test_sleep_of_nothing_yields_once(span: int) -> None:
    """Zero or less gives others a turn and comes back at once."""
    fake, turns = FakeClock(), list[str]()
    began = fake.now()

    async def main() -> None:
        asyncio.get_running_loop().call_soon(turns.append, "turn")
        await ticking(fake).sleep(span)
        assert turns == ["turn"]

    fake.run(main)
    assert fake.now() == began


@pytest.mark.parametrize("span", [float("nan"), float("inf"), float("-inf")])
def test_sleep_refuses_what_is_not_finite(span: float) -> None:
    """NaN and infinity are an error at once, never a sleep for ever."""
    with pytest.raises(ValueError, match="cannot sleep"):
        asyncio.run(SystemClock().sleep(span))  # type: ignore[arg-type]  # what a caller without types may do


def test_sleep_of_an_absurd_span_can_be_cut() -> None:
    """A span that no float can hold sleeps, and can be cancelled like any other."""
    fake = FakeClock()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(90):
                await ticking(fake).sleep(10**400)

    began = fake.now()
    fake.run(main)
    assert fake.now() - began == 90 * SECOND


def test_thread_offload_runs_everything_on_one_other_thread() -> None:
    """Calls run in order on one thread, named, that is not the loop's."""
    offload, order = ThreadOffload("tarry-test"), list[int]()

    async def main() -> set[str]:
        def work(number: int) -> str:
            order.append(number)
            return threading.current_thread().name

        return set(await asyncio.gather(*[offload(partial(work, number)) for number in range(20)]))

    names = asyncio.run(main())
    offload.close()
    assert len(names) == 1
    assert names.pop().startswith("tarry-test")
    assert order == list(range(20))


def test_thread_offload_passes_errors_on() -> None:
    """What the call raises is what the caller sees."""
    offload = ThreadOffload()

    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await offload(lambda: 1 // 0)

    asyncio.run(main())
    offload.close()


def test_thread_offload_finishes_its_queue_then_refuses() -> None:
    """Closing drains what was queued; later calls are an error; closing twice is fine."""
    offload, done = ThreadOffload(), list[int]()

    async def main() -> None:
        queued = [offload(partial(done.append, number)) for number in range(50)]
        offload.close()
        await asyncio.gather(*queued)
        with pytest.raises(RuntimeError):
            await offload(lambda: None)

    asyncio.run(main())
    offload.close()
    assert done == list(range(50))


def test_inline_offload_calls_right_here() -> None:
    """The inline offload runs on the caller's own thread."""
    assert asyncio.run(inline(threading.get_ident)) == threading.get_ident()
