"""What a job remembers of the answers: bounded, so that a state stays small."""

from __future__ import annotations

import math
from typing import TypeAlias

from tarry.core import expressions
from tarry.core.document import excerpt
from tarry.core.judgement import Judgement
from tarry.core.observation import Observation
from tarry.core.spec import JobSpec
from tarry.core.state import JobState, Seen
from tarry.core.texts import as_text, short, stored_size
from tarry.frozen import copier, replace
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

_once_more = copier(Seen, "times")

Notes: TypeAlias = tuple[tuple[Seen, ...], str | None, tuple[str, ...], float | str | None]
"""Distinct values, status, unknown values, progress."""


def noted(spec: JobSpec, state: JobState, judgement: Judgement, shown: dict[str, Json]) -> JobState:
    """The state with what the condition read: verdict, status, distinct values, progress."""
    seen, status, unknown, progress = notes(spec, state, judgement, shown)
    return replace(state, verdict=judgement.verdict, seen=seen, status=status, unknown=unknown, progress=progress)


def notes(spec: JobSpec, state: JobState, judgement: Judgement, shown: dict[str, Json] | None) -> Notes:
    """What is remembered by the end of an answer that was read; one that was not (None) shows what the last one did."""
    seen, status, unknown, progress = state.seen, state.status, state.unknown, state.progress
    # What is remembered was made fit for that: only another value has yet to be.
    for path, value in judgement.seen:
        seen = _again(seen, path, value) or _counted(seen, short(path, _PATH), short(value, _VALUE))
    if judgement.value is not None:
        if judgement.value != status:
            status = short(judgement.value, _STATUS)
        if judgement.verdict is _UNKNOWN:
            unknown = _remembered(unknown, short(judgement.value, _NAME))
    if spec.progress is not None:
        found = _progress(_searched(spec.progress, shown))
        progress = progress if found is None else found
    return seen, status, unknown, progress


def words_of(spec: JobSpec, seen: Observation, shown: dict[str, Json] | None) -> str | None:
    """The failure's words: what `reason` selects, else the beginning of an HTTP error."""
    words = _searched(spec.reason, shown)
    if words is not None:
        return as_text(words)
    return excerpt(seen) if seen.status is not None and seen.status >= _MULTIPLE_BAD else None


def _again(seen: tuple[Seen, ...], path: str, value: str) -> tuple[Seen, ...] | None:
    """One more of a value that was there before."""
    for index, old in enumerate(seen):
        if old.value == value and old.path == path:
            again = list(seen)
            again[index] = _once_more(old, times=old.times + 1)
            return tuple(again)
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


def _searched(path: str | None, shown: dict[str, Json] | None) -> Json:
    """What the path selects; nothing where it cannot be applied, since these are words and not verdicts."""
    if path is None or shown is None:
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
