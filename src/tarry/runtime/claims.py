"""Takes jobs that somebody waits for into this worker's hands, one at a time, and gives up those that broke there."""

from __future__ import annotations

from tarry.codec import state_of
from tarry.core.decision import Wait
from tarry.core.machine import resume
from tarry.errors import CheckpointError
from tarry.ports import Checkpoint, JobRow
from tarry.runtime.drive import Parts
from tarry.runtime.followed import Followed
from tarry.runtime.hold import CLAIM_AHEAD, Hold
from tarry.words import Instant


class Claims:
    """Claims what is wanted soon and can be polled here."""

    def __init__(self, parts: Parts) -> None:
        self._clock = parts.clock
        self._worker = parts.worker
        self._writer = parts.writer

    def wanted_at(self, job: Followed, row: JobRow) -> Instant:
        """When the job wants its next call; a clock that was set back does not put it off.

        Raises `CheckpointError` for a damaged row, before anything touches it.
        """
        now = self._clock.now()
        _, decision = resume(job.spec_of(row.spec), state_of(row), now)
        return decision.due if isinstance(decision, Wait) else now

    async def held(self, job: Followed, row: JobRow, wanted_at: Instant) -> Hold | None:
        """Claim the job if it is free, wanted soon and can be polled here."""
        now, worker = self._clock.now(), self._worker.id
        if worker is not None and row.owner == worker:
            await self.write_off(row, now)
            return None
        if worker is None or row.owner is not None or row.paused or wanted_at > now + CLAIM_AHEAD:
            return None
        if not job.runs_here(job.spec_of(row.spec)):
            return None
        claimed = await self._writer.claim(worker, job.id)
        if claimed is None:
            return None
        job.held_by = worker
        return Hold.of(claimed, job.spec_of(claimed.spec))

    async def unread(self, job: Followed) -> Hold | None:
        """Claim the job as it was when it was read last; one that is not so any more is given back, and to be read."""
        job.is_ripe, worker = False, self._worker.id
        claimed = None if worker is None else await self._writer.claim(worker, job.id)
        if claimed is None:
            return None
        try:
            hold = Hold.of(claimed, job.spec_of(claimed.spec)) if job.is_claim_of_known(claimed) else None
        except CheckpointError:
            hold = None
        if hold is None:
            await self._writer.release(claimed.grip)
            return None
        job.held_by = worker
        return hold

    async def write_off(self, row: JobRow, now: Instant) -> None:
        """Give up a job whose loop broke here: a permit may have been used, so it counts."""
        await self._writer.checkpoint(
            Checkpoint(
                grip=row.grip,
                state=row.state,
                phase=row.phase,
                polls=row.polls + row.reserved,
                polled_at=now if row.reserved else row.polled_at,
                due=max(row.due or now, now + row.floor),
                deadline=row.deadline,
                max_polls=row.max_polls,
                release=True,
            )
        )
