"""Hints are advice from strangers: whatever a server sends, the waits stay sane."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

from hypothesis import example, given
from hypothesis import strategies as st

from tarry import Fixed, Hints, Limits
from tarry.core import JobState, Observation
from tarry.core.cadence import Due, NoRoom, first_poll, next_poll
from tarry.core.durations import CENTURY
from tarry.core.hints import read
from tarry.core.policies import HintUnit
from tarry.core.state import Streak
from tarry.words import HOUR, MINUTE, SECOND, CallKind, Phase
from tests.unit.scripted import POST, spec

NOW = 1_790_000_000_000_000
NAMES = ("retry-after", "retry-after-ms", "x-ms-retry-after-ms", "openai-poll-after-ms", "x-poll-interval", "date")
NUMBERS = st.integers(-(10**20), 10**20) | st.floats()
DATES = st.datetimes().map(lambda at: at.strftime("%a, %d %b %Y %H:%M:%S GMT"))
WORDS = st.one_of(
    st.text(max_size=40),
    st.text("0123456789.-+eE ,:GMTnaifx", max_size=24),
    NUMBERS.map(str),
    DATES,
    st.sampled_from(["", "0", "-0", "nan", "inf", "1e400", "9" * 400, "²", "0x10", "1_0", "2026-13-40T99:99:99Z"]),
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2)
)  # fmt: skip
FLOOR, MAXIMUM, STRATEGY = 3 * SECOND, 7 * MINUTE, 20 * SECOND


@st.composite
def answers(draw: st.DrawFn, kind: CallKind = CallKind.POLL) -> Observation:
    """A response with any text in any header that may hold a hint, and any JSON where the path looks."""
    headers = draw(st.dictionaries(st.sampled_from(NAMES), WORDS, max_size=4))
    status = draw(st.sampled_from([200, 202, 429, 500, 503, 404]))
    body = {"wait": draw(VALUES)}
    return Observation(kind, NOW - SECOND, NOW, status, headers, body, is_json=True)


POLICIES: Any = st.builds(
    lambda unit, path: Hints(maximum="7m", path=path, unit=unit),
    st.sampled_from(get_args(HintUnit)),
    st.sampled_from([None, "body.wait", "body", 'headers."retry-after"', "status"]),
)


def awkward(value: Any) -> Observation:
    return Observation(CallKind.POLL, NOW, NOW, 200, {"retry-after": str(value)}, {"wait": value}, is_json=True)


@given(POLICIES, answers())
@example(Hints(path="body.wait"), awkward(math.nan))
@example(Hints(path="body.wait", unit="ms"), awkward(math.inf))
@example(Hints(path="body.wait", unit="epoch"), awkward(-math.inf))
@example(Hints(path="body.wait", unit="epoch"), awkward(10**400))
@example(Hints(path="body.wait", unit="timestamp"), awkward("0001-01-01T00:00:00+23:59"))
@example(Hints(path="body.wait", unit="timestamp"), awkward("9999-12-31T23:59:59-23:59"))
def test_a_hint_is_a_wait_or_none(policy: Hints, seen: Observation) -> None:
    """A whole number of microseconds above 0, at most 100 years; and nothing raises."""
    hint = read(policy, seen)
    if hint is not None:
        assert type(hint.span) is int
        assert 0 < hint.span <= CENTURY
        json.dumps(hint.span)


@given(POLICIES, answers(), st.sampled_from([0, 0, 1, 9, 10**6]))
def test_no_answer_makes_a_hot_loop_or_an_endless_wait(policy: Hints, seen: Observation, failures: int) -> None:
    """The floor below, and above it the longest of the bound, the strategy's wait and the backoff's."""
    limits = Limits(min_interval="3s", max_polls=None, total_duration=None)
    job = spec(strategy=Fixed("20s"), limits=limits, hints=policy)
    state = JobState("orders", Phase.WAITING, NOW, None, NOW, polls=5, polled_at=NOW - SECOND, streak=Streak(failures))
    schedule = next_poll(job, state, seen, NOW)
    assert isinstance(schedule, Due)
    assert NOW - SECOND + FLOOR <= schedule.due <= NOW + max(MAXIMUM, STRATEGY, 5 * MINUTE)


@given(POLICIES, answers(CallKind.SUBMIT))
def test_the_answer_to_the_submit_only_delays(policy: Hints, seen: Observation) -> None:
    """The first poll comes between the initial delay and the bound."""
    job = spec(submit=POST, limits=Limits(initial_delay="2s"), hints=policy)
    state = JobState("orders", Phase.WAITING, NOW, NOW + 24 * HOUR, NOW, submitted_at=NOW)
    schedule = first_poll(job, state, seen, NOW)
    assert isinstance(schedule, Due)
    assert NOW + 2 * SECOND <= schedule.due <= NOW + MAXIMUM


@given(answers(), st.integers(1, 10**4))
def test_a_bound_that_ends_the_wait_names_the_hint(seen: Observation, seconds: int) -> None:
    """With `on_excess="fail"` the wait ends exactly where a hint is above the bound."""
    policy = Hints(maximum=seconds, on_excess="fail", path="body.wait")
    job = spec(strategy=Fixed("20s"), limits=Limits(max_polls=None, total_duration=None), hints=policy)
    state = JobState("orders", Phase.WAITING, NOW, None, NOW, polls=5, polled_at=NOW - SECOND)
    hint, schedule = read(policy, seen), next_poll(job, state, seen, NOW)
    if hint is None or hint.span <= seconds * SECOND:
        assert isinstance(schedule, Due)
    else:
        assert isinstance(schedule, NoRoom)
        assert str(schedule.reason).startswith(f"{hint.name} asks for a wait of ")
