"""The jobs of the stub: how each one gets on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tarry.testing.stub.behaviour import Behaviour
from tarry.words import SECOND, Instant, Json

_STAGES = (("QUEUED", 33), ("RUNNING", 66), ("RUNNING", 99), ("SUCCEEDED", 100))
_LAST = len(_STAGES) - 1
_OVER = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})

Document = dict[str, Json]


@dataclass(slots=True)
class StubJob:
    """One job. It moves on with each poll that shows it, or, with `seconds`, by the clock.

    `polls` counts all polls, `shown` those that moved it on, `cancelled` the looks
    at it since it was cancelled (None: it was not).
    """

    id: str
    created_at: Instant
    seconds: float | None = None
    script: tuple[Behaviour, ...] = ()
    polls: int = 0
    shown: int = 0
    will_fail: bool = False
    cancelled: int | None = None

    def look(self, now: Instant) -> Document:
        """What a poll shows; the next one shows the next stage."""
        if self.cancelled is not None:
            self.cancelled += 1
        elif not self.will_fail:
            self.shown += 1
        return self.document(now)

    def document(self, now: Instant) -> Document:
        """The job as it stands, unmoved."""
        state, progress = _STAGES[self._stage(now)]
        if self.will_fail:
            return {"jobId": self.id, "state": "FAILED", "progress": 100, "error": "upstream rejected the job"}
        if self.cancelled is not None:
            state = "CANCELLING" if self.cancelled < 2 else "CANCELLED"
        document: Document = {"jobId": self.id, "state": state, "progress": progress}
        if state == "SUCCEEDED":
            document["result"] = {"rows": 4211, "artifact": f"s3://exports/{self.id}.csv"}
        return document

    def fail(self) -> None:
        """From now on every look shows it failed, even if it had succeeded."""
        self.will_fail = True

    def cancel(self, now: Instant) -> bool:
        """Ask it to stop: the next look shows CANCELLING, the one after CANCELLED. False when it is over."""
        if self.document(now)["state"] in _OVER:
            return False
        self.cancelled = self.cancelled or 0
        return True

    def _stage(self, now: Instant) -> int:
        if self.seconds is None:
            return min(max(self.shown - 1, 0), _LAST)
        elapsed, whole = now - self.created_at, round(self.seconds * SECOND)
        return _LAST if elapsed >= whole else elapsed * _LAST // whole


class JobBook:
    """All jobs, and which Idempotency-Key made which. `new_id` makes the ids."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.jobs: dict[str, StubJob] = {}
        self._new_id = new_id
        self._keys: dict[str, tuple[bytes, StubJob]] = {}
        self._tries: dict[str | bytes, int] = {}

    def count_try(self, key: str | None, content: bytes) -> int:
        """The number of this submit among those with its key (or without one, with its body)."""
        name = content if key is None else key
        self._tries[name] = self._tries.get(name, 0) + 1
        return self._tries[name]

    def known(self, key: str | None) -> tuple[bytes, StubJob] | None:
        """The body and the job that this key came with before."""
        return None if key is None else self._keys.get(key)

    def create(self, key: str | None, content: bytes, now: Instant) -> StubJob:
        """A new job."""
        name = self._new_id()
        while name in self.jobs:
            name = self._new_id()
        job = self.jobs[name] = StubJob(name, now)
        if key is not None:
            self._keys[key] = (content, job)
        return job
