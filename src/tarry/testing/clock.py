"""Time that jumps: a clock and an event loop for tests.

`FakeClock.run` runs a coroutine on an event loop whose time is the clock's. When
nothing is left to do but wait, the clock jumps to the next timer, so that
`asyncio.sleep`, `asyncio.timeout` and `clock.sleep` of any length take no time, in the right order.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import selectors
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from contextvars import Context
from datetime import datetime, timedelta
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from tarry.clock import require_finite
from tarry.words import SECOND, Instant, Micros, instant, micros

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_Events = list[tuple[selectors.SelectorKey, int]]
_PATIENCE = 1.0
"""Real seconds to wait for a socket when nothing else can wake the loop."""


class NothingToWaitFor(RuntimeError):
    """Everything waits, and no timer, thread or socket can ever wake it: a deadlock in the test."""


class FakeClock:
    """A `Clock` whose time passes only in jumps, exact to the microsecond.

    - `start`: an ISO 8601 text, an aware `datetime` or microseconds UTC.
    - `loop`: makes the event loop for `run`; a subclass of `VirtualLoop`, for instance.

    Deterministic: the same program sees the same times. While a call runs
    in a thread (`asyncio.to_thread`, an executor), time stands still.
    """

    def __init__(
        self,
        start: str | datetime | Instant = "2026-01-01T00:00:00Z",
        *,
        loop: Callable[[FakeClock], VirtualLoop] | None = None,
    ) -> None:
        self._now = _instant(start)
        self._loop = loop or VirtualLoop

    def now(self) -> Instant:
        """Microseconds UTC."""
        return self._now

    def advance(self, span: Micros | timedelta) -> Instant:
        """Jump ahead (whole microseconds or a `timedelta`, at least 0) and tell the new time.

        Inside a running loop, timers that became due run at its next turn.
        """
        ahead = micros(span) if isinstance(span, timedelta) else index(span)
        if ahead < 0:
            raise ValueError(f"time goes forward only, got {span!r}")
        self._now += ahead
        return self._now

    async def sleep(self, span: Micros) -> None:
        """Sleep this long; zero or less yields once. Works inside `run` only, else RuntimeError."""
        require_finite(span)
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualLoop) or loop.clock is not self:
            raise RuntimeError("this clock moves only inside its own run(): await clock.sleep() there")
        if span <= 0:
            await asyncio.sleep(0)
        else:
            await loop.sleep_until(self._now + span)

    def run(self, main: Coroutine[Any, Any, T] | Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run to the end and give the result, as `asyncio.run` does, in virtual time.

        What is left at the end is cancelled, and async generators are closed. May be
        called again: time goes on where it stood. Raises `NothingToWaitFor` instead of hanging.
        """
        with asyncio.Runner(loop_factory=lambda: self._loop(self)) as runner:
            return runner.run(main if isinstance(main, Coroutine) else main())


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop whose time is a `FakeClock`'s. Sockets, threads and signals are real.

    Subclass it and override `order` to try other interleavings.
    """

    # asyncio's own queues: due timers are moved by hand, so that `order` sees them too.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self._origin = clock.now()
        self._in_threads = 0
        super().__init__(_Turnstile(selectors.DefaultSelector(), self._turn))
        # asyncio runs timers this much early; its nanosecond would vanish in the rounding of a late float.
        self._clock_resolution = 0.5 / SECOND

    def order(self, ready: deque[asyncio.Handle]) -> None:
        """Reorder, in place, what runs in this turn; called before every turn. Does nothing by default.

        `ready` holds callbacks and due timers; what sockets woke comes after it.
        """

    def time(self) -> float:
        """Seconds since the loop was made."""
        return (self.clock.now() - self._origin) / SECOND

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """As in asyncio, on a whole microsecond, and later than now when asked for later."""
        if math.isnan(when):
            raise ValueError("a timer needs a time, not NaN")
        if math.isinf(when):
            return asyncio.TimerHandle(when, callback, args, self, context)  # never runs, can be cancelled
        ticks = round(when * SECOND)
        if when > self.time():
            ticks = max(ticks, self.clock.now() - self._origin + 1)
        return super().call_at(ticks / SECOND, callback, *args, context=context)

    async def sleep_until(self, due: Instant) -> None:
        """Sleep to exactly this instant of the clock."""
        awake = self.create_future()
        timer = self.call_at((due - self._origin) / SECOND, _wake, awake)
        try:
            await awake
        finally:
            timer.cancel()

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """As in asyncio; time stands still until the call is done."""
        future = super().run_in_executor(executor, func, *args)
        self._in_threads += 1
        future.add_done_callback(self._thread_done)
        return future

    async def shutdown_default_executor(self, *args: Any, **kwargs: Any) -> None:
        """As in asyncio; a thread joins the others meanwhile."""
        self._in_threads += 1
        try:
            await super().shutdown_default_executor(*args, **kwargs)
        finally:
            self._in_threads -= 1

    def _thread_done(self, _: asyncio.Future[Any]) -> None:
        self._in_threads -= 1

    def _turn(self, real: selectors.BaseSelector, timeout: float | None) -> _Events:
        events = self._wait(real, timeout)
        self._collect_due()
        self.order(self._ready)
        return events

    def _wait(self, real: selectors.BaseSelector, timeout: float | None) -> _Events:
        """Instead of waiting, jump to the next timer."""
        events = real.select(0)
        if events or (timeout is not None and timeout <= 0):
            return events
        if self._in_threads:
            return real.select(None)
        if timeout is not None:
            self.clock.advance(max(1, round(timeout * SECOND)))
            return events
        # The loop's own wake-up pipe is always there; anything more is a socket that may still answer.
        events = real.select(_PATIENCE) if len(real.get_map()) > 1 else events
        if not events:
            raise NothingToWaitFor(self._stuck())
        return events

    def _collect_due(self) -> None:
        limit = self.time() + self._clock_resolution
        while self._scheduled and self._scheduled[0].when() < limit:
            timer = heapq.heappop(self._scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]  # noqa: SLF001  # asyncio's mark of "in the heap"
            self._ready.append(timer)

    def _stuck(self) -> str:
        places = sorted(_place(job) for job in asyncio.all_tasks(self))
        return "everything waits and nothing can wake it: " + ("; ".join(places) or "no coroutine is left")


class _Turnstile(selectors.BaseSelector):
    """A selector that lets the loop decide how to wait; all else goes to the real one."""

    def __init__(
        self,
        real: selectors.BaseSelector,
        turn: Callable[[selectors.BaseSelector, float | None], _Events],
    ) -> None:
        self._real = real
        self._turn = turn

    def select(self, timeout: float | None = None) -> _Events:
        return self._turn(self._real, timeout)

    def register(self, fileobj: FileDescriptorLike, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: FileDescriptorLike, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


def _instant(value: str | datetime | Instant) -> Instant:
    if isinstance(value, int):
        return value
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if moment.tzinfo is None:
        raise ValueError(f"say in which zone the clock starts: {value!r} has none; add Z for UTC")
    return instant(moment)


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def _place(job: asyncio.Task[Any]) -> str:
    """Where a coroutine waits: its name, file and line."""
    frames = job.get_stack(limit=1)
    where = f" at {frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else ""
    return f"{job.get_name()}{where}"
