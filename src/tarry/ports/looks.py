"""Looks at stored jobs: what a waiter sees, and which jobs a listing is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tarry.words import Instant, Outcome, Phase


@dataclass(frozen=True, slots=True)
class Glance:
    """What a waiter needs to know of a job that it does not hold."""

    id: int
    owner: int | None
    wake: Instant | None
    cmd: int
    step: int
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of jobs: filters, and where the last page ended (a job id)."""

    namespace: str
    outcomes: Sequence[Outcome] = ()
    phases: Sequence[Phase] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    after: int = 0
    limit: int = 100
