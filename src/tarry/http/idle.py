"""How many idle connections are kept, and whose."""

from __future__ import annotations

from dataclasses import dataclass

from tarry.ports import Clock
from tarry.words import SECOND, Instant

KEPT = 15 * SECOND
"""How long an idle connection is kept: longer than most waits between polls, shorter than most services keep theirs."""

MOST_IDLE = 1_024
"""Idle connections, where the system allows for more."""


def idle_bound() -> int:
    """At most half of the files that this process may open, so that as many are left for all else."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:  # Windows has no such limit
        return MOST_IDLE
    allowed = getrlimit(RLIMIT_NOFILE)[0]
    return MOST_IDLE if allowed == RLIM_INFINITY else min(MOST_IDLE, allowed // 2)


class Kept:
    """Says of each call whether its connection may be kept after it, where a pool has no bound of its own.

    Who comes when all `most` are taken is not kept, nobody gives way: where
    more hosts than that are called in turn, the longest idle one is the next to be called.
    """

    def __init__(self, clock: Clock, most: int) -> None:
        self._clock = clock
        self._most = most
        self._count = 0
        # Who was called last stands last.
        self._origins: dict[str, Place] = {}

    def held(self, origin: str) -> Place:
        """Around a call: whether its connection may be kept."""
        place = self._origins.pop(origin, None)
        if place is None:
            place = Place(self, origin)
        self._origins[origin] = place
        return place

    def leave(self, place: Place) -> None:
        """The last call to the origin is over."""
        place.since = self._clock.now()
        if not place.kept:
            del self._origins[place.origin]

    def is_room(self, place: Place) -> bool:
        """Whether one more connection to the origin may be kept."""
        if self._count >= self._most:
            self._forget()
        if self._count >= self._most:
            return False
        place.kept += 1
        self._count += 1
        return True

    def _forget(self) -> None:
        """Those whose connections have been closed by now."""
        oldest = self._clock.now() - KEPT
        for origin, place in list(self._origins.items()):
            if place.busy or place.since >= oldest:
                return
            self._count -= place.kept
            del self._origins[origin]


@dataclass(slots=True)
class Place:
    """What an origin has of the connections: calls under way, connections kept, since when none is under way.

    As a block it is around one of the calls: several may be in it at once.
    """

    of: Kept
    origin: str
    busy: int = 0
    kept: int = 0
    since: Instant = 0

    def __enter__(self) -> bool:
        self.busy += 1
        return self.busy <= self.kept or self.of.is_room(self)

    def __exit__(self, *_: object) -> None:
        self.busy -= 1
        if not self.busy:
            self.of.leave(self)
