"""The bounds of calls in time: what they cut, and whose cancellation goes through."""

from __future__ import annotations

import asyncio

import pytest

from tarry.http.bound import Bounds

LONG = 3_600.0


async def hang() -> None:
    """For ever."""
    await asyncio.Event().wait()


def test_what_takes_too_long_is_cut() -> None:
    """With a `TimeoutError`, and the task goes on as if nobody had cancelled it."""

    async def call() -> tuple[bool, int]:
        bound = Bounds().of(0.0)
        with pytest.raises(TimeoutError), bound:
            await hang()
        current = asyncio.current_task()
        assert current is not None
        return bound.is_over, current.cancelling()

    assert asyncio.run(call()) == (True, 0)


def test_what_is_quick_is_left_alone() -> None:
    """Its result and its errors come through, and it is not cut later on."""

    async def call() -> bool:
        bounds = Bounds()
        bound = bounds.of(0.0)
        with pytest.raises(KeyError), bound:
            raise KeyError("mine")
        with pytest.raises(TimeoutError), bounds.of(0.001):
            await hang()
        return bound.is_over

    assert asyncio.run(call()) is False


def test_each_has_its_own_time() -> None:
    """Of one length or another, begun together or later: all are cut, and those that came first before the others."""

    async def call() -> list[str]:
        bounds, cut = Bounds(), []

        async def bounded(name: str, seconds: float, after: str | None = None) -> None:
            while after not in {None, *cut}:
                with pytest.raises(TimeoutError), bounds.of(0.001):
                    await hang()
            with pytest.raises(TimeoutError), bounds.of(seconds):
                await hang()
            cut.append(name)

        await asyncio.gather(
            bounded("third", 0.02, after="first"),
            bounded("first", 0.01),
            bounded("second", 0.01),
            return_exceptions=True,
        )
        return cut

    assert asyncio.run(call()) == ["first", "second", "third"]


def test_a_length_that_nobody_has_any_more_is_forgotten() -> None:
    """Once its timer has rung: near a deadline each call has its own."""

    async def call() -> int:
        bounds = Bounds()
        for seconds in (0.001, 0.002, 0.003):
            with bounds.of(seconds):
                pass
        with pytest.raises(TimeoutError), bounds.of(0.004):
            await hang()
        return len(bounds._lines)

    assert asyncio.run(call()) == 0


def test_bounds_hold_in_another_loop() -> None:
    """The timers of the loop before ring no more."""
    bounds, length = Bounds(), 0.02

    async def leave_a_timer() -> None:
        with bounds.of(length):
            pass

    async def call() -> None:
        with pytest.raises(TimeoutError), bounds.of(length):
            await hang()

    asyncio.run(leave_a_timer())
    asyncio.run(call())


@pytest.mark.parametrize("seconds", [LONG, 0.0])
def test_a_cancellation_from_elsewhere_goes_through(seconds: float) -> None:
    """Also one that comes together with the bound's own."""

    async def call() -> bool:
        started = asyncio.Event()

        async def bounded() -> None:
            with Bounds().of(seconds):
                started.set()
                await hang()

        running = asyncio.create_task(bounded())
        await started.wait()
        running.cancel()
        await asyncio.wait([running])
        return running.cancelled()

    assert asyncio.run(call())


def test_only_a_task_has_a_bound() -> None:
    """Outside of one there is nothing to cut."""

    async def call() -> str:
        problem: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def outside() -> None:
            with pytest.raises(RuntimeError) as caught:
                Bounds().of(LONG)
            problem.set_result(str(caught.value))

        asyncio.get_running_loop().call_soon(outside)
        return await problem

    assert "none" in asyncio.run(call())
