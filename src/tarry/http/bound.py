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
        line = self._line
        line.ends[self] = line.loop.time() + line.seconds
        if not line.is_timed:
            line.begin()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._line.ends.pop(self, None)  # the timer is not touched, it finds out when it rings
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
        self.loop = loop
        self.seconds = seconds
        self._lines = lines
        self.ends: dict[Bound, float] = {}
        self.is_timed = False

    def begin(self) -> None:
        """Its first bound was entered."""
        self.is_timed = True
        self.loop.call_later(self.seconds, self._ring)

    def _ring(self) -> None:
        """Cut those whose time is over, and ring again for the next."""
        while self.ends:
            bound, end = next(iter(self.ends.items()))
            if end > self.loop.time():
                self.loop.call_at(end, self._ring)
                return
            del self.ends[bound]
            bound.cut()
        self.is_timed = False
        self._lines.pop(self.seconds, None)
