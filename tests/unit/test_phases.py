from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from tarry import Exponential, Fixed, JobSpec, Limits, Linear, Phases, SpecError, plan
from tarry.codec import decode_spec, encode_spec
from tarry.core.plan import Plan
from tarry.core.state import Stage
from tarry.words import HOUR, MINUTE, SECOND, WaitSource
from tests.unit.scripted import RUNNING, Script, broken, http, spec
from tests.unit.test_spec_errors import refused

ENDLESS = Limits(max_polls=None, total_duration=None)
THREE = Phases([(Fixed("2s"), 3), (Linear("10s"), "35s"), Exponential("1m", maximum="4m")])


def waits(job: JobSpec, polls: int) -> list[float]:
    """The seconds between so many polls that are answered at once with "not yet"."""
    script = Script(job)
    script.play(*[RUNNING] * polls)
    return [after - before for before, after in pairwise(script.polls_at())]


def test_one_strategy_follows_another() -> None:
    """By polls, then by time, then for ever; within each n begins at 1."""
    assert waits(spec(strategy=THREE, limits=ENDLESS), 12) == [2, 2, 2, 10, 20, 30, 60, 120, 240, 240, 240]


def test_a_duration_begins_with_the_phase() -> None:
    """A phase of 30 s sets every wait after an answer in its 30 s, whatever came before."""
    job = spec(strategy=Phases([(Fixed("1m"), 1), (Fixed("10s"), "30s"), Fixed("5m")]), limits=ENDLESS)
    assert waits(job, 6) == [60, 10, 10, 10, 300]


def test_a_wait_before_the_first_poll_spends_no_phase() -> None:
    """The first phase begins with the answer to the first poll."""
    limits = Limits(max_polls=None, total_duration=None, initial_delay="1h")
    assert waits(spec(strategy=Phases([(Fixed("10s"), "15s"), Fixed("1m")]), limits=limits), 4) == [10, 10, 60]


def test_the_phase_survives_a_restart() -> None:
    """Where the job stands is part of its state; a downtime may end a phase, never skip one."""
    script = Script(spec(strategy=Phases([(Fixed("2s"), 2), (Fixed("10s"), "1m"), Fixed("5m")]), limits=ENDLESS))
    script.play(RUNNING, RUNNING, RUNNING)
    assert script.state.stage == Stage(1, 2, 4 * SECOND)
    script.restart(2 * HOUR)
    script.play(RUNNING)
    assert script.state.stage == Stage(2, 3, 2 * HOUR)
    assert script.state.wait == 5 * MINUTE


def test_failed_polls_count_in_a_phase() -> None:
    """They are polls; the backoff begins from the wait of the phase."""
    script = Script(spec(strategy=Phases([(Fixed("2s"), 2), Fixed("1h")]), limits=ENDLESS))
    script.play(broken(), broken(), RUNNING, RUNNING)
    assert script.polls_at() == [0, 2, 6, 3606]


def test_each_phase_has_its_jitter() -> None:
    """Drawn from the key and the number of the poll, as without phases."""
    job = spec(strategy=Phases([(Fixed("10s"), 2), Fixed("10s", jitter="half")]), limits=ENDLESS)
    assert waits(job, 5)[:2] == [10, 10]
    late = waits(job, 5)[2:]
    assert len(set(late)) == 2
    assert all(5 <= wait <= 10 for wait in late)


def test_a_hint_and_the_floor_hold_in_every_phase() -> None:
    """The order of things is the same."""
    limits = Limits(max_polls=None, total_duration=None, min_interval="5s")
    script = Script(spec(strategy=Phases([(Fixed("1s"), 1), Fixed("1m")]), limits=limits))
    script.play(RUNNING, http(200, {"state": "RUNNING"}, {"retry-after": "7"}), RUNNING)
    assert script.polls_at() == [0, 5, 12]


def test_another_strategy_leaves_the_phases() -> None:
    """A spec that was changed to a simple strategy forgets them, and begins them anew on the way back."""
    script = Script(spec(strategy=THREE, limits=ENDLESS))
    script.play(*[RUNNING] * 5)
    script.spec = spec(strategy=Fixed("1s"), limits=ENDLESS)
    script.play(RUNNING)
    assert script.state.stage is None
    script.spec = spec(strategy=THREE, limits=ENDLESS)
    script.play(RUNNING)
    assert script.state.stage == Stage(0, 6, script.now - 2 * SECOND)
    assert script.state.wait == 2 * SECOND


def test_fewer_phases_than_before_leave_the_last() -> None:
    """A stored number beyond the end means the last phase."""
    script = Script(spec(strategy=THREE, limits=ENDLESS))
    script.play(*[RUNNING] * 8)
    assert script.state.stage is not None
    assert script.state.stage.index == 2
    script.spec = spec(strategy=Phases([(Fixed("1s"), 1), Fixed("9s")]), limits=ENDLESS)
    script.play(RUNNING)
    assert script.state.wait == 9 * SECOND


@pytest.mark.parametrize(
    "written",
    [
        Phases([(Fixed("2s"), 3), (Fixed("10s"), "5m"), Fixed("1m")]),
        Phases([(Fixed("2s"), 3), (Fixed("10s"), timedelta(minutes=5)), (Fixed("1m"), None)]),
        Phases.model_validate(
            {
                "parts": [
                    {"strategy": {"type": "fixed", "interval": "2s"}, "polls": 3},
                    [{"type": "fixed", "interval": "10s"}, "5m"],
                    {"type": "fixed", "interval": "1m"},
                ]
            }
        ),
    ],
    ids=["pairs", "timedelta", "json"],
)
def test_it_is_data(written: Phases) -> None:
    """However it is written, it is stored as JSON of words, and comes back equal."""
    job = spec(strategy=written)
    assert decode_spec(encode_spec(job)).strategy == written
    assert job.model_dump(mode="json", exclude_unset=True)["strategy"] == {
        "type": "phases",
        "parts": [
            {"strategy": {"type": "fixed", "interval": "2s"}, "polls": 3},
            {"strategy": {"type": "fixed", "interval": "10s"}, "duration": "5m"},
            {"strategy": {"type": "fixed", "interval": "1m"}},
        ],
    }


@pytest.mark.parametrize(
    ("parts", "field", "problem"),
    [
        ([], "Phases.parts", "at least 1 item"),
        (5, "Phases.parts", "tuple"),
        ([(Fixed("1s"), 3)], "Phases.parts", "the last phase has to hold for ever"),
        ([Fixed("1s"), Fixed("2s")], "Phases.parts", "a phase before the last never ends"),
        ([(Fixed("1s"), 0), Fixed("2s")], "Phases.parts[0].polls", "greater than or equal to 1"),
        ([(Fixed("1s"), True), Fixed("2s")], "Phases.parts[0].polls", "valid integer"),
        ([(Fixed("1s"), 1.5), Fixed("2s")], "Phases.parts", "a whole number counts polls"),
        ([(Fixed("1s"), "0s"), Fixed("2s")], "Phases.parts[0].duration", "longer than 0"),
        ([(Fixed("1s"), "x"), Fixed("2s")], "Phases.parts[0].duration", "not a duration"),
        ([(Fixed("1s"), 1, 2), Fixed("2s")], "Phases.parts", "a pair"),
        ([("1s", 1), Fixed("2s")], "Phases.parts[0].strategy", "no strategy"),
        ([(Phases([Fixed("1s")]), 1), Fixed("2s")], "Phases.parts[0].strategy.type", "no kind of it"),
        (
            [{"strategy": Fixed("1s"), "polls": 1, "duration": "1s"}, Fixed("2s")],
            "Phases.parts[0]",
            "not by both",
        ),
    ],
    ids=[
        "none",
        "number",
        "closed",
        "open",
        "zero",
        "bool",
        "float",
        "no-time",
        "no-duration",
        "triple",
        "text",
        "nested",
        "both",
    ],
)
def test_what_cannot_work_is_refused(parts: Any, field: str, problem: str) -> None:
    """At once, with the place."""
    error = refused(lambda: Phases(parts))
    assert isinstance(error, SpecError)
    assert error.field == field
    assert problem in error.problem


# The plan.


def planned(strategy: Any, limit: int = 20, **limits: Any) -> Plan:
    return plan(spec(strategy=strategy, limits=Limits(**limits)), limit)


def test_the_plan_goes_through_the_phases() -> None:
    """Each poll where the phase puts it, with what sets it."""
    made = planned(THREE, total_duration="8m")
    assert [poll.at / SECOND for poll in made.polls] == [0, 2, 4, 6, 16, 36, 66, 126, 246, 450]
    assert made.polls[-1].source is WaitSource.DEADLINE
    assert (made.most_polls, made.longest, made.warnings) == (10, 8 * MINUTE, ())


def test_the_worst_case_goes_through_the_phases() -> None:
    """Polls that are spent before the time is over are warned of."""
    made = planned(THREE, max_polls=8, total_duration="1h")
    assert made.longest == 126 * SECOND
    assert made.warnings == ("max_polls=8 ends the wait after 2m6s at most, before total_duration=1h does",)


def test_the_worst_count_takes_the_least_jitter_in_each_phase() -> None:
    """Twice the polls in the phase that may draw half."""
    made = planned(Phases([(Fixed("10s"), "1m"), Fixed("10s", jitter="half")]), total_duration="2m")
    assert made.most_polls == 1 + 6 + 11 + 1


@pytest.mark.parametrize("total", ["1s", "30s", "100s", "1000s"])
@pytest.mark.parametrize(
    "parts",
    [
        [(Fixed("3s"), 4), Fixed("20s")],
        [(Linear("1s"), "30s"), (Exponential("2s"), 3), Fixed("1m")],
        [(Fixed("1m"), "1s"), Fixed("1s")],
    ],
    ids=["polls", "mixed", "short"],
)
def test_the_worst_count_is_what_the_list_comes_to(parts: Any, total: str) -> None:
    """Without jitter, but for a closing poll that the list had no use for."""
    made = planned(Phases(parts), 10_000, total_duration=total)
    assert made.most_polls is not None
    assert 0 <= made.most_polls - len(made.polls) <= 1


def test_the_first_phase_below_the_floor_is_warned_of() -> None:
    """Its interval is named."""
    made = planned(Phases([(Fixed("0.5s"), 3), Fixed("1m")]))
    assert made.warnings == ("min_interval=1s raises the interval of 0.5s that the strategy begins with",)


def test_hints_can_bring_every_wait_down_to_the_floor() -> None:
    """How many polls that would be stands beside the planned number."""
    assert planned(Fixed("1m"), total_duration="10m").most_hinted == 600
    assert planned(Fixed("1m"), total_duration="10m", max_polls=100).most_hinted == 100
    assert planned(Fixed("1m"), max_polls=None, total_duration=None).most_hinted is None
    assert planned(Fixed("1m"), total_duration="10s", initial_delay="1m").most_hinted == 1
