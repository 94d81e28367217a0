"""A driver of the core that answers from a script, in no time at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

from tarry import JobSpec, Match, Request
from tarry.codec import decode_state, encode_state
from tarry.core import (
    Answers,
    Call,
    CallError,
    Decision,
    JobState,
    Observation,
    Stop,
    Wait,
    resume,
    sending,
    start,
    step,
)
from tarry.core.keeping import kept
from tarry.words import SECOND, CallKind, ErrorKind, Instant, Micros

Answer = Callable[[CallKind, Instant], Observation]

GET = Request("GET", "https://api.example.com/jobs/1")
POST = Request("POST", "https://api.example.com/jobs", json={"dataset": "orders"})
STATE = Match("body.state", succeeded="DONE", failed="FAILED", pending=["QUEUED", "RUNNING"], blocked="HELD")


def spec(**fields: Any) -> JobSpec:
    """A spec that polls `GET` and reads `body.state`, but for the fields given."""
    return JobSpec(**{"poll": GET, "until": STATE, **fields})


def http(status: int, body: Any = None, headers: Mapping[str, str] | None = None, *, took: Micros = 0) -> Answer:
    """A response: JSON unless the body is a text."""

    def answered(kind: CallKind, now: Instant) -> Observation:
        is_json = body is not None and not isinstance(body, str)
        return Observation(kind, now, now + took, status, dict(headers or {}), body, is_json, GET.url)

    return answered


def state(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """A response with a state."""
    return http(status, {"state": value}, headers)


def broken(kind: ErrorKind = ErrorKind.CONNECT, *, sent: bool = True, took: Micros = 0) -> Answer:
    """A call without a response."""

    def answered(call: CallKind, now: Instant) -> Observation:
        return Observation(call, now, now + took, error=CallError(kind, "it broke", sent=sent))

    return answered


def returned(value: Any) -> Answer:
    """What a polled callable returned."""
    return lambda kind, now: Observation(kind, now, now, body=value, is_json=True)


RUNNING = state("RUNNING")
DONE = state("DONE")
FAILED = state("FAILED")


@dataclass
class Script:
    """One job, driven to its end or to the end of the script (whose last answer stays if `forever`)."""

    spec: JobSpec
    now: Instant = 0
    calls: list[tuple[CallKind, Instant, Micros]] = field(default_factory=list)
    answers: Answers = field(default_factory=Answers)

    def __post_init__(self) -> None:
        self.state, self.decision = start(self.spec, "orders", self.now)

    def play(self, *answers: Answer, forever: bool = False) -> JobState:
        """Give these answers, one a call, jumping over the waits; the state is stored between any two."""
        script: Iterable[Answer] = chain(answers, repeat(answers[-1])) if forever else answers
        for answer in script:
            self._reach_a_call()
            if isinstance(self.decision, Stop):
                break
            self._call(answer)
        self._reach_a_call()
        return self.state

    def restart(self, at: Instant) -> Decision:
        """Another process finds the stored state."""
        self.now = at
        self.state, self.decision = resume(self.spec, decode_state(encode_state(self.state)), at)
        return self.decision

    def polls_at(self) -> list[float]:
        """When the polls started, in seconds."""
        return [at / SECOND for kind, at, _ in self.calls if kind is CallKind.POLL]

    def submits_at(self) -> list[float]:
        """When the submits started, in seconds."""
        return [at / SECOND for kind, at, _ in self.calls if kind is CallKind.SUBMIT]

    def _reach_a_call(self) -> None:
        while isinstance(self.decision, Wait):
            self.restart(max(self.now, self.decision.due))

    def _call(self, answer: Answer) -> None:
        assert isinstance(self.decision, Call)
        call = self.decision
        self.calls.append((call.kind, self.now, call.timeout))
        before = sending(self.state, call.kind, self.now)
        seen = answer(call.kind, self.now)
        assert seen.finished_at - self.now <= call.timeout
        self.now = seen.finished_at
        self.state, self.decision = step(self.spec, before, seen, self.now, self.answers)
        self.answers = kept(self.spec, before, self.state, seen, self.answers)
