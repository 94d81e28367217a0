"""Looks at once where the store says that something came; the rounds look all the same."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tarry.ports import Clock, Store
from tarry.runtime.begin import begin
from tarry.runtime.pulse import LOOK_EVERY
from tarry.words import SECOND, Micros

log = logging.getLogger("tarry.runtime")

_LEAST: Micros = SECOND // 20
_SHARE = 10
"""A look is followed by a pause of some times its length, so that looking never takes more than a tenth of the time."""


class Hearing:
    """Calls `look` soon after another process committed an outcome or a command, where the store hears of it."""

    def __init__(self, store: Store, clock: Clock, look: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._clock = clock
        self._look = look
        self._bell = asyncio.Event()
        self._stop: Callable[[], None] | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Listen from now on."""
        loop = asyncio.get_running_loop()

        def ring() -> None:
            with suppress(RuntimeError):  # the loop is closed, and this comes too late
                loop.call_soon_threadsafe(self._bell.set)

        self._stop = self._store.listen(ring)
        if self._stop is not None:
            self._task = begin(self._hear(), name="tarry hearing")

    def end(self) -> list[asyncio.Task[None]]:
        """Listen no more; what is to be cancelled."""
        if self._stop is not None:
            self._stop()
        return [] if self._task is None else [self._task]

    async def _hear(self) -> None:
        while True:
            await self._bell.wait()
            self._bell.clear()
            began = self._clock.now()
            try:
                await self._look()
            except Exception:
                log.exception("a look at the store failed; the next round looks again")
            took = self._clock.now() - began
            await self._clock.sleep(min(max(_LEAST, _SHARE * took), LOOK_EVERY))
