"""This process as a worker: one row, one lease, renewed as one."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tarry.errors import StoreError
from tarry.ports import Clock, Store
from tarry.runtime.units import Units
from tarry.words import SECOND, Instant, Micros

log = logging.getLogger("tarry.worker")

SHORTEST_LEASE: Micros = 20 * SECOND
"""A store call gives up after 10 s of silence: renewed every third of it, this lease leaves time for one that does."""


class Worker:
    """The right to hold jobs, for a while.

    The lease is renewed every third of its length. A poll may be sent only
    in the first four fifths of it, so that a process that was stalled finds out
    before it acts. `renewed_at` is when it was renewed last.
    """

    def __init__(self, store: Store, units: Units, clock: Clock, token: Callable[[], str], lease: Micros) -> None:
        self._store = store
        self._units = units
        self._clock = clock
        self._token = token
        self._lease = lease
        self._id: int | None = None
        self.renewed_at: Instant = 0
        self._bury_from: Instant = 0

    @property
    def id(self) -> int | None:
        """The row's id; None before the first `keep` and after the row was lost."""
        return self._id

    def may_send(self, now: Instant) -> bool:
        """Whether the lease is fresh enough to send a poll."""
        return self._id is not None and now < self.renewed_at + self._lease * 4 // 5

    async def keep(self) -> bool:
        """Register, or renew when a third of the lease has passed; False when the old row was lost."""
        now = self._clock.now()
        if self._id is None:
            await self._register(now)
            return True
        if now < self.renewed_at + self._lease // 3:
            return True
        if await self._units.run(self._store.renew, self._id, now, self._lease):
            self._renewed(now)
            return True
        log.warning("worker %d was declared dead; its jobs are others' now", self._id)
        self._id = None
        return False

    async def bury(self) -> int:
        """Free the jobs of workers that are gone; how many jobs."""
        if self._id is None or self._clock.now() < self._bury_from:
            return 0
        return await self._units.run(self._bury, self._id)

    def _bury(self, worker: int) -> int:
        # The time is read when the call's turn has come: until then others may have polled and died.
        now = self._clock.now()
        # A call that waited longer than the lease, for a store that was away, buries nobody: all renew first.
        return self._store.bury(worker, now) if self.may_send(now) else 0

    async def retire(self) -> None:
        """Give the lease back."""
        if self._id is not None:
            worker, self._id = self._id, None
            await self._units.ask(self._store.retire, worker, self._clock.now())

    async def _register(self, now: Instant) -> None:
        register = self._store.register
        try:
            self._id = await self._units.run(register, self._token(), now, self._lease)
        except StoreError:
            # An earlier try may have worked unheard, and that worker be buried by now: once more, as a new one.
            now = self._clock.now()
            self._id = await self._units.run(register, self._token(), now, self._lease)
        self.renewed_at = now

    def _renewed(self, now: Instant) -> None:
        late = self._clock.now() >= self.renewed_at + self._lease
        self.renewed_at = now
        if late:
            # The store was away, for the others as well: they get the time to renew before anyone is buried.
            self._bury_from = self._clock.now() + self._lease
