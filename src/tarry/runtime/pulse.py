"""The pulse of a process: when its rounds end, and how late they come."""

from __future__ import annotations

from dataclasses import dataclass

from tarry.words import SECOND, Instant, Micros

LOOK_EVERY: Micros = SECOND // 2
"""How often a waiter looks at jobs that others may move on, and for workers that died.

Twice a second, so that it hears within a second also where the store takes its time.
"""


@dataclass(slots=True)
class Pulse:
    """`at` is when the last round ended (None before the first), `lag` by how much its begin was late."""

    at: Instant | None = None
    lag: Micros = 0

    def is_silent(self, now: Instant) -> bool:
        """Whether the last round is so long ago that others may have told what was not heard here."""
        return self.at is not None and now - self.at > 2 * LOOK_EVERY
