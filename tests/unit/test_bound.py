"""The bound of a call in time: what it cuts, and whose cancellation goes through."""

from __future__ import annotations

import asyncio

import pytest

from tarry.http.bound import Bound

LONG = 3_600.0


def test_what_takes_too_long_is_cut() -> None:
    """With a `TimeoutError`, and the task goes on as if nobody had cancelled it."""

    async def call() -> tuple[bool, int]:
        bound = Bound(0.0)
        with pytest.raises(TimeoutError), bound:
            await asyncio.Event().wait()
        task = asyncio.current_task()
        assert task is not None
        return bound.is_over, task.cancelling()

    assert asyncio.run(call()) == (True, 0)


def test_what_is_quick_is_left_alone() -> None:
    """Its result and its errors come through, and nothing is left behind that would cut the task later."""

    async def call() -> bool:
        bound = Bound(LONG)
        with pytest.raises(KeyError), bound:
            raise KeyError("mine")
        return bound.is_over or not bound._timer.cancelled()

    assert asyncio.run(call()) is False


@pytest.mark.parametrize("seconds", [LONG, 0.0])
def test_a_cancellation_from_elsewhere_goes_through(seconds: float) -> None:
    """Also one that comes together with the bound's own."""

    async def call() -> bool:
        started = asyncio.Event()

        async def bounded() -> None:
            with Bound(seconds):
                started.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(bounded())
        await started.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(call())


def test_only_a_task_has_a_bound() -> None:
    """Outside of one there is nothing to cut."""

    async def call() -> str:
        problem: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def outside() -> None:
            with pytest.raises(RuntimeError) as caught, Bound(LONG):
                pass
            problem.set_result(str(caught.value))

        asyncio.get_running_loop().call_soon(outside)
        return await problem

    assert "none" in asyncio.run(call())
