"""The stored events of a job, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tarry.ports import StoredEvent

if TYPE_CHECKING:
    from tarry.api import Poller

Cursor = tuple[int, int]
"""(run, seq) of the last event seen; (0, 0) is before the first."""


def cursor_after(events: Sequence[StoredEvent]) -> Cursor:
    """The cursor past these events."""
    return (events[-1].run, events[-1].seq) if events else (0, 0)


async def whole_history(poller: Poller, key: str) -> list[StoredEvent]:
    """Every stored event, oldest first; raises `JobNotFound`."""
    events: list[StoredEvent] = []
    while page := await poller.history(key, cursor_after(events)):
        events += page
    return events
