"""Units of work: store calls that are never cut short, and repeated while the store is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_never,
    wait_exponential,
)

from tarry.errors import StoreUnavailable
from tarry.ports import Clock, Offload
from tarry.words import SECOND, Instant

T = TypeVar("T")

log = logging.getLogger("tarry.store")

_LONGEST_PAUSE = 5.0
_PATIENCE = 30 * SECOND


async def drained(awaitable: Awaitable[T], hurry: Callable[[], object] = bool) -> T:
    """The result of work that must come to its end, whoever is cancelled meanwhile.

    A cancelled caller still waits for the end, then is cancelled: what the
    work did is known by then. `hurry` is called first: it may bring the end nearer.
    """
    inner = asyncio.ensure_future(awaitable)
    try:
        return await asyncio.shield(inner)
    except asyncio.CancelledError:
        hurry()
        while not inner.done():
            try:
                await asyncio.wait({inner})
            except asyncio.CancelledError:
                continue
        if not inner.cancelled():
            inner.exception()
        raise


class Units:
    """Runs store calls off the loop, one whole call at a time.

    A call that met a passing fault is repeated with the same arguments, with
    growing pauses: for ever by `run` (the runtime lives through an outage),
    for 30 s by `ask` (a caller waits for the answer). `away_since` is when the store ceased to answer.
    """

    def __init__(self, offload: Offload, clock: Clock) -> None:
        self._offload = offload
        self._clock = clock
        self.away_since: Instant | None = None

    async def run(self, call: Callable[..., T], *args: Any) -> T:
        """Repeat until it works."""
        return await self._repeat(stop_never, partial(call, *args))

    async def ask(self, call: Callable[..., T], *args: Any) -> T:
        """Repeat for 30 s, then raise `StoreUnavailable`."""
        last = self._clock.now() + _PATIENCE
        return await self._repeat(lambda _: self._clock.now() >= last, partial(call, *args))

    async def _repeat(self, stop: Any, work: Callable[[], T]) -> T:
        try:
            return await self._once(work)
        except StoreUnavailable as fault:
            log.warning("the store is away, trying again: %s", fault)
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(StoreUnavailable),
            wait=wait_exponential(multiplier=0.05, max=_LONGEST_PAUSE),
            stop=stop,
            sleep=self._pause,
            reraise=True,
        )
        return await retrying(self._once, work)

    async def _once(self, work: Callable[[], T]) -> T:
        try:
            result = await drained(self._offload(work))
        except StoreUnavailable:
            self.away_since = self.away_since or self._clock.now()
            raise
        self.away_since = None
        return result

    async def _pause(self, seconds: float) -> None:
        await self._clock.sleep(round(seconds * SECOND))
