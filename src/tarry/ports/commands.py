"""What people ask of a job, as the store takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tarry.ports.events import Event
from tarry.words import Instant, Micros, Phase


@dataclass(frozen=True, slots=True)
class Command:
    """What somebody asks of a job that goes on, whoever holds it.

    It counts only while the row is at `step` and `cmd`, and raises `cmd`: a holder's next
    write then misses, and its observation is judged again on the row as it is now.
    None for `spec` and `labels` leaves what is stored, and a `spec` drops the validators; the rest
    is written as it is, but `max_polls` never falls below what is spent and permitted.
    """

    job: int
    step: int
    cmd: int
    state: str
    due: Instant | None
    deadline: Instant | None
    max_polls: int | None
    floor: Micros
    paused: int
    spec: str | None = None
    labels: Mapping[str, str] | None = None
    events: Sequence[Event] = ()


@dataclass(frozen=True, slots=True)
class Restart:
    """A new run of a job, whoever holds it: what there was of the last run is gone, but for its events.

    It counts only while the row is at `step` and `cmd`. `token` is the idempotency key of
    the new run's submit; `submit`, `baseline`, `poll`, `status_url` and `carried` are what it goes on with, if anything.
    """

    job: int
    step: int
    cmd: int
    token: str
    fingerprint: str
    spec: str
    labels: Mapping[str, str]
    state: str
    phase: Phase
    created_at: Instant
    polled_at: Instant | None
    due: Instant
    deadline: Instant | None
    max_polls: int | None
    floor: Micros
    submit: str | None = None
    baseline: str | None = None
    poll: str | None = None
    status_url: str | None = None
    carried: str | None = None
    events: Sequence[Event] = ()
