"""States as JSON text of under 2 KB: what has its default is left out."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from tarry.codec.reading import VERSION, count, flag, items, optional, read, text, versioned, whole
from tarry.core.state import Confirming, JobState, Seen, Stage, Streak
from tarry.core.texts import plain_json_text
from tarry.errors import CheckpointError
from tarry.frozen import getter
from tarry.words import Json, Outcome, Phase, Verdict, WaitSource


def encode_state(state: JobState) -> str:
    """The state as JSON of under 2 KB; what has its default is left out."""
    # The fields that most jobs have are written out, at half the price of a loop over all.
    fields: dict[str, Any] = {
        "v": VERSION,
        "key": state.key,
        "phase": str(state.phase),
        "created_at": state.created_at,
    }
    if state.deadline is not None:
        fields["deadline"] = state.deadline
    if state.due is not None:
        fields["due"] = state.due
    if state.wait_source is not _START:
        fields["wait_source"] = str(state.wait_source)
    if state.polls:
        fields["polls"] = state.polls
    if state.polled_at is not None:
        fields["polled_at"] = state.polled_at
    if state.submitted_at is not None:
        fields["submitted_at"] = state.submitted_at
    _add_findings(fields, state)
    values = _rare_values(state)
    if values != _RARE_DEFAULTS:
        named = zip(_RARE.items(), _RARE_DEFAULTS, values, strict=True)
        fields |= {name: write(value) for (name, write), default, value in named if value != default}
    return plain_json_text(fields)


def _add_findings(fields: dict[str, Any], state: JobState) -> None:
    if state.found:
        fields["found"] = state.found
    if state.verdict is not None:
        fields["verdict"] = str(state.verdict)
    if state.status is not None:
        fields["status"] = state.status
    if state.progress is not None:
        fields["progress"] = state.progress
    if state.seen:
        fields["seen"] = [(one.path, one.value, one.times) for one in state.seen]
    if state.wait is not None:
        fields["wait"] = state.wait
    if state.changed_at is not None:
        fields["changed_at"] = state.changed_at


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

_START = WaitSource.START


def _as_it_is(value: Json) -> Json:
    return value


_RARE: dict[str, Callable[[Any], Json]] = {
    "submit_tries": _as_it_is,
    "lost_at": _as_it_is,
    "hold_until": _as_it_is,
    "nudged_at": _as_it_is,
    "closing": _as_it_is,
    "hops": _as_it_is,
    "streak": lambda streak: [streak.length, streak.spent, streak.since, streak.denied, streak.missing],
    "failed_polls": _as_it_is,
    "confirming": lambda run: [str(run.outcome), run.times],
    "unknown": list,
    "error": _as_it_is,
    "stage": lambda stage: [stage.index, stage.polls, stage.since],
    "stalled": _as_it_is,
    "outcome": str,
    "reason": _as_it_is,
    "finished_at": _as_it_is,
}
"""How the other fields are written."""

_rare_values = getter(JobState, *_RARE)
_RARE_DEFAULTS = _rare_values(JobState("", Phase.WAITING, 0, None, None))
