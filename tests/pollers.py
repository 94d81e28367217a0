"""What the tests of the poller share: a world of one clock, one store and one scripted job."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tarry import Fixed, JobSpec, Limits, Match, Poller, Request
from tarry.ports import StoredEvent
from tarry.store import MemoryStore
from tarry.testing import FakeClock, ScriptedJob

T = TypeVar("T")

QUEUED = {"state": "QUEUED"}
RUNNING = {"state": "RUNNING"}
SUCCEEDED = {"state": "SUCCEEDED", "result": {"rows": 4211}}
FAILED = {"state": "FAILED", "error": "disk full"}


def spec_of(**changes: Any) -> JobSpec:
    """A job that is submitted and polled every 2 s, with changes."""
    fields: dict[str, Any] = {
        "submit": Request("POST", "https://api.example.com/jobs", json={"dataset": "orders"}, idempotent=True),
        "poll": Request("GET", "https://api.example.com/jobs/{submit.body.jobId}"),
        "until": Match("body.state", succeeded="SUCCEEDED", failed="FAILED", pending=["QUEUED", "RUNNING"]),
        "strategy": Fixed("2s"),
        "limits": Limits(),
        "result": "body.result",
        "reason": "body.error",
    }
    return JobSpec(**{**fields, **changes})


def polled(**changes: Any) -> JobSpec:
    """The same without a submit."""
    return spec_of(**{"submit": None, "poll": Request("GET", "https://api.example.com/jobs/{key}"), **changes})


@dataclass
class World:
    """One virtual world; `poller()` makes a process in it, `run` lets time pass."""

    answers: list[Any]
    clock: FakeClock = field(default_factory=FakeClock)
    store: MemoryStore = field(default_factory=MemoryStore)
    told: list[StoredEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.job = ScriptedJob(self.answers, submit=[{"jobId": "j1"}], clock=self.clock)
        self.began = self.clock.now()

    def poller(self, **options: Any) -> Poller:
        """A poller on the shared store."""
        return Poller(
            options.pop("store", self.store),
            **{"transport": self.job, "clock": self.clock, "on_event": self.told.append, **options},
        )

    def run(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run to the end in virtual time."""
        return self.clock.run(main)

    async def after(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self.clock.sleep(round(seconds * 1_000_000))

    def seconds(self) -> list[float]:
        """When each poll was made, in seconds from the beginning."""
        return [(seen.at - self.began) / 1_000_000 for seen in self.job.requests if seen.kind == "poll"]

    def kinds(self) -> list[str]:
        """The kinds of the events told."""
        return [event.kind for event in self.told]


class Skewed:
    """A clock that is set while its loop goes on."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.skew = 0

    def now(self) -> int:
        return self._clock.now() + self.skew

    async def sleep(self, span: int) -> None:
        await self._clock.sleep(span)
