"""What the runtime needs of the outbox: things to do for a job that outlive the process that owed them.

A delivery is a row, written in the same transaction as what causes it. Any worker
may take it; one that a dead worker had taken is free again. To call what `then` names
is done at least once. To cancel remotely is done at most once: when the worker died
over it, nobody knows whether the request left, and it is not sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tarry.words import DeliveryKind, DeliveryState, Instant


@dataclass(frozen=True, slots=True)
class Delivery:
    """Something to do for the job `key`, in its `run`.

    `tries` counts how often a worker took it; `error` says why the last try came to nothing.
    `job` is the row's id, `nonce` the proof of who took it, None while nobody has.
    """

    id: int
    job: int
    key: str
    run: int
    kind: DeliveryKind
    state: DeliveryState
    tries: int
    error: str | None
    nonce: str | None = None


class Deliveries(Protocol):
    """The outbox of a store; each method is one transaction, safe to run again."""

    def due(self, namespace: str, now: Instant, after: int, limit: int) -> list[Delivery]:
        """Those that nobody has and that are due, with an id above `after`, by id."""
        ...

    def next_at(self, namespace: str) -> Instant | None:
        """When the next of those that nobody has is due; None when there is none."""
        ...

    def take(self, worker: int, nonce: str, now: Instant, deliveries: Sequence[int]) -> list[Delivery]:
        """Take those that are due and that nobody has, each with tries+1; none for a worker that is not alive."""
        ...

    def settle(
        self, taken: Delivery, worker: int, now: Instant, state: DeliveryState, note: str, wake: Instant | None
    ) -> bool:
        """Write what came of it, and give it back; False when another has it by now.

        Done or dead, it is an event of the job (`delivered`, `undelivered`) with the `note`; pending,
        it is tried again at `wake`, and the note is kept as the error.
        """
        ...

    def undelivered(self, namespace: str, after: int, limit: int) -> list[Delivery]:
        """The dead ones with an id above `after`, by id."""
        ...

    def again(self, namespace: str, key: str, now: Instant) -> int:
        """Make the dead ones of a job pending, due now, their tries forgotten; how many."""
        ...
