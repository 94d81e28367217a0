"""Tells when the clock jumped: it was set, or the machine slept and the event loop's timers with it."""

from __future__ import annotations

import asyncio
import logging

from tarry.ports import Clock
from tarry.words import SECOND, Micros

log = logging.getLogger("tarry.runtime")

JUMP: Micros = SECOND // 4
"""What the clock and the event loop may drift apart between two looks."""


class ClockWatch:
    """Compares the clock with the event loop's own time, from look to look."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._seen = self._ahead()

    def has_jumped(self) -> bool:
        """Whether the clock went on by more, or by less, than the loop did since the last look."""
        ahead = self._ahead()
        jump, self._seen = ahead - self._seen, ahead
        if abs(jump) < JUMP:
            return False
        log.warning("the clock jumped by %+.1f s: it was set, or the machine slept", jump / SECOND)
        return True

    def _ahead(self) -> Micros:
        return self._clock.now() - round(self._loop.time() * SECOND)
