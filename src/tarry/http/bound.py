"""The bounds of calls in time."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Bounds:
    """Makes bounds. Those of one length share a timer, as nearly all calls end long before it rings."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lines: dict[float, _Line] = {}

    def of(self, seconds: float) -> Bound:
        """A bound of so many seconds, for the current task and one block."""
        current, loop = asyncio.current_task(), asyncio.get_running_loop()
        if current is None:
            raise RuntimeError("a bound cuts a task; there is none")
        if loop is not self._loop:
            self._loop, self._lines = loop, {}  # the timers of a loop that is over ring no more
        line = self._lines.get(seconds)
        if line is None:
            line = self._lines[seconds] = _Line(loop, seconds, self._lines)
        return Bound(line, current)


class Bound:
    """Cuts whatever runs in its block for too long, with a `TimeoutError`.

    It does what `asyncio.timeout` does at a fraction of its cost; it cannot be moved.
    """

    __slots__ = ("_before", "_current", "_line", "is_over")

    def __init__(self, line: _Line, current: asyncio.Task[object]) -> None:
        self._line = line
        self._current = current
        self._before = 0
        self.is_over = False

    def __enter__(self) -> None:
        self._before = self._current.cancelling()
        self._line.join(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._line.leave(self)
        # A cancellation from elsewhere goes through, also one that came together with ours.
        if self.is_over and self._current.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def cut(self) -> None:
        """The time is over."""
        self.is_over = True
        self._current.cancel()


class _Line:
    """Bounds of one length under way: who came first is the first whose time is over."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, lines: dict[float, _Line]) -> None:
        self._loop = loop
        self._seconds = seconds
        self._lines = lines
        self._ends: dict[Bound, float] = {}
        self._is_timed = False

    def join(self, bound: Bound) -> None:
        """Its time begins."""
        end = self._ends[bound] = self._loop.time() + self._seconds
        if not self._is_timed:
            self._is_timed = True
            self._loop.call_at(end, self._ring)

    def leave(self, bound: Bound) -> None:
        """Its block is left; the timer is not touched, it finds out when it rings."""
        self._ends.pop(bound, None)

    def _ring(self) -> None:
        """Cut those whose time is over, and ring again for the next."""
        while self._ends:
            bound, end = next(iter(self._ends.items()))
            if end > self._loop.time():
                self._loop.call_at(end, self._ring)
                return
            del self._ends[bound]
            bound.cut()
        self._is_timed = False
        self._lines.pop(self._seconds, None)
