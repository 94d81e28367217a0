"""How a caller comes to a job: it is made, joined, refused, or begun anew."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from tarry.codec import decode_spec, differences, fingerprint
from tarry.core.spec import JobSpec
from tarry.errors import JobNotFound, KeyConflict, SpecError
from tarry.ports import JobRow
from tarry.runtime.commands import Commands
from tarry.runtime.jobs import Jobs
from tarry.runtime.resets import Resets
from tarry.words import Outcome

Reuse: TypeAlias = Literal["attach", "refuse", "restart_failed", "restart"]
"""What becomes of a key that exists already."""

_MAY_STILL_RUN = frozenset({Outcome.TIMED_OUT, Outcome.EXHAUSTED, Outcome.UNREACHABLE, Outcome.LOST})
_TRIES = 20


class Attaching:
    """Gives the row that a caller waits for."""

    def __init__(self, jobs: Jobs, commands: Commands, resets: Resets) -> None:
        self._jobs = jobs
        self._commands = commands
        self._resets = resets

    async def row(self, key: str, spec: JobSpec | None, reuse: Reuse, owner: int | None = None) -> JobRow:
        """The job of this key, made when the key is new and a spec is given, and then taken by the owner if there is one.

        Raises `JobNotFound`, `KeyConflict`, `SpecError`.
        """
        if reuse not in get_args(Reuse):
            raise SpecError("reuse", f"one of {', '.join(get_args(Reuse))}")
        if spec is not None and not isinstance(spec, JobSpec):
            raise SpecError("spec", f"expected a JobSpec, got {type(spec).__name__}")
        for _ in range(_TRIES):
            row, created = await self._found_or_made(key, spec, owner)
            if created:
                return row
            if reuse == "refuse":
                raise KeyConflict(f"key {key!r} exists already; use another key, or reuse='attach'")
            if not self._begins_anew(row, reuse):
                return await self._joined(row, spec)
            resubmit = reuse == "restart" or row.outcome not in _MAY_STILL_RUN
            if not resubmit and spec is not None:
                _check_same(row, spec)
            if await self._resets.again(row, spec or decode_spec(row.spec), resubmit=resubmit):
                return await self._jobs.found(key)
            # Somebody was faster: whatever they made of the job is looked at anew.
            reuse = "attach" if reuse == "restart" else reuse
        raise KeyConflict(f"key {key!r} is begun anew by others all the time; try again")

    async def _found_or_made(self, key: str, spec: JobSpec | None, owner: int | None) -> tuple[JobRow, bool]:
        try:
            return await self._jobs.found(key), False
        except JobNotFound:
            if spec is None:
                raise
        return await self._jobs.made(key, spec, owner)

    def _begins_anew(self, row: JobRow, reuse: Reuse) -> bool:
        if reuse == "restart":
            if row.outcome is None:
                raise KeyConflict(f"job {row.key!r} still goes on; cancel or reset it first, or use reuse='attach'")
            return True
        failed = row.outcome is not None and not row.outcome.is_success and row.outcome is not Outcome.SUBMIT_UNKNOWN
        return reuse == "restart_failed" and failed

    async def _joined(self, row: JobRow, spec: JobSpec | None) -> JobRow:
        if spec is None:
            return row
        _check_same(row, spec)
        return await self._commands.adopt(row, spec)


def _check_same(row: JobRow, spec: JobSpec) -> None:
    """Raise `KeyConflict` when the spec is that of another job."""
    if fingerprint(spec) == row.fingerprint:
        return
    identity = {"input", "args", "poll" if spec.submit is None else "submit"}
    differs = differences(decode_spec(row.spec), spec)
    fields = ", ".join(name for name in differs if name.split(".")[0] in identity) or "its submit or input"
    raise KeyConflict(f"key {row.key!r} belongs to another job; what differs: {fields}. Use another key")
