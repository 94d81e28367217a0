"""States as JSON text of under 2 KB: what has its default is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from operator import attrgetter
from typing import Any, Self

from tarry.codec.reading import VERSION, count, flag, items, optional, read, text, versioned, whole
from tarry.core.state import Confirming, JobState, Seen, Stage, Streak
from tarry.core.texts import plain_json_text
from tarry.errors import CheckpointError
from tarry.words import Json, Outcome, Phase, Verdict, WaitSource


def encode_state(state: JobState) -> str:
    """The state as JSON of under 2 KB; what has its default is left out."""
    fields: dict[str, Any] = {"v": VERSION}
    for group in _GROUPS:
        values = group.values(state)
        if values != group.defaults:
            named = zip(group.names, group.defaults, values, strict=True)
            fields |= {name: value for name, default, value in named if value is not default and value != default}
    for name, writer in _WRITERS.items():
        if name in fields:
            fields[name] = writer(fields[name])
    return plain_json_text(fields)


def decode_state(stored: str) -> JobState:
    """The state. Raises `CheckpointError` that names what is damaged or newer."""
    fields = versioned(stored, "state")
    unknown = sorted(set(fields) - set(_READERS))
    if unknown:
        raise CheckpointError(f"state: unknown field {unknown[0]!r}: damaged, or written by a newer version")
    found: dict[str, Any] = {}
    for name, reader in _READERS.items():
        if name in fields:
            found[name] = read(f"state.{name}", reader, fields[name])
    missing = [name for name in ("key", "phase", "created_at") if name not in found]
    if missing:
        raise CheckpointError(f"state.{missing[0]}: is missing")
    return _consistent(JobState(**{"deadline": None, "due": None, **found}))


def _consistent(state: JobState) -> JobState:
    if (state.phase is Phase.DONE) != (state.outcome is not None):
        raise CheckpointError(f"state: phase {state.phase} with outcome {state.outcome}")
    return state


def _progress(value: object) -> float | str:
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"expected a number, got {value}")
    return value if isinstance(value, str | float) else float(whole(value))


def _streak(value: object) -> Streak:
    length, spent, since, denied, missing = items(value)
    return Streak(count(length), count(spent), optional(whole)(since), count(denied), count(missing))


def _confirming(value: object) -> Confirming:
    outcome, times = items(value)
    return Confirming(Outcome(outcome), count(times))


def _stage(value: object) -> Stage:
    index, polls, since = items(value)
    return Stage(count(index), count(polls), whole(since))


def _seen(stored: object) -> tuple[Seen, ...]:
    return tuple(Seen(text(path), text(value), count(times)) for path, value, times in items(stored))


def _unknown(value: object) -> tuple[str, ...]:
    return tuple(map(text, items(value)))


_READERS: dict[str, Callable[[Any], Any]] = {
    "key": text,
    "phase": Phase,
    "created_at": whole,
    "deadline": whole,
    "due": whole,
    "wait_source": WaitSource,
    "polls": count,
    "polled_at": whole,
    "submit_tries": count,
    "lost_at": whole,
    "submitted_at": whole,
    "hold_until": whole,
    "nudged_at": whole,
    "closing": flag,
    "found": count,
    "hops": count,
    "streak": _streak,
    "failed_polls": count,
    "confirming": _confirming,
    "verdict": Verdict,
    "status": text,
    "progress": _progress,
    "seen": _seen,
    "unknown": _unknown,
    "error": text,
    "wait": whole,
    "stage": _stage,
    "changed_at": whole,
    "stalled": flag,
    "outcome": Outcome,
    "reason": text,
    "finished_at": whole,
}
"""How each field of a state is read; one that is not here is not stored."""

_REQUIRED: Any = object()
_NEW = JobState("", Phase.WAITING, 0, None, None)


@dataclass(frozen=True, slots=True)
class _Group:
    """Fields that are looked at together."""

    names: tuple[str, ...]
    values: Callable[[JobState], tuple[Any, ...]]
    defaults: tuple[Any, ...]

    @classmethod
    def of(cls, *names: str) -> Self:
        defaults = (_REQUIRED if name in {"key", "phase", "created_at"} else getattr(_NEW, name) for name in names)
        return cls(names, attrgetter(*names), tuple(defaults))


_USUAL = (
    *("key", "phase", "created_at", "deadline", "due", "wait_source", "polls", "polled_at", "submitted_at"),
    *("found", "verdict", "status", "progress", "seen", "wait", "changed_at"),
)
# Of most jobs most of the others have their defaults, which one comparison shows.
_GROUPS = (_Group.of(*_USUAL), _Group.of(*(name for name in _READERS if name not in _USUAL)))

_WRITERS: dict[str, Callable[[Any], Json]] = {
    **dict.fromkeys(("phase", "wait_source", "verdict", "outcome"), str),
    "streak": lambda streak: [streak.length, streak.spent, streak.since, streak.denied, streak.missing],
    "confirming": lambda run: [str(run.outcome), run.times],
    "seen": lambda seen: [[one.path, one.value, one.times] for one in seen],
    "unknown": list,
    "stage": lambda stage: [stage.index, stage.polls, stage.since],
}
