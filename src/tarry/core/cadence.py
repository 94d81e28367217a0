"""When the next call is due, and what set it.

In this order: the strategy's delay, its maximum, jitter; the server's hint and
the hint's bound; the floor; the cut to the deadline. After failures the backoff
stands in for the first three, and after a strategy that raised the default one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tarry.core import hints, phases, strategies
from tarry.core.judging import is_request_to_wait
from tarry.core.observation import Observation
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.core.texts import short
from tarry.frozen import quick, replace
from tarry.words import MINUTE, SECOND, CallKind, Instant, Micros, WaitSource, micros

BACKOFF_START: Micros = 5 * SECOND
BACKOFF_MAXIMUM: Micros = 5 * MINUTE
_CLOSING_SHARE = 10
_MAX_DOUBLINGS = 64
_PROBLEM = 160

# A member of an enumeration is found slowly by its name.
_STRATEGY, _MAXIMUM, _AT_ONCE = WaitSource.STRATEGY, WaitSource.MAXIMUM, WaitSource.AT_ONCE


@quick
@dataclass(frozen=True, slots=True)
class Due:
    """The next call is due then. `closing`: it is the last before the deadline.

    `hold_until` is the end of a wait that a 429 or 503 asked for; `problem` says how the strategy failed.
    """

    due: Instant
    source: WaitSource
    hold_until: Instant | None = None
    problem: str | None = None
    closing: bool = False


@dataclass(frozen=True, slots=True)
class NoRoom:
    """No further call has room before the deadline, or a hint ended the wait; `reason` says which hint."""

    reason: str | None = None


Schedule: TypeAlias = Due | NoRoom


_Length: TypeAlias = tuple[Micros, WaitSource, str | None]
"""A wait in the making: how long, what set it, and how the strategy failed."""

_NONE: _Length = (0, _AT_ONCE, None)


def next_poll(spec: JobSpec, state: JobState, seen: Observation, now: Instant) -> Schedule:
    """The poll after the one just answered, `state` having counted it and its failure."""
    return _schedule(spec, state, seen, now, _length(spec, state), last=state.polled_at)


def at_once(spec: JobSpec, state: JobState, seen: Observation, now: Instant) -> Schedule:
    """A call as soon as the floor and a hint of the last answer allow."""
    last = state.polled_at if seen.kind is CallKind.POLL else min(seen.started_at, now)
    return _schedule(spec, state, seen, now, _NONE, last=last, lower_bound=True)


def next_submit(spec: JobSpec, state: JobState, seen: Observation, now: Instant) -> Schedule:
    """The submit (or a baseline, or a probe) to be sent again, after the `state.streak.length`-th try in a row that was put off."""
    return _schedule(spec, state, seen, now, _length(spec, state), last=min(seen.started_at, now))


def first_poll(spec: JobSpec, state: JobState, seen: Observation | None, now: Instant) -> Schedule:
    """The first poll: at once, after `initial_delay`, or after the wait that the submit's answer asks for.

    Of the two waits the longer.
    """
    delay = micros(spec.limits.initial_delay)
    if seen is None:
        return cut(spec, state, Due(now + delay, WaitSource.START), earliest=now)
    length = (delay, WaitSource.START, None)
    return _schedule(spec, state, seen, now, length, last=None, lower_bound=True)


def earliest(spec: JobSpec, last: Instant | None, now: Instant) -> Instant:
    """The first instant that the floor leaves open after a call that started at `last`."""
    if last is None:
        return now
    first = last + spec.limits.floor
    return max(now, first)


def cut(spec: JobSpec, state: JobState, planned: Due, *, earliest: Instant) -> Schedule:
    """The wait cut to the deadline.

    A call that would come too late is brought forward to start the smaller of
    `poll_timeout` and a tenth of the whole time before the deadline: it then has
    its time. A 429's or 503's wait that ends in between moves it, the floor may
    leave it no room.
    """
    deadline = state.deadline
    if deadline is None or planned.due < deadline:
        return planned
    start = max(deadline - _lead(spec, state, deadline), earliest)
    hold = planned.hold_until
    if hold is not None and start < hold < deadline:
        start = hold
    if start >= deadline:
        return NoRoom()
    return replace(planned, due=start, source=WaitSource.DEADLINE, closing=True)


def latest(spec: JobSpec, state: JobState, now: Instant) -> Instant | None:
    """Until when a call may wait for its turn; None for as long as it takes.

    Half of the closing poll's time is left to it. A job that is past its deadline has nothing more to lose.
    """
    deadline = state.deadline
    if deadline is None or now >= deadline:
        return None
    return max(now, deadline - _lead(spec, state, deadline) // 2)


def backoff(delay: Micros, failures: int) -> Micros:
    """The wait after the k-th failure in a row: min(d, 5 s) · 2^(k-1), at most max(d, 5 min)."""
    doubled = min(delay, BACKOFF_START) << min(failures - 1, _MAX_DOUBLINGS)
    return min(doubled, max(delay, BACKOFF_MAXIMUM))


def _lead(spec: JobSpec, state: JobState, deadline: Instant) -> Micros:
    """How long before the deadline the closing poll starts."""
    return max(1, min(micros(spec.limits.poll_timeout), (deadline - state.created_at) // _CLOSING_SHARE))


def _length(spec: JobSpec, state: JobState) -> _Length:
    """The wait that the strategy asks for, with its jitter; after failures the backoff in its place.

    Where the strategy is a callable that raises, or answers nonsense, it is the default strategy's.
    """
    strategy, n = phases.in_force(spec.strategy, state)
    problem = None
    try:
        span, at_maximum = strategy.delay(n)
        source = _MAXIMUM if at_maximum else _STRATEGY
    except Exception as error:  # noqa: BLE001  # whatever the callable raises, the job is polled on, and politely
        problem = short(f"strategy: {type(error).__name__}: {error}", _PROBLEM)
        (span, _), source = strategies.DEFAULT.delay(n), WaitSource.STRATEGY_ERROR
    if state.streak.length:
        return backoff(span, state.streak.length), WaitSource.ERROR_BACKOFF, None
    if strategy.jitter != "none":
        span = strategies.jittered(strategy.jitter, span, spec.limits.floor, state.key, state.polls)
    return span, source, problem


def _schedule(
    spec: JobSpec,
    state: JobState,
    seen: Observation,
    now: Instant,
    length: _Length,
    *,
    last: Instant | None,
    lower_bound: bool = False,
) -> Schedule:
    """From the wait so far: hint, hint bound, floor, deadline."""
    hint, hold = hints.read(spec.hints, seen), None
    if hint is not None:
        maximum = micros(spec.hints.maximum)
        if hint.span > maximum and spec.hints.on_excess == "fail":
            return NoRoom(f"{hint.name} asks for a wait of {hint.span // SECOND} s, more than hints.maximum")
        waiting = is_request_to_wait(seen.status)
        length = _hinted(length, hint.span, maximum, lower_bound=lower_bound or waiting)
        hold = now + min(hint.span, maximum) if waiting else None
    span, source, problem = length
    due, open_from = now + span, earliest(spec, last, now)
    if due < open_from:
        due = open_from
        if source is not _AT_ONCE:
            source = WaitSource.FLOOR
    return cut(spec, state, Due(due, source, hold, problem), earliest=open_from)


def _hinted(length: _Length, span: Micros, maximum: Micros, *, lower_bound: bool) -> _Length:
    before, _, problem = length
    asked = min(span, maximum)
    if lower_bound and asked <= before:
        return length
    return asked, WaitSource.HINT_BOUND if span > maximum else WaitSource.HINT, problem
