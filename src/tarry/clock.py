"""The only reader of real time."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from functools import partial

from tarry.words import SECOND, Instant, Micros

_SLICE: Micros = SECOND
_NANOS_PER_MICRO = 1_000


_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)

_elapsed_ns: Callable[[], int] = time.monotonic_ns if _BOOTTIME is None else partial(time.clock_gettime_ns, _BOOTTIME)
"""Nanoseconds since some start, forward only; through a suspend where the system can tell."""


class SystemClock:
    """The clock of this machine, as a `Clock`.

    The wall clock is read once, when the instance is made; from then on time is what has
    really passed, a suspended machine included. It goes forward only, and
    setting the wall clock back or forth does not move it.

    `wall_ns` and `elapsed_ns` are where it reads: nanoseconds since the epoch, and since any start.
    """

    def __init__(
        self,
        *,
        wall_ns: Callable[[], int] = time.time_ns,
        elapsed_ns: Callable[[], int] = _elapsed_ns,
    ) -> None:
        self._elapsed_ns = elapsed_ns
        self._base_ns = wall_ns() - elapsed_ns()

    def now(self) -> Instant:
        """Microseconds UTC, never less than before."""
        return (self._base_ns + self._elapsed_ns()) // _NANOS_PER_MICRO

    async def sleep(self, span: Micros) -> None:
        """Sleep this long; zero or less yields once.

        A span of any size works. Raises ValueError for one that is not finite.
        """
        require_finite(span)
        end = self.now() + span
        await asyncio.sleep(0 if span <= 0 else min(span, _SLICE) / SECOND)
        # The event loop's timers stand still while the machine is suspended: short
        # slices notice within a second that the time is over.
        while (left := end - self.now()) > 0:  # noqa: ASYNC110  # it waits for time itself, which sets no event
            await asyncio.sleep(min(left, _SLICE) / SECOND)


def require_finite(span: float) -> None:
    """Raise ValueError for NaN and the infinities, which would sleep for ever or not at all."""
    if span != span or span in (math.inf, -math.inf):  # noqa: PLR0124  # isfinite() overflows on a huge int
        raise ValueError(f"cannot sleep for {span} microseconds")
