"""What people may ask of a job that goes on, whoever holds it."""

from __future__ import annotations

from collections.abc import Callable

from tarry.codec import decode_spec, encode_state, state_of
from tarry.core.deliveries import owed
from tarry.core.machine import cancelled
from tarry.errors import StoreError
from tarry.ports import Event, JobRow, StoredEvent
from tarry.runtime.drive import Parts
from tarry.runtime.jobs import Jobs

_TRIES = 20


class Commands:
    """Writes commands into rows; `rouse` looks at a job that is followed here."""

    def __init__(self, parts: Parts, jobs: Jobs, rouse: Callable[[int], None]) -> None:
        self._store = parts.store
        self._units = parts.units
        self._clock = parts.clock
        self._tell = parts.tell
        self._jobs = jobs
        self._rouse = rouse

    async def cancel(self, key: str) -> JobRow:
        """End the job as cancelled; one that is over stays as it ended."""
        for _ in range(_TRIES):
            row = await self._jobs.found(key)
            if row.outcome is not None:
                return row
            now = self._clock.now()
            event = Event(
                "finished", now, {"outcome": "cancelled", "reason": "cancelled here", "polls": row.polls + row.reserved}
            )
            state = cancelled(state_of(row), now)
            owes = owed(decode_spec(row.spec), state)
            if await self._units.ask(self._store.cancel, row.id, row.step, encode_state(state), now, [event], owes):
                self._rouse(row.id)
                self._tell([StoredEvent.of(row.key, row.run, row.event_seq + 1, event)])
        raise StoreError(f"job {key!r} moves on faster than it can be cancelled; try again")
