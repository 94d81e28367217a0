"""What a job remembers of the answers: bounded, so that a state stays small."""

from __future__ import annotations

import math
from typing import Any

from tarry.core import expressions
from tarry.core.document import excerpt
from tarry.core.judgement import Judgement
from tarry.core.observation import Observation
from tarry.core.spec import JobSpec
from tarry.core.state import JobState, Seen
from tarry.core.texts import as_text, short, stored_size
from tarry.words import Json, Verdict

MAX_SEEN = 8
MAX_UNKNOWN = 16
_SEEN_BYTES = 300
_SEEN_OVERHEAD = 20
_UNKNOWN_BYTES = 160
_PATH, _VALUE, _STATUS, _NAME, _PROGRESS = 40, 48, 48, 32, 48
_MULTIPLE_BAD = 300
_PERCENT = 100
_UNKNOWN = Verdict.UNKNOWN


def noted(spec: JobSpec, state: JobState, judgement: Judgement | None, shown: dict[str, Json]) -> dict[str, Any]:
    """What changes by what the condition read: verdict, status, distinct values, progress."""
    if judgement is None:
        return {}
    found, status, unknown = state.seen, state.status, state.unknown
    # What is remembered was made fit for that: only another value has yet to be.
    for path, value in judgement.seen:
        found = _again(found, path, value) or _counted(found, short(path, _PATH), short(value, _VALUE))
    if judgement.value is not None and judgement.value != status:
        status = short(judgement.value, _STATUS)
    if judgement.value is not None and judgement.verdict is _UNKNOWN:
        unknown = _remembered(unknown, short(judgement.value, _NAME))
    progress = None if spec.progress is None else _progress(_searched(spec.progress, shown))
    return {
        "seen": found,
        "status": status,
        "unknown": unknown,
        "verdict": judgement.verdict,
        "progress": state.progress if progress is None else progress,
    }


def words_of(spec: JobSpec, seen: Observation, shown: dict[str, Json]) -> str | None:
    """The failure's words: what `reason` selects, else the beginning of an HTTP error."""
    words = _searched(spec.reason, shown)
    if words is not None:
        return as_text(words)
    return excerpt(seen) if seen.status is not None and seen.status >= _MULTIPLE_BAD else None


def _again(seen: tuple[Seen, ...], path: str, value: str) -> tuple[Seen, ...] | None:
    """One more of a value that was there before."""
    for index, old in enumerate(seen):
        if old.value == value and old.path == path:
            return (*seen[:index], Seen(path, value, old.times + 1), *seen[index + 1 :])
    return None


def _counted(seen: tuple[Seen, ...], path: str, value: str) -> tuple[Seen, ...]:
    """One more of this value. A new one is left out when there is no room for it."""
    again = _again(seen, path, value)
    if again is not None:
        return again
    more = (*seen, Seen(path, value, 1))
    size = sum(stored_size(one.path) + stored_size(one.value) + _SEEN_OVERHEAD for one in more)
    return more if len(more) <= MAX_SEEN and size <= _SEEN_BYTES else seen


def _remembered(unknown: tuple[str, ...], value: str) -> tuple[str, ...]:
    more = (*unknown, value)
    fits = len(more) <= MAX_UNKNOWN and sum(stored_size(one) + 3 for one in more) <= _UNKNOWN_BYTES
    return more if fits and value not in unknown else unknown


def _searched(path: str | None, shown: dict[str, Json]) -> Json:
    """What the path selects; nothing where it cannot be applied, since these are words and not verdicts."""
    if path is None:
        return None
    try:
        found: Json = expressions.search(path, shown)
    except Exception:  # noqa: BLE001  # a text for people must not fail a poll
        return None
    return found


def _progress(value: Json) -> float | str | None:
    """A share of 1, from a share or a percentage; or a short text."""
    if isinstance(value, str):
        return short(value, _PROGRESS)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if not 0 <= value <= _PERCENT:
        return None
    return float(value) if value <= 1 else value / _PERCENT
