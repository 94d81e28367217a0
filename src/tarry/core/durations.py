"""Durations, read and written in one place."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from tarry.words import DAY, HOUR, MINUTE, SECOND, Micros, micros, span

DurationLike: TypeAlias = timedelta | int | float | str
"""A `timedelta`, a number of seconds, or text such as "90s", "2h30m", "500ms" or ISO 8601 "PT5M"."""

CENTURY: Micros = 36_525 * DAY
"""100 years: the longest span that Tarry counts with."""

_LONGEST_TEXT = 60
_UNITS: dict[str, Micros] = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND, "ms": 1_000}
_ISO_UNITS: dict[str, Micros] = {"W": 7 * DAY, "D": DAY, "H": HOUR, "M": MINUTE, "S": SECOND}
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_TEXT = re.compile("".join(f"(?:{_NUMBER}{unit})?" for unit in _UNITS))
_ISO = re.compile(rf"P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?")
_WAY_OUT = 'write a number of seconds or text such as "90s", "5m", "2h30m", "500ms" or "PT5M"'


def parse(value: object) -> timedelta:
    """The duration, to the nearest microsecond: from 0 to 100 years.

    Raises `ValueError` with the way out; a length above zero that would
    round to zero is refused too.
    """
    exact = _micros_of(value)
    if exact < 0:
        raise ValueError("a duration cannot be negative")
    if exact > CENTURY:
        raise ValueError("longer than 100 years")
    if 0 < exact < 1:
        raise ValueError("shorter than a microsecond; write 0 or at least 0.000001")
    return span(round(exact))


def write(value: timedelta) -> str:
    """The duration as text that `parse` reads back exactly: "2h30m", "0.5s", "0s"."""
    left = micros(value)
    words = []
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE)):
        count, left = divmod(left, size)
        if count:
            words.append(f"{count}{unit}")
    seconds, fraction = divmod(left, SECOND)
    if fraction:
        words.append(f"{seconds}.{fraction:06d}".rstrip("0") + "s")
    elif seconds or not words:
        words.append(f"{seconds}s")
    return "".join(words)


def _micros_of(value: object) -> Fraction | int:
    """The length in microseconds, not rounded yet."""
    match value:
        case bool():
            raise ValueError(f"not a duration; {_WAY_OUT}")
        case timedelta():
            return micros(value)
        case int():
            return value * SECOND
        case float():
            return _micros_of_float(value)
        case str():
            return _micros_of_text(value)
        case _:
            raise ValueError(f"not a duration; {_WAY_OUT}")


def _micros_of_float(value: float) -> Fraction:
    # Through its shortest decimal text, so that 0.1 means a tenth of a second and not its binary neighbour.
    try:
        return Fraction(float.__repr__(value)) * SECOND
    except ValueError:
        raise ValueError(f"not a finite number; {_WAY_OUT}") from None


def _micros_of_text(text: str) -> Fraction:
    if re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError(f'text without a unit; write "{text}s" for seconds')
    if len(text) <= _LONGEST_TEXT and text:
        for pattern, units in ((_TEXT, _UNITS), (_ISO, _ISO_UNITS)):
            found = pattern.fullmatch(text)
            if found is not None and any(found.groups()):
                return sum(
                    (Fraction(n) * u for n, u in zip(found.groups(), units.values(), strict=True) if n), Fraction()
                )
    raise ValueError(f"not a duration; {_WAY_OUT}")


def _positive(value: timedelta) -> timedelta:
    if not value:
        raise ValueError("must be longer than 0")
    return value


_SCHEMA = {
    "description": 'A duration: seconds, or text such as "90s", "5m", "2h30m", "500ms", "PT5M".',
    "anyOf": [{"type": "string"}, {"type": "number"}],
}

Duration = Annotated[
    timedelta,
    BeforeValidator(parse),
    PlainSerializer(write, return_type=str, when_used="json"),
    WithJsonSchema({**_SCHEMA, "anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]}),
]
"""A duration of 0 to 100 years; a `timedelta` once validated, text such as "2h30m" in JSON."""

PositiveDuration = Annotated[
    Duration,
    AfterValidator(_positive),
    WithJsonSchema({**_SCHEMA, "anyOf": [{"type": "string"}, {"type": "number", "exclusiveMinimum": 0}]}),
]
"""A duration above 0, up to 100 years."""
