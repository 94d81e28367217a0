"""What changed between two checkpoints, as events: a poll that changed nothing adds none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from tarry.core.stalls import unmoved_for
from tarry.core.state import JobState
from tarry.frozen import getter
from tarry.ports import Event
from tarry.words import CallKind, Instant, Json, Phase, WaitSource

_News: TypeAlias = Iterator[tuple[str, dict[str, Json]]]

_BENT = frozenset(
    {WaitSource.FLOOR, WaitSource.HINT, WaitSource.HINT_BOUND, WaitSource.DEADLINE, WaitSource.STRATEGY_ERROR}
)


_POLL = CallKind.POLL
_told = getter(JobState, "phase", "streak", "status", "progress", "unknown", "stalled", "wait_source")


def changes(
    before: JobState, after: JobState, kind: CallKind, now: Instant, *, moved_to: str | None = None
) -> tuple[Event, ...]:
    """The events of one step, oldest first; `moved_to` is the new status URL as it may be shown, if it is another."""
    if kind is _POLL and moved_to is None and after.outcome is None and _told(after) == _told(before):
        return ()  # as after most polls
    moved: list[tuple[str, dict[str, Json]]] = [] if moved_to is None else [("status_url_moved", {"to": moved_to})]
    found = [
        *_of_call(before, after, kind),
        *_of_status(before, after),
        *moved,
        *_of_stall(before, after, now),
        *_of_wait(before, after),
        *_of_end(after),
    ]
    return tuple(Event(name, now, data) for name, data in found)


def _of_call(before: JobState, after: JobState, kind: CallKind) -> _News:
    if kind is not CallKind.POLL:
        yield from _of_submit(after, kind)
        return
    if after.streak.length and not before.streak.length:
        yield "poll_failed", {"error": after.error}
    elif before.streak.length and not after.streak.length and after.outcome is None:
        yield "recovered", {"failed_polls": before.streak.length}


def _of_submit(after: JobState, kind: CallKind) -> _News:
    if after.submitted_at is not None:
        yield "submitted", {"by": "probe"} if kind is CallKind.PROBE else {}
    elif kind is CallKind.BASELINE and after.phase is not Phase.PREPARING and after.outcome is None:
        yield "baseline_taken", {}
    elif after.error is not None:
        tried: dict[str, Json] = {"try": after.submit_tries} if kind is CallKind.SUBMIT else {}
        yield f"{kind}_failed", {"error": after.error, **tried}
    if kind is CallKind.SUBMIT and after.phase is Phase.PROBING:
        yield "probing", {}


def _of_status(before: JobState, after: JobState) -> _News:
    if after.status != before.status:
        yield "status", {"from": before.status, "to": after.status}
    if after.progress != before.progress:
        yield "progress", {"progress": after.progress}
    for value in after.unknown[len(before.unknown) :]:
        yield "unknown_status", {"value": value}
    if after.phase is Phase.BLOCKED and before.phase is not Phase.BLOCKED:
        yield "blocked", {"status": after.status}
    elif before.phase is Phase.BLOCKED and after.phase is Phase.WAITING:
        yield "unblocked", {"status": after.status}


def _of_stall(before: JobState, after: JobState, now: Instant) -> _News:
    if after.stalled and not before.stalled:
        yield "stalled", {"status": after.status, "unmoved_us": unmoved_for(after, now)}
    elif before.stalled and not after.stalled and after.outcome is None:
        yield "unstalled", {"status": after.status}


def _of_wait(before: JobState, after: JobState) -> _News:
    if after.wait_source in _BENT and after.wait_source is not before.wait_source and after.outcome is None:
        why = {"error": after.error} if after.wait_source is WaitSource.STRATEGY_ERROR else {}
        yield "wait_changed", {"source": after.wait_source.value, "wait_us": after.wait, **why}


def _of_end(after: JobState) -> _News:
    if after.outcome is not None:
        yield "finished", {"outcome": after.outcome.value, "reason": after.reason, "polls": after.polls}
