from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tarry import Exponential, Fixed, Limits, Linear, Phases, plan
from tarry.codec import decode_spec, decode_state, encode_spec, encode_state
from tarry.core import JobState, Observation
from tarry.core.cadence import Due, next_poll
from tarry.core.phases import entered
from tarry.core.strategies import Simple
from tarry.words import SECOND, CallKind, Phase
from tests.unit.scripted import Script, http, spec

SECONDS = st.integers(1, 50)
SIMPLE: Any = st.one_of(
    SECONDS.map(Fixed),
    st.builds(lambda initial, step: Linear(initial, step, "5m"), SECONDS, SECONDS),
    st.builds(lambda initial, factor: Exponential(initial, factor, "2m"), SECONDS, st.sampled_from([1, 1.5, 2])),
)
ENDS: Any = st.one_of(st.integers(1, 5), st.integers(1, 200).map("{}s".format))
PARTS: Any = st.lists(st.tuples(SIMPLE, ENDS), max_size=4)
ENDLESS = Limits(max_polls=None, total_duration=None)


def expected(parts: list[tuple[Simple, Any]], last: Simple, polls: int) -> list[int]:
    """The waits after so many polls, from the words of the documentation."""
    waits, now = [], 0
    n, begun, left = 0, 0, list(parts)
    for _ in range(polls):
        n += 1
        if left:
            _, end = left[0]
            over = n > end if isinstance(end, int) else now - begun >= int(end[:-1]) * SECOND
            if over:
                left, n, begun = left[1:], 1, now
        strategy = left[0][0] if left else last
        waits.append(max(SECOND, strategy.delay(n)[0]))
        now += waits[-1]
    return waits


@given(PARTS, SIMPLE, st.integers(1, 30))
def test_the_waits_are_those_of_the_phases(parts: Any, last: Simple, polls: int) -> None:
    """For any phases, also with the state and the spec stored between any two polls."""
    job = decode_spec(encode_spec(spec(strategy=Phases([*parts, last]), limits=ENDLESS)))
    state = JobState("orders", Phase.WAITING, 0, None, 0)
    waits, now = [], 0
    for _ in range(polls):
        state = replace(state, polls=state.polls + 1, polled_at=now)
        state = decode_state(encode_state(entered(job.strategy, state, now)))
        schedule = next_poll(job, state, Observation(CallKind.POLL, now, now, 200), now)
        assert isinstance(schedule, Due)
        waits.append(schedule.due - now)
        now = schedule.due
    assert waits == expected(parts, last, polls)


@given(PARTS, SIMPLE, st.integers(1, 30), st.integers(1, 2_000), st.sampled_from(["none", "half", "full"]), st.text())
def test_no_run_is_worse_than_the_plan(parts: Any, last: Simple, polls: int, total: int, jitter: str, key: str) -> None:
    """A pending job, answered at once, makes at most the planned polls in at most the planned time."""
    drawn = [(part.model_copy(update={"jitter": jitter}), end) for part, end in parts]
    for limits in (Limits(max_polls=polls, total_duration=None), Limits(total_duration=total)):
        job = spec(strategy=Phases([*drawn, last]), limits=limits)
        made, script = plan(job), Script(job)
        script.state = replace(script.state, key=key)
        script.play(http(200, {"state": "RUNNING"}), forever=True)
        at = script.polls_at()
        assert made.most_polls is None or len(at) <= made.most_polls
        assert made.most_hinted is None or len(at) <= made.most_hinted
        assert made.longest is None or at[-1] * SECOND <= made.longest
