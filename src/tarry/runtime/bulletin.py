"""Tells committed events: to the caller's callback, and to those who watch."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence

from tarry.ports import StoredEvent

log = logging.getLogger("tarry.events")


class Bulletin:
    """Events that were committed by this process, told once each, in order for each job."""

    def __init__(self, on_event: Callable[[StoredEvent], object] | None) -> None:
        self.is_closed = False
        self._on_event = on_event
        self._bells: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)

    def tell(self, events: Sequence[StoredEvent]) -> None:
        """Call back and ring; a callback that raises is logged and hurts nobody."""
        for event in events:
            self._call_back(event)
        for key in {event.key for event in events}:
            for ring in self._bells.get(key, ()):
                ring()

    def listen(self, key: str, ring: Callable[[], None]) -> Callable[[], None]:
        """Ring on every event of this key; call what is returned to stop."""
        self._bells[key].append(ring)

        def stop() -> None:
            self._bells[key].remove(ring)
            if not self._bells[key]:
                del self._bells[key]

        return stop

    def close(self) -> None:
        """Ring for all, so that whoever watches finds the poller closed."""
        self.is_closed = True
        for rings in list(self._bells.values()):
            for ring in rings:
                ring()

    def _call_back(self, event: StoredEvent) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except (Exception, asyncio.CancelledError):  # a callback cannot cancel the loop that tells it
            log.exception("on_event raised for job %r, event %s; the job goes on", event.key, event.kind)
