"""Hints: the waits that a server asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from tarry.core.durations import CENTURY
from tarry.core.expressions import search
from tarry.core.observation import Observation
from tarry.core.policies import Hints, HintUnit
from tarry.frozen import quick
from tarry.words import MILLISECOND, SECOND, Instant, Micros, instant, moment


@quick
@dataclass(frozen=True, slots=True)
class Hint:
    """A wait that the server asks for, in microseconds (above 0, at most 100 years), and where it was written."""

    span: Micros
    name: str


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_WEEKDAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_TIME = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
# The three forms of RFC 9110, 5.6.7: today's, that of RFC 850, and that of C's asctime().
_DATES = (
    re.compile(f"{_DAY}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT"),
    re.compile(f"{_WEEKDAY}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT"),
    re.compile(f"{_DAY} {_MONTH} (?P<day>[ 0-9][0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)
_SECONDS = re.compile("[0-9]{1,10}")
_MILLISECONDS = re.compile("[0-9]{1,13}")
_NUMBER = re.compile(r"[0-9]{1,13}(?:\.[0-9]{1,9})?")
_LONGEST_TIMESTAMP = 40
_LEAP_SECOND = 60


def read(policy: Hints, seen: Observation) -> Hint | None:
    """The longest wait that the response asks for; None when it asks for none that makes sense."""
    if policy.path is None and _NAMES.isdisjoint(seen.headers):
        return None
    found = [Hint(min(span, CENTURY), name) for name, span in _spans(policy, seen) if span is not None and span > 0]
    return max(found, key=lambda hint: hint.span, default=None)


def _spans(policy: Hints, seen: Observation) -> Iterator[tuple[str, Micros | None]]:
    for name, parse in _HEADERS.items():
        if name in seen.headers:
            yield name, parse(seen.headers[name].strip(" \t"), _server_time(seen))
    if policy.path is not None:
        yield policy.path, _at_path(policy.path, policy.unit, seen, _server_time(seen))


def _server_time(seen: Observation) -> Instant:
    """When the server answered, by its own clock: a date that it sends is to be compared with that."""
    date = http_date(seen.headers.get("date", "").strip(" \t"), seen.finished_at)
    return seen.finished_at if date is None else date


def _retry_after(text: str, now: Instant) -> Micros | None:
    if _SECONDS.fullmatch(text):
        return int(text) * SECOND
    date = http_date(text, now)
    return None if date is None else date - now


def _seconds(text: str, now: Instant) -> Micros | None:  # noqa: ARG001  # one signature for all headers
    return int(text) * SECOND if _SECONDS.fullmatch(text) else None


def _milliseconds(text: str, now: Instant) -> Micros | None:  # noqa: ARG001  # one signature for all headers
    return int(text) * MILLISECOND if _MILLISECONDS.fullmatch(text) else None


_HEADERS: dict[str, Callable[[str, Instant], Micros | None]] = {
    "retry-after": _retry_after,
    "retry-after-ms": _milliseconds,
    "x-ms-retry-after-ms": _milliseconds,
    "openai-poll-after-ms": _milliseconds,
    "x-poll-interval": _seconds,
}


_NAMES = frozenset(_HEADERS)


def http_date(text: str, now: Instant) -> Instant | None:
    """The instant of a date in a header; None for what is none. `now` tells the century of a two-digit year."""
    for form in _DATES:
        if found := form.fullmatch(text):
            return _instant_of(found, now)
    return None


def _instant_of(found: re.Match[str], now: Instant) -> Instant | None:
    day, year, hour, minute, second = (int(found[part]) for part in ("day", "year", "hour", "minute", "second"))
    leap = second == _LEAP_SECOND
    try:
        at = datetime(
            _full_year(found["year"], year, now),
            _MONTHS.index(found["month"]) + 1,
            day,
            hour,
            minute,
            second - leap,
            tzinfo=UTC,
        )
        return instant(at + timedelta(seconds=leap))
    except (ValueError, OverflowError):
        return None


def _full_year(text: str, year: int, now: Instant) -> int:
    """The year; one of two digits is that of this century unless it lies more than 50 years ahead (RFC 9110, 5.6.7)."""
    if len(text) > 2:
        return year
    this_year = moment(now).year
    full = this_year - this_year % 100 + year
    return full - 100 if full > this_year + 50 else full


def _at_path(path: str, unit: HintUnit, seen: Observation, now: Instant) -> Micros | None:
    try:
        found = search(path, {"status": seen.status, "headers": seen.headers, "body": seen.body})
        if unit == "timestamp":
            return _timestamp(found) - now
        number = _number(found)
        if unit == "epoch":
            return round(number * SECOND) - now
        return round(number * (SECOND if unit == "s" else MILLISECOND))
    except Exception:  # noqa: BLE001  # a hint is advice: one that cannot be read is none
        return None


def _number(value: object) -> Fraction:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip(" \t")):
        return Fraction(value.strip(" \t"))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Fraction(value)
    raise ValueError


def _timestamp(value: object) -> Instant:
    if not isinstance(value, str) or not value.isascii() or len(value) > _LONGEST_TIMESTAMP:
        raise ValueError
    at = datetime.fromisoformat(value)
    return instant(at if at.tzinfo else at.replace(tzinfo=UTC))
