"""What a spec would do: the polls to come, the worst case, and what looks unintended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from tarry.core import cadence, durations
from tarry.core.cadence import NoRoom
from tarry.core.observation import Observation
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.words import CallKind, Micros, Phase, WaitSource, micros, span

_FAR = 1_000_000_000
_MOST_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class PlannedPoll:
    """The n-th poll: when it starts, in microseconds after the start of the wait, and what sets that."""

    number: int
    at: Micros
    source: WaitSource


@dataclass(frozen=True, slots=True)
class Plan:
    """The polls of a job that stays pending, each answered at once and without a hint.

    `polls` holds the first of them, without jitter. `most_polls` is the largest number that can be
    made, `longest` the longest time (microseconds) that the wait can take; None: without bound.
    `warnings` are lines for a person.
    """

    polls: tuple[PlannedPoll, ...]
    most_polls: int | None
    longest: Micros | None
    warnings: tuple[str, ...]


def plan(spec: JobSpec, limit: int = 20) -> Plan:
    """The first `limit` polls to come, the worst case, and warnings."""
    total = None if spec.limits.total_duration is None else micros(spec.limits.total_duration)
    most = spec.limits.max_polls
    spent = None if most is None else _time_of(spec, most)
    within = None if total is None else _polls_within(spec, total)
    return Plan(
        polls=tuple(islice(_polls(_steady(spec)), max(0, limit))),
        most_polls=_least(most, within),
        longest=_least(spent, total),
        warnings=tuple(_warnings(spec, total, spent)),
    )


def _polls(spec: JobSpec) -> Iterator[PlannedPoll]:
    """All polls, as the cadence sets them for answers that say nothing."""
    total, most = spec.limits.total_duration, spec.limits.max_polls
    state = JobState("", Phase.WAITING, created_at=0, deadline=None if total is None else micros(total), due=0)
    schedule = cadence.first_poll(spec, state, None, 0)
    while not isinstance(schedule, NoRoom):
        now = schedule.due
        state = replace(state, polls=state.polls + 1, polled_at=now)
        yield PlannedPoll(state.polls, now, schedule.source)
        if schedule.closing or state.polls == most:
            return
        schedule = cadence.next_poll(spec, state, Observation(CallKind.POLL, now, now), now)


def _warnings(spec: JobSpec, total: Micros | None, spent: Micros | None) -> Iterator[str]:
    limits = spec.limits
    if total is None and spent is None:
        yield "no limit: a job that never ends is polled for ever"
    if total is not None and spent is not None and spent < total:
        yield (
            f"max_polls={limits.max_polls} ends the wait after {_text(spent)} at most, "
            f"before total_duration={_text(total)} does"
        )
    first, floor = spec.strategy.delay(1)[0], micros(limits.min_interval)
    if first < floor:
        yield f"min_interval={_text(floor)} raises the interval of {_text(first)} that the strategy begins with"


def _steady(spec: JobSpec) -> JobSpec:
    return spec.model_copy(update={"strategy": spec.strategy.model_copy(update={"jitter": "none"})})


def _longest(spec: JobSpec, n: int) -> Micros:
    return max(micros(spec.limits.min_interval), spec.strategy.delay(n)[0])


def _shortest(spec: JobSpec, n: int) -> Micros:
    """The wait after poll n where jitter draws the least."""
    floor, delay = micros(spec.limits.min_interval), spec.strategy.delay(n)[0]
    least = {"none": delay, "half": (delay + 1) // 2, "full": floor}[spec.strategy.jitter]
    return max(floor, least)


def _time_of(spec: JobSpec, polls: int) -> Micros:
    """The longest time from the start to the last of so many polls."""
    at, steps = micros(spec.limits.initial_delay), min(polls - 1, _steps(spec, _longest))
    at += sum(_longest(spec, n) for n in range(1, steps + 1))
    return at + (polls - 1 - steps) * _longest(spec, _FAR)


def _polls_within(spec: JobSpec, total: Micros) -> int:
    """The largest number of polls that start before the deadline, the closing poll included."""
    at, steps, n = micros(spec.limits.initial_delay), _steps(spec, _shortest), 1
    while n <= steps and at + _shortest(spec, n) < total:
        at, n = at + _shortest(spec, n), n + 1
    if n > steps:  # from here on every wait is as long, or longer: counted without a loop
        wait = _shortest(spec, n)
        more = max(0, total - 1 - at) // wait
        n, at = n + more, at + more * wait
    return n + (at + micros(spec.limits.min_interval) < total)


def _steps(spec: JobSpec, wait: Callable[[JobSpec, int], Micros]) -> int:
    """How many polls it takes until the wait no longer grows; at most 10,000 are looked at."""
    low, high, longest = 0, _MOST_STEPS, wait(spec, _FAR)
    while low < high:
        middle = (low + high) // 2
        if wait(spec, middle + 1) == longest:
            high = middle
        else:
            low = middle + 1
    return low


def _least(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _text(time: Micros) -> str:
    return durations.write(span(time))
