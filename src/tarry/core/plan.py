"""What a spec would do: the polls to come, the worst case, and what looks unintended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from tarry.core import cadence, durations, phases
from tarry.core.cadence import NoRoom
from tarry.core.observation import Observation
from tarry.core.phases import AnyStrategy, Part, Phases, parts_of
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.core.strategies import Simple
from tarry.frozen import replace
from tarry.words import CallKind, Micros, Phase, WaitSource, micros, span

_Wait: TypeAlias = Callable[[int], Micros]

_FAR = 1_000_000_000
_ENDLESS = 10**18
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
    `most_hinted` is the largest number that can be made where hints of the server, or failed polls
    that are tried again soon, shorten every wait to the floor. `warnings` are lines for a person.
    """

    polls: tuple[PlannedPoll, ...]
    most_polls: int | None
    longest: Micros | None
    most_hinted: int | None
    warnings: tuple[str, ...]


def plan(spec: JobSpec, limit: int = 20) -> Plan:
    """The first `limit` polls to come, the worst case, and warnings."""
    total = None if spec.limits.total_duration is None else micros(spec.limits.total_duration)
    most = spec.limits.max_polls
    spent = None if most is None or spec.strategy.functions else _time_of(spec, most)
    return Plan(
        polls=tuple(islice(_polls(_steady(spec)), max(0, limit))),
        most_polls=_least(most, None if total is None else _polls_within(spec, total)),
        longest=_least(spent, total),
        most_hinted=_least(most, None if total is None else _polls_at_the_floor(spec, total)),
        warnings=tuple(_warnings(spec, total, spent)),
    )


def _polls(spec: JobSpec) -> Iterator[PlannedPoll]:
    """All polls, as the cadence sets them for answers that say nothing."""
    total, most = spec.limits.total_duration, spec.limits.max_polls
    state = JobState("", Phase.WAITING, created_at=0, deadline=None if total is None else micros(total), due=0)
    schedule = cadence.first_poll(spec, state, None, 0)
    while not isinstance(schedule, NoRoom):
        now = schedule.due
        state = phases.entered(spec.strategy, replace(state, polls=state.polls + 1, polled_at=now), now)
        yield PlannedPoll(state.polls, now, schedule.source)
        if schedule.closing or state.polls == most:
            return
        schedule = cadence.next_poll(spec, state, Observation(CallKind.POLL, now, now), now)


def _warnings(spec: JobSpec, total: Micros | None, spent: Micros | None) -> Iterator[str]:
    limits = spec.limits
    if total is None and limits.max_polls is None:
        yield "no limit: a job that never ends is polled for ever"
    if total is not None and spent is not None and spent < total:
        yield (
            f"max_polls={limits.max_polls} ends the wait after {_text(spent)} at most, "
            f"before total_duration={_text(total)} does"
        )
    if spec.strategy.functions:
        yield "the strategy is a callable: its waits are known only as they come, so the floor bounds the count"
        return
    first, floor = parts_of(spec.strategy)[0].strategy.delay(1)[0], micros(limits.min_interval)
    if first < floor:
        yield f"min_interval={_text(floor)} raises the interval of {_text(first)} that the strategy begins with"


def _steady(spec: JobSpec) -> JobSpec:
    return spec.model_copy(update={"strategy": _without_jitter(spec.strategy)})


def _without_jitter(strategy: AnyStrategy) -> AnyStrategy:
    if isinstance(strategy, Phases):
        steady = tuple(part.model_copy(update={"strategy": _without_jitter(part.strategy)}) for part in strategy.parts)
        return strategy.model_copy(update={"parts": steady})
    return strategy.model_copy(update={"jitter": "none"})


# The worst case, phase by phase.


def _longest(strategy: Simple, floor: Micros) -> _Wait:
    """The wait after poll n, without jitter."""
    return lambda n: max(floor, strategy.delay(n)[0])


def _shortest(strategy: Simple, floor: Micros) -> _Wait:
    """The wait after poll n where jitter draws the least."""
    if strategy.functions or strategy.jitter == "full":
        return lambda _: floor
    share = 1 if strategy.jitter == "none" else 2
    return lambda n: max(floor, -(-strategy.delay(n)[0] // share))


def _is_drawn(strategy: Simple) -> bool:
    return strategy.jitter != "none" or bool(strategy.functions)


def _time_of(spec: JobSpec, polls: int) -> Micros:
    """The longest time from the start to the last of so many polls."""
    at, left, floor = micros(spec.limits.initial_delay), polls - 1, micros(spec.limits.min_interval)
    for part in parts_of(spec.strategy):
        wait = _longest(part.strategy, floor)
        held = _waits_in(part, wait)
        waits = min(left, held)
        time = _sum(wait, waits, max)
        if waits == held and part.duration is not None and _is_drawn(part.strategy):
            # The last wait may begin as late as the phase lasts.
            time = max(time, micros(part.duration) - 1 + wait(_waits_in(part, _shortest(part.strategy, floor))))
        at, left = at + time, left - waits
    return at


def _polls_within(spec: JobSpec, total: Micros) -> int:
    """The largest number of polls that start before the deadline, the closing poll included."""
    at, polls, floor = micros(spec.limits.initial_delay), 1, micros(spec.limits.min_interval)
    for part in parts_of(spec.strategy):  # pragma: no branch  # the last part never ends
        wait = _shortest(part.strategy, floor)
        held = _waits_in(part, wait)
        waits = min(held, _waits_below(wait, total - at))
        time = _sum(wait, waits, min)
        if part.duration is not None and _is_drawn(part.strategy):
            # Other draws may make fewer polls and be done with the phase as soon as it is over.
            time = min(time, micros(part.duration))
        at, polls = at + time, polls + waits
        if waits < held:
            break
    return polls + (at + floor < total)


def _polls_at_the_floor(spec: JobSpec, total: Micros) -> int:
    left = total - 1 - micros(spec.limits.initial_delay)
    return 1 + max(0, left) // micros(spec.limits.min_interval)


def _waits_in(part: Part, wait: _Wait) -> int:
    """How many waits a phase sets; one that does not end sets more than any limit allows."""
    if part.polls is not None:
        return part.polls
    return _ENDLESS if part.duration is None else 1 + _waits_below(wait, micros(part.duration))


def _waits_below(wait: _Wait, time: Micros) -> int:
    """How many waits, from the first on, come to less than this time."""
    at, steps, n = 0, _steps(wait), 0
    while n < steps and at + wait(n + 1) < time:
        at, n = at + wait(n + 1), n + 1
    if n < steps:
        return n
    # From here on every wait is as long, or longer: counted without a loop.
    return n + max(0, time - 1 - at) // wait(n + 1)


def _sum(wait: _Wait, waits: int, rest: Callable[[int, int], int]) -> Micros:
    """The first so many waits together; of two polls, `rest` chooses the one whose wait stands for all the later."""
    steps = min(waits, _steps(wait))
    return sum(wait(n) for n in range(1, steps + 1)) + (waits - steps) * wait(rest(steps + 1, waits + 1))


def _steps(wait: _Wait) -> int:
    """How many polls it takes until the wait no longer grows; at most 10,000 are looked at."""
    low, high, longest = 0, _MOST_STEPS, wait(_FAR)
    while low < high:
        middle = (low + high) // 2
        if wait(middle + 1) == longest:
            high = middle
        else:
            low = middle + 1
    return low


def _least(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _text(time: Micros) -> str:
    return durations.write(span(time))
