"""Tells committed events: to the caller's callback, and to those who watch."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence

from tarry.ports import StoredEvent

log = logging.getLogger("tarry.events")


_REMEMBERED = 10_000
"""Of how many jobs it is known how far they were told: by id, for a key may belong to another job by now."""


class Bulletin:
    """Committed events, told once each by this process, in order for each job."""

    def __init__(self, on_event: Callable[[StoredEvent], object] | None) -> None:
        self.is_closed = False
        self.has_listener = on_event is not None
        self._on_event = on_event
        self._told: OrderedDict[int, tuple[int, int]] = OrderedDict()
        self._bells: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)

    def tell(self, job: int, events: Sequence[StoredEvent]) -> None:
        """Call back, unless it was told before, and ring; a callback that raises is logged and hurts nobody."""
        for event in events:
            if self._told.get(job, (0, 0)) < (event.run, event.seq):
                self._remember(job, event)
                self._call_back(event)
        for key in {event.key for event in events}:
            self.ring(key)

    def tell_once(self, events: Sequence[StoredEvent]) -> None:
        """As `tell`, of a job whose other events are told elsewhere: it is not remembered how far."""
        for event in events:
            self._call_back(event)
            self.ring(event.key)

    def ring(self, key: str) -> None:
        """Rouse those who watch the job."""
        for ring in self._bells.get(key, ()):
            ring()

    def told(self, job: int, run: int) -> int:
        """The last event of the run that was told here, as far as is remembered; 0 for none."""
        last_run, seq = self._told.get(job, (0, 0))
        return seq if last_run == run else 0

    def _remember(self, job: int, event: StoredEvent) -> None:
        self._told[job] = (event.run, event.seq)
        self._told.move_to_end(job)
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)

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
