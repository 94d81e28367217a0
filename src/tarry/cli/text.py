"""Texts for a person: escaped, short, and the same on every machine."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any

from tarry.core.results import Job
from tarry.words import ErrorKind

_ESCAPED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

# Errors are stored as `kind: words`. These kinds are told by their words already, or are no words for a person.
_TOLD_BY_ITS_WORDS = "|".join(
    kind for kind in ErrorKind if kind not in {ErrorKind.CALLABLE, ErrorKind.CONDITION, ErrorKind.REDIRECT}
)
_KIND = re.compile(rf"(^|(?:submit|failed|last error): )(?:{_TOLD_BY_ITS_WORDS}): (?=\S)")
# What a program passes to the Poller, a person at a shell puts into the environment.
_SECRET = re.compile(r"give (?:it|the secret) to the Poller as secrets=\{'([^']+)': …\}")


def readable(error: str) -> str:
    """An error for a person: `HTTP 503`, not `http_status: HTTP 503`; also where it is quoted in a reason."""
    return _SECRET.sub(r"set the environment variable \1", _KIND.sub(r"\1", error))


def plain(text: object, width: int | None = None) -> str:
    """The text on one line, with everything that could move a cursor or forge a line escaped.

    Control characters, text-direction marks, line separators and lone surrogates are
    shown as in a Python literal; `width` cuts with an ellipsis.
    """
    shown = "".join(_escape(char) if unicodedata.category(char) in _ESCAPED else char for char in str(text))
    return shown if width is None or len(shown) <= width else shown[: max(width - 1, 0)] + "…"


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def as_json(value: Any, *, indent: int | None = None) -> str:
    """The value as ASCII JSON, which no terminal can misread."""
    return json.dumps(value, indent=indent, default=str)


def readable_json(value: Any, width: int | None = None) -> str:
    """The value as one line of JSON for a person; letters of all languages stay as they are."""
    return plain(json.dumps(value, ensure_ascii=False, default=str), width)


def duration(span: timedelta) -> str:
    """A span in the two units that matter: `0.4s`, `2s`, `1m 05s`, `2h 03m`, `3d 04h`; never negative."""
    seconds = max(span.total_seconds(), 0.0)
    if seconds < 59.95:
        return f"{seconds:.1f}s".replace(".0s", "s")
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h {minutes:02d}m"
    days, hours = divmod(hours, 24)
    return f"{days}d {hours:02d}h"


def time_of_day(at: datetime) -> str:
    """`18:30:12Z`: UTC, so that lines of two machines can be compared."""
    return at.astimezone(UTC).strftime("%H:%M:%SZ")


def date_and_time(at: datetime) -> str:
    """`2026-03-01 18:30:12Z`."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def progress(value: float | str | None) -> str:
    """`40 %` for 0.4; a text as it is; nothing for nothing."""
    if value is None:
        return ""
    return plain(value, 40) if isinstance(value, str) else f"{value * 100:.0f} %"


def count(number: int, noun: str) -> str:
    """`1 poll`, `2 polls`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def standing(job: Job) -> str:
    """Where a job is, in one word: its outcome, or that it is paused, quarantined or to be cancelled, or its phase."""
    if job.outcome is None and job.paused:
        return "quarantined" if job.quarantined else "paused"
    return str(job.outcome or ("cancelling" if job.cancel_requested_at else job.phase))
