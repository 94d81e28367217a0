"""The bound of a call in time."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Bound:
    """Cuts whatever runs in its block for longer than so many seconds, with a `TimeoutError`.

    What `asyncio.timeout` does, at a third of its cost: each poll has one. It can be entered once, and not be moved.
    """

    __slots__ = ("_before", "_seconds", "_task", "_timer", "is_over")

    _task: asyncio.Task[object]
    _timer: asyncio.TimerHandle

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.is_over = False

    def __enter__(self) -> None:
        current = asyncio.current_task()
        if current is None:
            raise RuntimeError("a bound cuts a task; there is none")
        self._task = current
        self._before = current.cancelling()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._cut)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._timer.cancel()
        # A cancellation from elsewhere goes through, also one that came together with ours.
        if self.is_over and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _cut(self) -> None:
        self.is_over = True
        self._task.cancel()
