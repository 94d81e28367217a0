from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from pydantic import TypeAdapter

from tarry.core.durations import CENTURY
from tarry.core.phases import AnyStrategy
from tarry.core.strategies import Exponential, Fixed, Jitter, Linear, Simple, jittered
from tarry.errors import SpecError
from tarry.words import MINUTE, SECOND


def seconds(strategy: Simple, count: int) -> list[float]:
    return [strategy.delay(n)[0] / SECOND for n in range(1, count + 1)]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Fixed(5), [5, 5, 5]),
        (Linear(60), [60, 120, 180]),
        (Linear("5s", "2s"), [5, 7, 9]),
        (Linear("5s", 0), [5, 5, 5]),
        (Linear("60s", maximum="100s"), [60, 100, 100]),
        (Exponential("5s"), [5, 10, 20]),
        (Exponential("2s", factor=1.5, maximum="1m"), [2, 3, 4.5]),
        (Exponential("60s", 2, "200s"), [60, 120, 200]),
        (Exponential("5s", factor=1), [5, 5, 5]),
    ],
)
def test_the_wait_after_each_poll(strategy: Simple, expected: list[float]) -> None:
    """Fixed stays, linear adds a step, exponential multiplies; the maximum cuts."""
    assert seconds(strategy, 3) == expected


@pytest.mark.parametrize("n", [1, 46, 47, 1024, 1025, 5000, 10**9])
def test_a_capped_exponential_wait_never_overflows(n: int) -> None:
    """However many polls there were, the wait is finite and at most the maximum."""
    delay, is_cut = Exponential("1s", factor=2.0, maximum="5s").delay(n)
    assert (delay, is_cut) == ((SECOND, False) if n == 1 else (5 * SECOND, True))


@pytest.mark.parametrize("factor", [1.0000000001, 1.1, 2, 1e300])
def test_an_uncapped_wait_ends_at_100_years(factor: float) -> None:
    """Without a maximum the ceiling is 100 years, and it does not count as the strategy's maximum."""
    strategy = Exponential("1h", factor=factor)
    delay, is_cut = strategy.delay(10**9)
    assert delay <= CENTURY
    assert not is_cut
    assert (delay == CENTURY) == (factor > 1.000001)
    assert Linear("36000d").delay(10**9) == (CENTURY, False)


def test_a_slowly_growing_wait_is_exact_after_a_billion_polls() -> None:
    """Linear and exponential waits show no drift at n = 10⁹."""
    assert Linear(1, "0.000001s").delay(10**9)[0] == SECOND + 10**9 - 1
    # (1 + 10⁻¹⁰)^(10⁹ - 1) is e^0.1 to ten digits: 1.105170918 s.
    assert Exponential("1s", factor=1.0000000001).delay(10**9)[0] == 1_105_171


def test_the_factor_is_the_decimal_number_that_was_written() -> None:
    """1.1 means eleven tenths, not its binary neighbour."""
    exact = Fraction(11, 10) ** 150 * SECOND
    assert Exponential("1s", factor=1.1).delay(151)[0] == round(exact)


def test_a_wait_equal_to_the_maximum_is_not_cut() -> None:
    """Only a longer wait counts as cut by the maximum."""
    assert Exponential("5s", maximum="10s").delay(2) == (10 * SECOND, False)
    assert Linear("10s", maximum="10s").delay(1) == (10 * SECOND, False)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (lambda: Fixed(0), "Fixed.interval"),
        (lambda: Linear("5s", maximum="1s"), "Linear.maximum"),
        (lambda: Exponential("1m", maximum="59s"), "Exponential.maximum"),
        (lambda: Exponential("1m", factor=0.99), "Exponential.factor"),
        (lambda: Exponential("1m", factor=True), "Exponential.factor"),
        (lambda: Exponential("1m", factor=float("nan")), "Exponential.factor"),
        (lambda: Exponential("1m", factor=float("inf")), "Exponential.factor"),
        (lambda: Exponential("1m", factor="2"), "Exponential.factor"),
        (lambda: Exponential("1m", factor=10**400), "Exponential.factor"),
        (lambda: Fixed("1s", jitter="some"), "Fixed.jitter"),
    ],
)
def test_a_strategy_that_cannot_work_is_refused(wrong: Callable[[], object], field: str) -> None:
    """Impossible numbers raise SpecError that names the field."""
    with pytest.raises(SpecError) as caught:
        wrong()
    assert caught.value.field == field


@pytest.mark.parametrize("jitter", ["none", "half", "full"])
def test_a_wait_at_or_below_the_floor_is_not_spread(jitter: Jitter) -> None:
    """Jitter never makes a wait out of nothing: the floor is for others to apply."""
    assert jittered(jitter, 500, 1000, "k", 1) == 500
    assert jittered(jitter, 1000, 1000, "k", 1) == 1000


def test_jitter_spreads_and_repeats() -> None:
    """Draws differ from poll to poll and key to key, and the same poll draws the same again."""
    draws = [jittered("full", MINUTE, SECOND, "orders", n) for n in range(1, 500)]
    assert draws == [jittered("full", MINUTE, SECOND, "orders", n) for n in range(1, 500)]
    assert len(set(draws)) > 490
    assert min(draws) < 5 * SECOND
    assert max(draws) > 55 * SECOND
    assert jittered("full", MINUTE, SECOND, "other", 1) != draws[0]
    assert jittered("none", MINUTE, SECOND, "orders", 1) == MINUTE


def test_a_key_with_any_characters_draws() -> None:
    """A key that is no valid Unicode does not stop a job."""
    assert SECOND <= jittered("full", MINUTE, SECOND, "\ud800", 1) <= MINUTE


@pytest.mark.parametrize("strategy", [Fixed(5), Linear("5s", jitter="half"), Exponential("5s", maximum="1m")])
def test_a_strategy_survives_json(strategy: Simple) -> None:
    """What was set is enough to load the same strategy again, through its class and through the union."""
    dumped = strategy.model_dump(mode="json", exclude_unset=True)
    assert type(strategy).model_validate(dumped) == strategy
    assert TypeAdapter(AnyStrategy).validate_python(dumped) == strategy


def test_what_is_no_strategy_is_refused() -> None:
    """The union says what to write instead."""
    with pytest.raises(ValueError, match="such as Fixed"):
        TypeAdapter(AnyStrategy).validate_python("5s")
