"""An event loop that tries interleavings, and that can freeze a process in the middle of whatever it does."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from tarry.testing import FakeClock, VirtualLoop
from tarry.words import SECOND, Micros


class Freezable(Protocol):
    """What callbacks belong to: while it does not run, they are kept instead of called."""

    runs: bool
    kept: list[asyncio.Handle]


owner_of: contextvars.ContextVar[Freezable | None] = contextvars.ContextVar("owner_of", default=None)
"""The process that the running code belongs to; None is the world outside."""


class ShuffledLoop(VirtualLoop):
    """Runs what is ready in an order drawn from `chance`, except for what belongs to a frozen process.

    A frozen process is stopped where it stands, as a signal would do it: not one
    more line of its code runs, its timers become due and wait.
    """

    def __init__(self, clock: FakeClock, chance: Random) -> None:
        super().__init__(clock)
        self._chance = chance
        self._outside = contextvars.Context()
        self.owners: WeakKeyDictionary[asyncio.Task[Any], Freezable] = WeakKeyDictionary()

    def order(self, ready: deque[asyncio.Handle]) -> None:
        """Shuffle, and set aside what is frozen."""
        if not ready:
            return
        going: list[asyncio.Handle] = []
        for handle in ready:
            owner = handle._context.get(owner_of)  # type: ignore[attr-defined]  # asyncio's own: where it was made
            (going if owner is None or owner.runs else owner.kept).append(handle)
        if len(going) > 1:
            self._chance.shuffle(going)
        ready.clear()
        ready.extend(going)

    def create_task(self, *args: Any, **options: Any) -> asyncio.Task[Any]:
        """As in asyncio; whose it is is kept in `owners`."""
        task = super().create_task(*args, **options)
        owner = owner_of.get()
        if owner is not None:
            self.owners[task] = owner
        return task

    def thaw(self, frozen: Freezable) -> None:
        """Let it run again, from where it stood."""
        frozen.runs = True
        kept, frozen.kept = frozen.kept, []
        self._ready.extend(kept)

    def outside(self, after: Micros, call: Callable[..., object], *args: Any) -> None:
        """Call later, as the world rather than as the process that asks."""
        self.call_at(self.time() + after / SECOND, call, *args, context=self._outside)
