"""What callers give, read and refused in one place: keys, spans, callbacks."""

from __future__ import annotations

import inspect
from collections.abc import Collection

from tarry.core.durations import CENTURY, DurationLike, parse, write
from tarry.core.function import Function
from tarry.core.politeness import Politeness
from tarry.core.spec import JobSpec
from tarry.errors import SpecError
from tarry.words import MINUTE, Micros, micros, span

_LONGEST_KEY = 512
_LONGEST_NAMESPACE = 255


def key_of(text: str) -> str:
    """A job's key: 1 to 512 bytes of UTF-8, printable, without blanks at the ends; else `SpecError`."""
    return _named("key", text, _LONGEST_KEY)


def namespace_of(text: str) -> str:
    """A namespace: 1 to 255 bytes of UTF-8, printable, without blanks at the ends; else `SpecError`."""
    return _named("Poller.namespace", text, _LONGEST_NAMESPACE)


def span_of(field: str, value: DurationLike, least: Micros, most: Micros) -> Micros:
    """A duration within bounds; `SpecError` names the field."""
    try:
        length = micros(parse(value))
    except ValueError as error:
        raise SpecError(field, str(error)) from None
    if not least <= length <= most:
        raise SpecError(field, f"use {write(span(least))} to {write(span(most))}")
    return length


def patience_of(value: DurationLike | None) -> Micros | None:
    """A `wait_timeout`: 0 or more, None for no end."""
    return None if value is None else span_of("wait_timeout", value, 0, CENTURY)


def keep_of(value: DurationLike | None) -> Micros | None:
    """A `keep_finished`: a minute or more, so that whoever waits has heard of the end; None for ever."""
    return None if value is None else span_of("Poller.keep_finished", value, MINUTE, CENTURY)


def polite(value: Politeness | None) -> Politeness:
    """The bounds of the calls to a host; `SpecError` for what are none."""
    if value is None:
        return Politeness()
    if not isinstance(value, Politeness):
        raise SpecError("Poller.politeness", f"expected a Politeness, got {type(value).__name__}")
    return value


def check_travels(spec: JobSpec, known: Collection[Function] = ()) -> None:
    """Refuse a spec with a callable that another process could not import by name, unless it is a `known` one."""
    for function in spec.functions:
        if function.inline and function not in known:
            raise SpecError("JobSpec", f"{function.function} cannot be imported by name; define it in a module")


def check_callback(on_event: object) -> None:
    """Refuse what is no plain callable."""
    if on_event is None or (callable(on_event) and not inspect.iscoroutinefunction(on_event)):
        return
    raise SpecError("Poller.on_event", f"expected a plain callable, not async, got {type(on_event).__name__}")


def _named(field: str, text: str, longest: int) -> str:
    if not isinstance(text, str):
        raise SpecError(field, f"expected text, got {type(text).__name__}")
    if not text.isprintable():
        raise SpecError(field, "holds control or unprintable characters; use plain text")
    if not 1 <= len(text.encode()) <= longest or text != text.strip():
        raise SpecError(field, f"use 1 to {longest} bytes of UTF-8, without blanks at the ends")
    return text
