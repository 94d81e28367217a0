"""What happened to a job, as it is written down and as it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from tarry.frozen import quick
from tarry.words import Instant, Json


@quick
@dataclass(frozen=True, slots=True)
class Event:
    """A thing that happened to a job, worth telling; `data` is small JSON."""

    kind: str
    at: Instant
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of the job `key` as stored: (run, seq) is its cursor within the job; `at` is in microseconds UTC."""

    key: str
    run: int
    seq: int
    kind: str
    at: Instant
    data: Mapping[str, Json] = field(default_factory=dict)

    @classmethod
    def of(cls, key: str, run: int, seq: int, event: Event) -> Self:
        """The event at its place."""
        return cls(key, run, seq, event.kind, event.at, event.data)
