from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tarry.core.durations import CENTURY
from tarry.core.hints import Hint, read
from tarry.core.observation import CallError, Observation
from tarry.core.policies import Hints
from tarry.words import DAY, HOUR, SECOND, CallKind, ErrorKind, instant

NOW = instant(datetime(2026, 4, 1, 12, 0, 0, tzinfo=UTC))


def answer(headers: dict[str, str] | None = None, body: Any = None, status: int = 200) -> Observation:
    return Observation(CallKind.POLL, NOW - SECOND, NOW, status=status, headers=headers or {}, body=body, is_json=True)


def hinted(**headers: str) -> Hint | None:
    return read(Hints(), answer({name.replace("_", "-"): value for name, value in headers.items()}))


@pytest.mark.parametrize(
    ("headers", "span", "name"),
    [
        ({"retry-after": "30"}, 30 * SECOND, "retry-after"),
        ({"retry-after": "  7 "}, 7 * SECOND, "retry-after"),
        ({"retry-after": "007"}, 7 * SECOND, "retry-after"),
        ({"retry-after-ms": "1500"}, 1_500_000, "retry-after-ms"),
        ({"x-ms-retry-after-ms": "20"}, 20_000, "x-ms-retry-after-ms"),
        ({"openai-poll-after-ms": "5000"}, 5 * SECOND, "openai-poll-after-ms"),
        ({"x-poll-interval": "60"}, 60 * SECOND, "x-poll-interval"),
        ({"retry-after": "Wed, 01 Apr 2026 12:00:30 GMT"}, 30 * SECOND, "retry-after"),
        ({"retry-after": "Wednesday, 01-Apr-26 12:00:30 GMT"}, 30 * SECOND, "retry-after"),
        ({"retry-after": "Wed Apr  1 12:00:30 2026"}, 30 * SECOND, "retry-after"),
        ({"retry-after": "Wed Apr 15 12:00:00 2026"}, 14 * DAY, "retry-after"),
        ({"retry-after": "Wed, 01 Apr 2026 12:00:60 GMT"}, 60 * SECOND, "retry-after"),
    ],
)
def test_each_form_of_a_hint_is_read(headers: dict[str, str], span: int, name: str) -> None:
    """Seconds, milliseconds and all three forms of an HTTP date come to a wait and the header's name."""
    assert read(Hints(), answer(headers)) == Hint(span, name)


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "-5",
        "+3",
        "1.5",
        "12.5",
        "",
        "   ",
        "abc",
        "1e3",
        "1e400",
        "nan",
        "inf",
        "5, 10",
        "120, 5",
        "1_000",
        "١٢",
        "²",
        "99999999999",
        "1" * 5000,
        "5s",
        "Fri, 31 Dec 1999 23:59:59 GMT",
        "Wed, 01 Apr 2026 12:00:00 GMT",
        "Wed, 01 Apr 2026 13:00:00 -0000",
        "Wed, 01 Apr 2026 13:00:00 +9999",
        "Wed, 31 Feb 2027 13:00:00 GMT",
        "Wed, 01 Apr 2026 25:00:00 GMT",
        "Wed, 01 Apr 2026 12:00:61 GMT",
        "Wed, 01 Apr 0000 12:00:00 GMT",
        "Wed, 01 Foo 2026 13:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:60 GMT",
        "Wednesday, 01-Apr-99 12:00:30 GMT",
    ],
)
def test_what_makes_no_sense_is_no_hint(value: str) -> None:
    """Zero, past, malformed and absurd values are ignored, without an exception."""
    assert hinted(retry_after=value) is None


@pytest.mark.parametrize("name", ["retry_after_ms", "x_ms_retry_after_ms", "openai_poll_after_ms", "x_poll_interval"])
@pytest.mark.parametrize("value", ["0", "-1", "1.5", "abc", "", "5, 10", "١٢", "9" * 20])
def test_the_other_headers_take_whole_numbers_only(name: str, value: str) -> None:
    """A count of (milli)seconds is ASCII digits above zero, or nothing."""
    assert hinted(**{name: value}) is None


def test_huge_valid_values_are_kept_up_to_100_years() -> None:
    """Bounding a hint is the policy's business; here it only cannot overflow."""
    assert hinted(retry_after="412000") == Hint(412_000 * SECOND, "retry-after")
    assert hinted(retry_after="9999999999") == Hint(CENTURY, "retry-after")
    assert hinted(retry_after="Fri, 31 Dec 9999 23:59:59 GMT") == Hint(CENTURY, "retry-after")


def test_a_date_is_measured_by_the_servers_own_clock() -> None:
    """With a `date` header a skewed clock does no harm; a broken one is passed over."""
    late = {"date": "Wed, 01 Apr 2026 10:00:00 GMT", "retry-after": "Wed, 01 Apr 2026 10:00:30 GMT"}
    assert read(Hints(), answer(late)) == Hint(30 * SECOND, "retry-after")
    broken = {"date": "yesterday", "retry-after": "Wed, 01 Apr 2026 12:00:30 GMT"}
    assert read(Hints(), answer(broken)) == Hint(30 * SECOND, "retry-after")


def test_of_several_hints_the_longest_counts() -> None:
    """However many hints there are, none of them is cut short."""
    policy = Hints(path="body.wait")
    seen = answer({"retry-after": "5", "retry-after-ms": "7000", "x-poll-interval": "abc"}, {"wait": 6})
    assert read(policy, seen) == Hint(7 * SECOND, "retry-after-ms")


@pytest.mark.parametrize(
    ("unit", "value", "span"),
    [
        ("s", 5, 5 * SECOND),
        ("s", 0.5, 500_000),
        ("s", "5", 5 * SECOND),
        ("s", " 2.5 ", 2_500_000),
        ("ms", 1500, 1_500_000),
        ("epoch", NOW // SECOND + 60, 60 * SECOND),
        ("epoch", str(NOW // SECOND + 60), 60 * SECOND),
        ("timestamp", "2026-04-01T12:01:00Z", 60 * SECOND),
        ("timestamp", "2026-04-01T12:01:00", 60 * SECOND),
        ("timestamp", "2026-04-01T15:00:00+02:00", HOUR),
        ("s", 10**300, CENTURY),
        ("s", 1e300, CENTURY),
        ("ms", 10**30, CENTURY),
        ("epoch", 10**30, CENTURY),
    ],
)
def test_a_hint_in_the_response_is_read_in_its_unit(unit: str, value: object, span: int) -> None:
    """`hints.path` takes seconds, milliseconds, epoch seconds or a timestamp, as number or text."""
    policy = Hints.model_validate({"path": "body.wait", "unit": unit})
    assert read(policy, answer(body={"wait": value})) == Hint(span, "body.wait")


@pytest.mark.parametrize("unit", ["s", "ms", "epoch", "timestamp"])
@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        True,
        None,
        "",
        "abc",
        "-5",
        "\u0661",
        float("nan"),
        float("inf"),
        [],
        {},
        "2020-01-01T00:00:00Z",
        "2" * 50,
    ],
)
def test_a_hint_in_the_response_that_makes_no_sense_is_none(unit: str, value: object) -> None:
    """Whatever a body holds, reading a hint neither raises nor waits for nothing."""
    policy = Hints.model_validate({"path": "body.wait", "unit": unit})
    assert read(policy, answer(body={"wait": value})) is None


def test_a_path_may_read_headers_and_may_fail() -> None:
    """A rate limit's reset is a header; an expression that raises is no hint."""
    reset = Hints(path='headers."x-ratelimit-reset"', unit="epoch")
    assert read(reset, answer({"x-ratelimit-reset": str(NOW // SECOND + 9)})) == Hint(
        9 * SECOND, 'headers."x-ratelimit-reset"'
    )
    assert read(Hints(path="lower(body.wait)"), answer(body={"wait": 5})) is None


def test_a_call_without_a_response_has_no_hint() -> None:
    """A transport error asks for nothing."""
    failed = Observation(CallKind.POLL, NOW, NOW, error=CallError(ErrorKind.CONNECT, "refused", sent=False))
    assert read(Hints(path="body.wait"), failed) is None


def test_a_two_digit_year_is_of_the_nearest_century() -> None:
    """RFC 850's year is this century's unless that is more than 50 years ahead."""
    assert hinted(retry_after="Thursday, 01-Apr-75 12:00:00 GMT") is not None
    assert hinted(retry_after="Thursday, 01-Apr-77 12:00:00 GMT") is None
