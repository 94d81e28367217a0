"""The gate that every call goes through: side by side, but for a suspect, which goes alone.

A job is a suspect when processes ended while it may have been called in them. It is called
while its process makes no other call, so that the end of that process would say something of it and
nothing of the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class Place:
    """A place at the gate, `alone` or beside others; `ring` tells that it was granted."""

    alone: bool
    ring: Callable[[], None]
    granted: bool = False


class Gate:
    """Lets the calls of one process through, in the order in which they came; `inside` is how many are under way."""

    def __init__(self) -> None:
        self._line: deque[Place] = deque()
        self.inside = 0
        self._alone: Place | None = None

    def line_up(self, place: Place) -> None:
        """Take the place; it is granted at once unless a call that goes alone is under way or in line before it."""
        if self._line or not self._let_in(place):
            self._line.append(place)

    def go_ahead(self, place: Place) -> None:
        """Grant a place that can wait no longer, past the line, whoever is inside: then it goes beside others."""
        if not place.granted:
            self._line.remove(place)
            place.alone, place.granted = False, True
            self.inside += 1

    def leave(self, place: Place) -> None:
        """Give the place up, granted or not, or never taken; again is fine."""
        if place.granted:
            place.granted = False
            self.inside -= 1
            if place is self._alone:
                self._alone = None
        elif place in self._line:
            self._line.remove(place)
        while self._line and self._let_in(self._line[0]):
            self._line.popleft().ring()

    def _let_in(self, place: Place) -> bool:
        """Grant the place, if there is room for it."""
        if self._alone is not None or (place.alone and self.inside):
            return False
        if place.alone:
            self._alone = place
        place.granted = True
        self.inside += 1
        return True
