"""How long the waits are."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tarry import Exponential, Fixed
from tarry.core.strategies import jittered
from tarry.words import SECOND
from tests.worlds import DONE, RUNNING, MakeScene, spec_of


@pytest.mark.parametrize("n", [1, 46, 47, 1024, 1025, 5000, 10**9])
def test_pc_011_a_capped_exponential_never_overflows(n: int) -> None:
    """Every wait is finite, at most the maximum, and the same each time."""
    strategy = Exponential("1s", factor=2.0, maximum="5s")
    wait, _ = strategy.delay(n)
    assert wait == min(2 ** min(n - 1, 10), 5) * SECOND == strategy.delay(n)[0]


def test_pc_013_jitter_stays_between_the_floor_and_the_maximum() -> None:
    """Over 10,000 jobs at the maximum: within bounds, spread over much of them, and drawn again the same."""
    longest, floor = 30 * SECOND, SECOND
    drawn = [jittered("half", longest, floor, f"job-{n}", 50) for n in range(10_000)]
    assert longest // 2 <= min(drawn) < max(drawn) <= longest
    assert max(drawn) - min(drawn) > longest // 3
    assert drawn == [jittered("half", longest, floor, f"job-{n}", 50) for n in range(10_000)]


def test_pc_013_jitter_never_passes_the_floor() -> None:
    """With an interval that is the floor there is nothing to spread."""
    assert {jittered("half", SECOND, SECOND, f"job-{n}", n) for n in range(1, 10_000)} == {SECOND}


def test_pc_014_the_callers_strategy_is_the_one_consulted(scene: MakeScene) -> None:
    """A job done at 31 s is noticed within one interval, by the strategy that was given."""
    world = scene(*[RUNNING] * 7, DONE)
    ended = world.ends(spec_of(strategy=Fixed("5s")))
    assert world.seconds() == [0, 5, 10, 15, 20, 25, 30, 35]
    assert ended.elapsed <= timedelta(seconds=36)
