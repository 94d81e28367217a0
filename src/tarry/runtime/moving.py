"""Moves a job that goes on to another store: as a token, a versioned JSON text without secrets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from tarry.codec import decode_spec, decode_state, encode_state, fingerprint, state_of
from tarry.codec.reading import VERSION, count, read, text, versioned, whole
from tarry.core.texts import as_json_text
from tarry.errors import CheckpointError, KeyConflict, StoreError
from tarry.ports import Event, JobRow, NewJob
from tarry.runtime.arguments import check_travels
from tarry.runtime.commands import Commands
from tarry.runtime.drive import Parts
from tarry.runtime.jobs import Jobs
from tarry.words import SECOND, Instant, Json, Micros, micros

_LOOK_EVERY: Micros = SECOND // 10
_GRACE: Micros = 5 * SECOND


class Moving:
    """Writes tokens and reads them."""

    def __init__(self, parts: Parts, jobs: Jobs, commands: Commands) -> None:
        self._clock = parts.clock
        self._jobs = jobs
        self._commands = commands

    async def export(self, key: str) -> str:
        """The token of a job, which is paused here from now on."""
        row = await self._jobs.found(key)
        if row.outcome is None:
            check_travels(decode_spec(row.spec))
            row = await self._given_up(await self._commands.pause(key))
        if row.outcome is not None:
            raise StoreError(f"job {key!r} is over ({row.outcome}); there is nothing to go on with elsewhere")
        return _written(row)

    async def take(self, token: str) -> JobRow:
        """The job of the token, stored here; in the store that it came from it is resumed."""
        job = _read(token, self._jobs.namespace, self._clock.now())
        row, _ = await self._jobs.stored(job)
        if row.token != job.token:
            raise KeyConflict(f"key {row.key!r} belongs to another job here; its token was not imported")
        return await self._commands.resume(row.key)

    async def _given_up(self, row: JobRow) -> JobRow:
        """The row once nobody holds the job any more, its last answer committed."""
        last = self._clock.now() + micros(decode_spec(row.spec).limits.poll_timeout) + _GRACE
        while row.owner is not None and row.outcome is None:
            if self._clock.now() > last:
                raise StoreError(f"job {row.key!r} is paused, but a worker still holds it; export it again")
            await self._clock.sleep(_LOOK_EVERY)
            row = await self._jobs.found(row.key)
        return row


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "key": text,
    "token": text,
    "spec": text,
    "state": text,
    "polls": count,
    "created_at": whole,
}
_MAYBE: dict[str, Callable[[Any], Any]] = {
    "polled_at": whole,
    "deadline": whole,
    "due": whole,
    "last": text,
    "submit": text,
    "timeline": text,
    "carried": text,
    "baseline": text,
    "poll": text,
    "status_url": text,
}


def _written(row: JobRow) -> str:
    fields: dict[str, Json] = {name: getattr(row, name) for name in (*_PLAIN, *_MAYBE)}
    fields = {name: value for name, value in fields.items() if value is not None}
    # What was committed is one state: the columns, which are right, go into it.
    fields["state"] = encode_state(state_of(row))
    return as_json_text({"v": VERSION, "tarry": "job", **fields, "sum": _sum(fields)})


def _read(token: str, namespace: str, now: Instant) -> NewJob:
    """The job in a token. Raises `CheckpointError` that says whether it is damaged, newer or no token."""
    fields = versioned(token, "token")
    if fields.pop("tarry", None) != "job" or fields.pop("sum", None) != _sum(fields):
        raise CheckpointError("token: damaged: it is not as it was written")
    known = {**_PLAIN, **_MAYBE}
    values = {name: read(f"token.{name}", known[name], value) for name, value in fields.items() if name in known}
    missing = sorted(set(_PLAIN) - set(values))
    if missing or len(values) < len(fields):
        raise CheckpointError(f"token: damaged: {missing[0] if missing else 'a field'} is not as it should be")
    spec, state = decode_spec(values["spec"]), decode_state(values["state"])
    if state.outcome is not None or state.key != values["key"]:
        raise CheckpointError("token: damaged: its state is that of another job")
    return NewJob(
        namespace=namespace,
        fingerprint=fingerprint(spec),
        labels=dict(spec.labels),
        phase=state.phase,
        max_polls=None if spec.limits.max_polls is None else max(spec.limits.max_polls, values["polls"]),
        floor=micros(spec.limits.min_interval),
        events=[Event("imported", now)],
        **{"deadline": None, **values, "due": values.get("due", now)},
    )


def _sum(fields: dict[str, Any]) -> str:
    return hashlib.sha256(as_json_text(fields, sort_keys=True).encode()).hexdigest()[:32]
