"""The pulse of a process: when it heard of others last, and how late its rounds come."""

from __future__ import annotations

from dataclasses import dataclass

from tarry.words import SECOND, Instant, Micros

LOOK_EVERY: Micros = SECOND // 2
"""How often a waiter looks at jobs that others may move on, and for workers that died.

Twice a second, so that it hears within a second also where the store takes its time.
"""


@dataclass(slots=True)
class Pulse:
    """`at` is as old as what the last round told (None before the first), `lag` by how much its begin was late."""

    at: Instant | None = None
    lag: Micros = 0

    def beat(self, begun: Instant, ended: Instant) -> None:
        """A round is over. One that took long may have looked at its begin, and stood still then."""
        self.at = ended if ended - begun <= LOOK_EVERY else begun

    def is_silent(self, now: Instant) -> bool:
        """Whether the last round is so long ago that others may have told what was not heard here."""
        return self.at is not None and now - self.at > 2 * LOOK_EVERY
