"""The last 64 polls of a job, as a compact ring in its row."""

from __future__ import annotations

from tarry.codec import decode_timeline, extended_timeline
from tarry.core.results import Tick
from tarry.core.state import JobState
from tarry.words import MILLISECOND, Instant, moment

LENGTH = 64


def extended(ring: str | None, before: JobState, after: JobState) -> str:
    """The ring with one more poll: when it started, its verdict, what set the wait after it."""
    started = after.polled_at if after.polled_at is not None else after.created_at
    moved = after.hops > before.hops
    failed = after.streak.length > before.streak.length
    verdict = after.outcome or ("error" if failed else "redirect" if moved else after.verdict or "pending")
    poll = (started - after.created_at) // MILLISECOND, verdict, None if after.outcome else after.wait_source
    # What set the wait that this poll ended: not what was planned, if a command or a restart came in between.
    return extended_timeline(ring, poll, before.wait_source, LENGTH)


def ticks(ring: str | None, created_at: Instant) -> tuple[Tick, ...]:
    """The ring as values, oldest first; `CheckpointError` when it is damaged, `OverflowError` past the year 9999."""
    return tuple(
        Tick(moment(created_at + offset * MILLISECOND), verdict, source)
        for offset, verdict, source in decode_timeline(ring)
    )
