from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tarry.core.durations import CENTURY, parse, write
from tarry.core.strategies import Exponential, Fixed, Jitter, Linear, Simple, jittered
from tarry.words import Micros, micros, span

LENGTHS = st.integers(min_value=1, max_value=CENTURY)
FACTORS = st.floats(min_value=1, allow_nan=False, allow_infinity=False) | st.floats(min_value=1, max_value=4)
POLLS = st.integers(min_value=1, max_value=10**9)
JITTERS = st.sampled_from(["half", "full"])


@st.composite
def growing(draw: st.DrawFn) -> Linear | Exponential:
    initial = draw(LENGTHS)
    maximum = draw(st.none() | st.integers(min_value=initial, max_value=CENTURY))
    highest = None if maximum is None else span(maximum)
    if draw(st.booleans()):
        return Exponential(span(initial), draw(FACTORS), highest)
    step = draw(st.none() | st.integers(min_value=0, max_value=CENTURY))
    return Linear(span(initial), None if step is None else span(step), highest)


def exact(strategy: Linear | Exponential, n: int) -> Fraction:
    initial = Fraction(micros(strategy.initial))
    if isinstance(strategy, Exponential):
        return initial * Fraction(repr(strategy.factor)) ** (n - 1)
    return initial + micros(strategy.initial if strategy.step is None else strategy.step) * (n - 1)


def highest(strategy: Linear | Exponential) -> Micros:
    return CENTURY if strategy.maximum is None else micros(strategy.maximum)


@given(growing(), st.integers(min_value=1, max_value=40))
def test_waits_are_exact_to_the_microsecond(strategy: Linear | Exponential, n: int) -> None:
    """For any numbers the wait is that of rational arithmetic, rounded once and then cut."""
    precise = exact(strategy, n)
    delay, is_cut = strategy.delay(n)
    assert delay == min(round(precise), highest(strategy))
    assert is_cut == (strategy.maximum is not None and precise > highest(strategy))


@given(growing() | LENGTHS.map(lambda length: Fixed(span(length))), POLLS, POLLS)
def test_waits_are_bounded_and_never_shrink(strategy: Simple, one: int, other: int) -> None:
    """Up to a billion polls a wait is finite, above 0, at most 100 years, and not shorter after a later poll."""
    earlier, later = strategy.delay(min(one, other))[0], strategy.delay(max(one, other))[0]
    assert 0 < earlier <= later <= CENTURY


@given(JITTERS, LENGTHS, st.integers(min_value=1, max_value=CENTURY), st.text(), POLLS)
def test_jitter_stays_in_its_interval_and_repeats(jitter: Jitter, d: int, floor: int, key: str, n: int) -> None:
    """A draw is never above the wait, never below the floor (or half the wait), and the same each time."""
    drawn = jittered(jitter, d, floor, key, n)
    lowest = max(Fraction(floor), Fraction(d, 2)) if jitter == "half" else Fraction(floor)
    assert min(lowest, d) <= drawn <= d
    assert drawn == jittered(jitter, d, floor, key, n)


@given(st.integers(min_value=0, max_value=CENTURY))
def test_any_duration_reads_back_as_it_was_written(length: int) -> None:
    """Text is exact for every length of 0 to 100 years, and so is a number of whole seconds."""
    assert micros(parse(write(span(length)))) == length
