"""What is awaited in one simulation: jobs of all sorts, and what the service will make of them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tarry import Exponential, Fixed, JobSpec, Limits, Linear, Match, Phases, Request
from tarry.core.strategies import Strategy
from tarry.words import SECOND
from tests.simulation.service import Fate

_UNTIL = Match("body.state", succeeded="SUCCEEDED", failed="FAILED", pending=["QUEUED", "RUNNING"])
_HOST = "https://jobs.example.com/jobs"


@dataclass(frozen=True, slots=True)
class Story:
    """One job: its key, the spec, another spec that a later caller may bring, and its remote fate."""

    key: str
    spec: JobSpec
    other: JobSpec
    fate: Fate
    submits: bool
    idempotent: bool


def stories(chance: Random) -> list[Story]:
    """The jobs of one seed."""
    return [_story(chance, f"job{n}") for n in range(chance.choice((1, 2, 2, 2, 3)))]


def _story(chance: Random, key: str) -> Story:
    submits, idempotent = chance.random() < 0.7, chance.random() < 0.5
    end = chance.choice(("SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "FAILED", None))
    fate = Fate(chance.randint(1, 50) * SECOND, end)
    spec = _spec(chance, _limits(chance, endless=end is None), submits=submits, idempotent=idempotent)
    other = _spec(chance, _limits(chance, endless=end is None), submits=submits, idempotent=idempotent)
    return Story(key, spec, other, fate, submits, idempotent)


def _spec(chance: Random, limits: Limits, *, submits: bool, idempotent: bool) -> JobSpec:
    if not submits:
        poll = Request("GET", f"{_HOST}/{{key}}-1")
        return JobSpec(poll=poll, until=_UNTIL, strategy=_strategy(chance), limits=limits, result="body.result")
    return JobSpec(
        submit=Request("POST", _HOST, json={"name": "{key}"}, idempotent=idempotent),
        poll=Request("GET", f"{_HOST}/{{submit.body.jobId}}"),
        until=_UNTIL,
        strategy=_strategy(chance),
        limits=limits,
        result="body.result",
        cancel=Request("POST", f"{_HOST}/{{submit.body.jobId}}/cancel"),
        cancel_on=["timed_out", "exhausted", "unreachable", "cancelled"],
    )


def _strategy(chance: Random) -> Strategy:
    if chance.random() < 0.08:
        return Fixed(40)
    seconds = chance.choice((1, 2, 4, 7))
    phases = Phases([(Fixed(seconds), 3), (Fixed(2), "9s"), Exponential(seconds, maximum="12s")])
    return chance.choice((Fixed(seconds), Linear(seconds, maximum="15s"), Exponential(seconds, maximum="12s"), phases))


def _limits(chance: Random, *, endless: bool) -> Limits:
    """Bounds within which the job must end even when the remote one never does."""
    polls = chance.choice((None, None, None, 1, 4, 12))
    total = chance.choice((20, 60, 90)) if endless or chance.random() < 0.3 else 600
    return Limits(
        min_interval=chance.choice((1, 1, 2.5)),
        max_polls=polls,
        total_duration=total,
        poll_timeout=chance.choice((2, 5)),
        initial_delay=chance.choice((0, 0, 2)),
    )
