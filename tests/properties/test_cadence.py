from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tarry import Exponential, Fixed, Hints, Limits, Linear, Request
from tarry.core import JobState, Observation, strategies
from tarry.core.cadence import Due, NoRoom, backoff, next_poll
from tarry.core.state import Streak
from tarry.words import MINUTE, SECOND, CallKind, Phase, WaitSource, micros
from tests.unit.scripted import GET, spec

SPANS = st.integers(1, 10**13)
SHORT = st.integers(1, 10**9)
COUNTS = st.one_of(st.integers(1, 100), st.sampled_from([10**3, 10**6, 10**9]))
JITTERS: Any = st.sampled_from(["none", "half", "full"])


def text(span: int) -> str:
    """The microseconds as a duration's text."""
    return f"{span // SECOND}.{span % SECOND:06d}s"


@st.composite
def any_strategy(draw: st.DrawFn) -> Any:
    initial, jitter = draw(SHORT), draw(JITTERS)
    maximum = draw(st.none() | st.integers(initial, 10**13).map(text))
    return draw(
        st.sampled_from(
            [
                Fixed(text(initial), jitter=jitter),
                Linear(text(initial), text(draw(SHORT)), maximum, jitter=jitter),
                Exponential(text(initial), draw(st.sampled_from([1, 1.1, 1.5, 2, 10])), maximum, jitter=jitter),
            ]
        )
    )


@st.composite
def moments(draw: st.DrawFn) -> tuple[Any, JobState, Observation, int]:
    """A spec, a state that has counted a poll, what the poll saw, and now."""
    total = draw(st.none() | SPANS)
    limits = Limits(
        min_interval=text(draw(SHORT)),
        max_polls=None,
        total_duration=None if total is None else text(total),
        poll_timeout=text(draw(SHORT)),
    )
    job = spec(strategy=draw(any_strategy()), limits=limits, hints=Hints(maximum=text(draw(SPANS))))
    started = draw(st.integers(0, 10**13 if total is None else total - 1))
    now = started + draw(st.integers(0, 10**6 if total is None else min(10**6, total - 1 - started)))
    failures = draw(st.sampled_from([0, 0, 1, 5, 10**6]))
    job_state = JobState(
        "orders", Phase.WAITING, 0, total, now, polls=draw(COUNTS), polled_at=started, streak=Streak(length=failures)
    )
    headers = draw(st.none() | st.integers(0, 10**10 - 1))
    status = draw(st.sampled_from([200, 202, 429, 500, 503]))
    seen = Observation(
        CallKind.POLL, started, now, status, {} if headers is None else {"retry-after": str(headers)}, None, False
    )
    return job, job_state, seen, now


@given(moments())
def test_the_floor_holds_and_the_deadline_is_never_passed(moment: tuple[Any, JobState, Observation, int]) -> None:
    """On every path: strategy, backoff, hint, closing poll."""
    job, job_state, seen, now = moment
    schedule = next_poll(job, job_state, seen, now)
    floor = micros(job.limits.min_interval)
    assert job_state.polled_at is not None
    if isinstance(schedule, NoRoom):
        assert job_state.deadline is not None
        assert job_state.polled_at + floor >= job_state.deadline
        return
    assert schedule.due >= max(now, job_state.polled_at + floor)
    if job_state.deadline is not None:
        assert schedule.due < job_state.deadline
    assert schedule.closing == (schedule.source is WaitSource.DEADLINE)


@given(moments())
def test_the_order_is_kept(moment: tuple[Any, JobState, Observation, int]) -> None:
    """Strategy, maximum, jitter, hint, hint bound, floor, deadline: computed here once more, step by step."""
    job, job_state, seen, now = moment
    n, failures = job_state.polls, job_state.streak.length
    floor, bound = micros(job.limits.min_interval), micros(job.hints.maximum)
    delay, _ = job.strategy.delay(n)
    expected = (
        backoff(delay, failures) if failures else strategies.jittered(job.strategy.jitter, delay, floor, "orders", n)
    )
    hint = min(int(seen.headers.get("retry-after", "0")) * SECOND, bound)
    if hint:
        expected = max(expected, hint) if seen.status in {429, 503} else hint
    due = max(now + expected, (job_state.polled_at or 0) + floor)
    schedule = next_poll(job, job_state, seen, now)
    if job_state.deadline is None or due < job_state.deadline:
        assert isinstance(schedule, Due)
        assert schedule.due == due
    else:
        assert isinstance(schedule, NoRoom) or schedule.closing


@given(moments())
def test_a_closing_poll_keeps_its_lead(moment: tuple[Any, JobState, Observation, int]) -> None:
    """It never starts earlier than its share before the deadline."""
    job, job_state, seen, now = moment
    schedule = next_poll(job, job_state, seen, now)
    if isinstance(schedule, Due) and schedule.closing:
        assert job_state.deadline is not None
        lead = max(1, min(micros(job.limits.poll_timeout), job_state.deadline // 10))
        assert schedule.due >= job_state.deadline - lead


@given(moments())
def test_the_same_moment_gives_the_same_wait(moment: tuple[Any, JobState, Observation, int]) -> None:
    """A replay decides as before."""
    assert next_poll(*moment) == next_poll(*moment)


@given(SPANS, st.integers(1, 10**9))
def test_the_backoff_grows_to_its_bound(delay: int, failures: int) -> None:
    """Monotone, and exact at any count."""
    wait, longer = backoff(delay, failures), backoff(delay, failures + 1)
    assert wait <= longer <= max(delay, 5 * MINUTE)
    assert wait == min(min(delay, 5 * SECOND) * 2 ** min(failures - 1, 70), max(delay, 5 * MINUTE))


@given(any_strategy(), COUNTS)
def test_the_wait_after_poll_n_is_exact(strategy: Any, n: int) -> None:
    """Up to a thousand million polls, without a limit in the way."""
    job = spec(
        strategy=strategy.model_copy(update={"jitter": "none"}),
        limits=Limits(min_interval="0.000001s", max_polls=None, total_duration=None),
        poll=Request("GET", GET.url),
    )
    job_state = JobState("orders", Phase.WAITING, 0, None, 0, polls=n, polled_at=0)
    schedule = next_poll(job, job_state, Observation(CallKind.POLL, 0, 0, 200), 0)
    assert isinstance(schedule, Due)
    assert schedule.due == max(1, strategy.delay(n)[0])
