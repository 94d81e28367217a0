from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from pydantic import TypeAdapter

from tarry.core.durations import CENTURY, Duration, PositiveDuration, parse, write
from tarry.words import DAY, HOUR, MINUTE, SECOND, micros, span


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("90s", 90 * SECOND),
        ("5m", 5 * MINUTE),
        ("2h30m", 2 * HOUR + 30 * MINUTE),
        ("500ms", 500_000),
        ("1.5s", 1_500_000),
        ("1d", DAY),
        ("1d2h3m4s5ms", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 5_000),
        ("0s", 0),
        ("PT5M", 5 * MINUTE),
        ("P1DT2H", DAY + 2 * HOUR),
        ("P1W", 7 * DAY),
        ("PT0.5S", 500_000),
        (0, 0),
        (5, 5 * SECOND),
        (0.1, 100_000),
        (1e-6, 1),
        (2.0000004, 2 * SECOND),
        (timedelta(minutes=1), MINUTE),
        (36_525 * 86_400, CENTURY),
    ],
)
def test_a_duration_is_read_to_the_microsecond(value: object, expected: int) -> None:
    """Every accepted form comes to exactly its length."""
    assert micros(parse(value)) == expected


@pytest.mark.parametrize(
    ("value", "way_out"),
    [
        (True, "write a number of seconds"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (float("-inf"), "finite"),
        (-1, "negative"),
        (-0.5, "negative"),
        (timedelta(days=-1), "negative"),
        (timedelta.max, "100 years"),
        (1e308, "100 years"),
        (10**400, "100 years"),
        ("40000d", "100 years"),
        (1e-7, "microsecond"),
        ("0.0000001s", "microsecond"),
        ("5", 'write "5s"'),
        ("017", 'write "017s"'),
        ("1e3", "90s"),
        ("1_000", "90s"),
        ("", "90s"),
        (" ", "90s"),
        ("5s ", "90s"),
        (" 5s", "90s"),
        ("5s\n", "90s"),
        ("2h 30m", "90s"),
        ("5 parsecs", "90s"),
        ("30m2h", "90s"),
        ("5s5s", "90s"),
        ("-5s", "90s"),
        ("1:30", "90s"),
        ("5S", "90s"),
        ("\u0665s", "90s"),
        ("P", "90s"),
        ("PT", "90s"),
        ("P1DT", "90s"),
        ("P1Y", "90s"),
        ("P1M", "90s"),
        ("1" * 100 + "s", "90s"),
        (Decimal("NaN"), "90s"),
        (None, "90s"),
        ([5], "90s"),
    ],
)
def test_what_is_no_duration_is_refused_with_the_way_out(value: object, way_out: str) -> None:
    """A value that cannot be meant as a duration raises ValueError, and the message says what to write."""
    with pytest.raises(ValueError, match=way_out):
        parse(value)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0, "0s"),
        (500_000, "0.5s"),
        (1, "0.000001s"),
        (SECOND, "1s"),
        (90 * SECOND, "1m30s"),
        (2 * HOUR + 30 * MINUTE, "2h30m"),
        (DAY + 1_500_000, "1d1.5s"),
        (CENTURY, "36525d"),
    ],
)
def test_a_duration_is_written_as_text_that_reads_back(length: int, text: str) -> None:
    """Writing is exact, and parsing what was written gives the same length."""
    assert write(span(length)) == text
    assert parse(text) == span(length)


def test_a_positive_duration_refuses_zero() -> None:
    """Zero is a duration, and no positive one."""
    assert TypeAdapter(Duration).validate_python(0) == timedelta(0)
    with pytest.raises(ValueError, match="longer than 0"):
        TypeAdapter(PositiveDuration).validate_python(0)


def test_in_json_a_duration_is_text_with_a_schema_that_takes_numbers_too() -> None:
    """Dumps write text, and the published schema allows texts and non-negative numbers."""
    adapter = TypeAdapter(PositiveDuration)
    assert adapter.dump_json(timedelta(minutes=5)) == b'"5m"'
    assert adapter.json_schema()["anyOf"] == [{"type": "string"}, {"type": "number", "exclusiveMinimum": 0}]
    assert TypeAdapter(Duration).json_schema()["anyOf"][1] == {"type": "number", "minimum": 0}
