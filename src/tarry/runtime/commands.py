"""What people may ask of a job that goes on, whoever holds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tarry.codec import decode_spec, differences, encode_spec, encode_state, state_of
from tarry.core.commands import nudged, respecified, resumed
from tarry.core.deliveries import may_exist, owed
from tarry.core.limits import Limits
from tarry.core.machine import cancelled
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.core.strategies import Strategy
from tarry.errors import StoreError
from tarry.ports import Command, Event, JobRow
from tarry.runtime.arguments import check_travels
from tarry.runtime.drive import Parts
from tarry.runtime.jobs import Jobs
from tarry.runtime.logbook import record
from tarry.words import Instant, micros

_TRIES = 20
_NEWS = 20
"""How many events at most are told of what came between a look and a write."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What a command makes of a job: its state, whether and how it is paused, and its spec, if that is another."""

    event: Event
    state: JobState
    paused: int
    spec: JobSpec | None = None


_Wish: TypeAlias = Callable[[JobRow, Instant], _Change | None]


class Commands:
    """Writes commands into rows; `rouse` looks at a job that is followed here.

    Whoever holds the job finds the command at its next commit, or within a second.
    """

    def __init__(self, parts: Parts, jobs: Jobs, rouse: Callable[[int], None]) -> None:
        self._store = parts.store
        self._units = parts.units
        self._clock = parts.clock
        self._herald = parts.herald
        self._jobs = jobs
        self._rouse = rouse

    async def cancel(self, key: str, *, remote: bool) -> JobRow:
        """End the job as cancelled, or ask the service to; one that is over stays as it ended."""
        for _ in range(_TRIES):
            row = await self._jobs.found(key)
            if row.outcome is not None:
                return row
            if remote and _may_ask(row):
                return await self._ask_to_cancel(row)
            now = self._clock.now()
            event = Event(
                "finished", now, {"outcome": "cancelled", "reason": "cancelled here", "polls": row.polls + row.reserved}
            )
            state = cancelled(state_of(row), now)
            owes = owed(decode_spec(row.spec), state)
            if await self._units.ask(self._store.cancel, row.id, row.step, encode_state(state), now, [event], owes):
                record(state_of(row), state, now)
                self._rouse(row.id)
                # A command of somebody else may have come in between: what the end is numbered as, the store knows.
                news = await self._jobs.events(key, (row.run, row.event_seq), _NEWS)
                self._herald.tell_end(row, [told for told in news if (told.run, told.kind) == (row.run, "finished")])
        raise _too_fast(key)

    async def _ask_to_cancel(self, row: JobRow) -> JobRow:
        now = self._clock.now()
        await self._units.ask(self._store.ask_to_cancel, row.id, row.run, now, Event("cancel_requested", now))
        return await self._jobs.found(row.key)

    async def nudge(self, key: str) -> JobRow:
        """Bring the next poll forward."""
        return await self._command(await self._jobs.found(key), _nudge)

    async def pause(self, key: str) -> JobRow:
        """Poll no more until `resume`."""
        return await self._command(await self._jobs.found(key), _pause)

    async def resume(self, key: str) -> JobRow:
        """Poll again."""
        return await self._command(await self._jobs.found(key), _resume)

    async def update(self, key: str, strategy: Strategy | None, limits: Limits | None) -> JobRow:
        """Wait with another strategy, within other limits."""
        parts = {"strategy": strategy, "limits": limits}
        given = {name: part for name, part in parts.items() if part is not None}

        def wish(row: JobRow, now: Instant) -> _Change | None:
            before = decode_spec(row.spec)
            after = JobSpec(**{**{name: getattr(before, name) for name in before.model_fields_set}, **given})
            check_travels(after, known=before.functions)
            return _respecify(after)(row, now)

        return await self._command(await self._jobs.found(key), wish)

    async def adopt(self, row: JobRow, spec: JobSpec | None) -> JobRow:
        """The job under the spec that a caller brings, from its next poll on."""
        return row if spec is None else await self._command(row, _respecify(spec))

    async def _command(self, row: JobRow, wish: _Wish) -> JobRow:
        """Write what is wished into the row, unless the job is over or is that way already."""
        for _ in range(_TRIES):
            now = self._clock.now()
            change = None if row.outcome is not None else wish(row, now)
            if change is None:
                return row
            if await self._units.ask(self._store.command, _written(row, change)):
                self._rouse(row.id)
                self._herald.ring(row.key)
                return await self._jobs.found(row.key)
            row = await self._jobs.found(row.key)
        raise _too_fast(row.key)


def _nudge(row: JobRow, now: Instant) -> _Change:
    state = nudged(decode_spec(row.spec), state_of(row), now)
    return _Change(Event("nudged", now), state, paused=row.paused)


def _pause(row: JobRow, now: Instant) -> _Change | None:
    return None if row.paused else _Change(Event("paused", now), state_of(row), paused=1)


def _resume(row: JobRow, now: Instant) -> _Change | None:
    return _Change(Event("resumed", now), resumed(state_of(row), now), paused=0) if row.paused else None


def _respecify(spec: JobSpec) -> _Wish:
    def wish(row: JobRow, now: Instant) -> _Change | None:
        before = decode_spec(row.spec)
        fields = differences(before, spec)
        if not fields:
            return None
        event = Event("spec_changed", now, {"fields": list(fields)})
        return _Change(event, respecified(before, spec, state_of(row), now), row.paused, spec)

    return wish


def _written(row: JobRow, change: _Change) -> Command:
    spec = decode_spec(row.spec) if change.spec is None else change.spec
    return Command(
        job=row.id,
        step=row.step,
        cmd=row.cmd,
        state=encode_state(change.state),
        due=change.state.due,
        deadline=change.state.deadline,
        max_polls=spec.limits.max_polls,
        floor=micros(spec.limits.min_interval),
        paused=change.paused,
        spec=None if change.spec is None else encode_spec(change.spec),
        labels=None if change.spec is None else dict(change.spec.labels),
        events=[change.event],
    )


def _too_fast(key: str) -> StoreError:
    return StoreError(f"job {key!r} moves on faster than it can be told anything; try again")


def _may_ask(row: JobRow) -> bool:
    """Whether there may be a remote job, and a request to cancel it."""
    spec = decode_spec(row.spec)
    return spec.cancel is not None and may_exist(spec, state_of(row))
