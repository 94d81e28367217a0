"""What is stored, as JSON text: states, specs, observations.

Every text carries the version of its form. One that is damaged or newer raises
`CheckpointError` saying what is wrong, and is never guessed at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import ValidationError

from tarry.core import expressions
from tarry.core.answers import answer
from tarry.core.function import Function
from tarry.core.observation import CallError, Observation
from tarry.core.spec import JobSpec
from tarry.core.state import Confirming, JobState, Seen, Streak
from tarry.core.texts import as_json_text, bounded, no_constant, storable_text
from tarry.errors import CheckpointError, SpecError
from tarry.ports import JobRow
from tarry.words import CallKind, ErrorKind, Json, Outcome, Phase, Verdict, WaitSource

VERSION = 1
BODY_LIMIT = 16 * 1024
ANSWER_LIMIT = 256 * 1024
_HEADER_LIMIT = 4 * 1024
_URL_LIMIT = 8 * 1024
_DETAIL_LIMIT = 500

_KEPT_HEADERS = frozenset(
    {
        "azure-asyncoperation",
        "content-location",
        "content-type",
        "date",
        "etag",
        "last-modified",
        "location",
        "openai-poll-after-ms",
        "operation-location",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "x-amzn-requestid",
        "x-correlation-id",
        "x-ms-request-id",
        "x-ms-retry-after-ms",
        "x-poll-interval",
        "x-progress",
        "x-request-id",
    }
)
_DROPPED_HEADERS = frozenset({"set-cookie", "www-authenticate", "proxy-authenticate", "authentication-info"})

T = TypeVar("T")


# States.


def encode_state(state: JobState) -> str:
    """The state as JSON of under 2 KB; what has its default is left out."""
    fields: dict[str, Json] = {"v": VERSION}
    for name, default in _STATE_DEFAULTS.items():
        value = getattr(state, name)
        if value != default:
            fields[name] = _WRITERS.get(name, _same)(value)
    return as_json_text(fields)


def decode_state(text: str) -> JobState:
    """The state. Raises `CheckpointError` that names what is damaged or newer."""
    fields = _versioned(text, "state")
    unknown = sorted(set(fields) - set(_READERS))
    if unknown:
        raise CheckpointError(f"state: unknown field {unknown[0]!r}: damaged, or written by a newer version")
    read: dict[str, Any] = {}
    for name, reader in _READERS.items():
        if name in fields:
            read[name] = _read(f"state.{name}", reader, fields[name])
    missing = [name for name in ("key", "phase", "created_at") if name not in read]
    if missing:
        raise CheckpointError(f"state.{missing[0]}: is missing")
    return _consistent(JobState(**{"deadline": None, "due": None, **read}))


def state_of(row: JobRow) -> JobState:
    """The state of a stored job: what the row's columns repeat, they have right.

    Raises `CheckpointError` when the row contradicts its own state, and for what the runtime reads
    later: nothing is claimed or sent for a job that cannot be carried on.
    """
    try:
        state = decode_state(row.state)
        decode_timeline(row.timeline)
        if row.submit is not None:
            _read("submit", _answer, _json(row.submit, "submit"))
    except CheckpointError as error:
        raise CheckpointError(f"job {row.key!r}: {error}") from error
    for name, stored, held in (
        ("key", row.key, state.key),
        ("phase", row.phase, state.phase),
        ("outcome", row.outcome, state.outcome),
    ):
        if stored != held:
            raise CheckpointError(f"job {row.key!r}: its row has {name} {stored}, its state {held}")
    return replace(state, polls=row.polls, polled_at=row.polled_at, due=row.due, deadline=row.deadline)


def _consistent(state: JobState) -> JobState:
    if (state.phase is Phase.DONE) != (state.outcome is not None):
        raise CheckpointError(f"state: phase {state.phase} with outcome {state.outcome}")
    return state


# Specs.


def encode_spec(spec: JobSpec) -> str:
    """What was set of the spec, as JSON."""
    return as_json_text({"v": VERSION, "spec": _set_fields(spec)})


@lru_cache(maxsize=128)  # every claim reads the spec, and a job that sleeps long is claimed for each poll
def decode_spec(text: str) -> JobSpec:
    """The spec. Raises `CheckpointError` that names what is damaged or newer."""
    fields = _versioned(text, "spec")
    try:
        return JobSpec.model_validate(fields.get("spec"))
    except (SpecError, ValidationError) as error:
        raise CheckpointError(f"spec: cannot be read: {error}") from error


def fingerprint(spec: JobSpec) -> str:
    """What makes two specs the same job: a hash over what was set of submit and input.

    Without a submit, of poll and input. A callable counts by its name and `args`,
    a secret by its reference.
    """
    fields = _set_fields(spec)
    call = "poll" if spec.submit is None else "submit"
    names = [call, "input"] + (["args"] if isinstance(getattr(spec, call), Function) else [])
    told = {name: fields[name] for name in names if name in fields}
    return hashlib.sha256(as_json_text(told, sort_keys=True).encode()).hexdigest()


def differences(old: JobSpec, new: JobSpec) -> list[str]:
    """The dotted names of the fields that differ, sorted."""
    return sorted(_differing(_set_fields(old), _set_fields(new), ""))


def _differing(old: Mapping[str, Json], new: Mapping[str, Json], prefix: str) -> list[str]:
    found: list[str] = []
    for name in {*old, *new}:
        one, other = old.get(name, _ABSENT), new.get(name, _ABSENT)
        if isinstance(one, dict) and isinstance(other, dict):
            found += _differing(one, other, f"{prefix}{name}.")
        elif one != other:
            found.append(f"{prefix}{name}")
    return found


def _set_fields(spec: JobSpec) -> dict[str, Any]:
    return spec.model_dump(mode="json", exclude_unset=True)


_ABSENT: Any = object()


# Observations.


def encode_observation(seen: Observation, keep: str | None = None) -> str:
    """What a call saw, bounded: the part of the body that `keep` selects, at most 16 KiB of it.

    Of the headers those stay that help to follow a job. A body that was cut is stored as text.
    """
    body, is_whole = bounded(_kept(seen, keep), BODY_LIMIT)
    fields: dict[str, Json] = {
        "v": VERSION,
        "kind": str(seen.kind),
        "started_at": seen.started_at,
        "finished_at": seen.finished_at,
        "status": seen.status,
        "headers": _headers(seen, lambda name: name in _KEPT_HEADERS),
        "body": body,
        "is_json": seen.is_json and is_whole,
        "url": None if seen.url is None else storable_text(seen.url)[:_URL_LIMIT],
    }
    if seen.error is not None:
        error = seen.error
        fields["error"] = {
            "kind": str(error.kind),
            "detail": storable_text(error.detail)[:_DETAIL_LIMIT],
            "sent": error.sent,
        }
    return as_json_text({name: value for name, value in fields.items() if value is not None})


def decode_observation(text: str) -> Observation:
    """What a call saw, as stored. Raises `CheckpointError`."""
    fields = _versioned(text, "observation")
    try:
        error = fields.get("error")
        return Observation(
            kind=CallKind(fields["kind"]),
            started_at=_int(fields["started_at"]),
            finished_at=_int(fields["finished_at"]),
            status=_optional(_int)(fields.get("status")),
            headers=_texts(fields.get("headers", {})),
            body=fields.get("body"),
            is_json=_bool(fields.get("is_json", False)),
            url=_optional(_str)(fields.get("url")),
            error=None
            if error is None
            else CallError(ErrorKind(error["kind"]), _str(error["detail"]), _bool(error["sent"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"observation: damaged: {error}") from error


def encode_answer(seen: Observation) -> str:
    """The submit's answer as templates and conditions see it: status, headers, body, url."""
    body, _ = bounded(seen.body, ANSWER_LIMIT)
    headers = _headers(seen, lambda name: name not in _DROPPED_HEADERS)
    return as_json_text(answer(replace(seen, headers=headers, body=body)))


def decode_timeline(text: str | None) -> list[tuple[int, str, str | None]]:
    """The last polls: milliseconds since creation, verdict, what set the wait. Raises `CheckpointError`."""
    return [] if text is None else _read("timeline", _marks, _json(text, "timeline"))


def _kept(seen: Observation, keep: str | None) -> Json:
    if keep is None or not seen.is_json:
        return seen.body
    try:
        found: Json = expressions.search(keep, seen.body)
    except Exception as error:  # noqa: BLE001  # what is kept for people must not fail a poll
        return f"[keep: {type(error).__name__}]"
    return found


def _headers(seen: Observation, is_kept: Callable[[str], bool]) -> dict[str, Any]:
    return {name: storable_text(value)[:_HEADER_LIMIT] for name, value in seen.headers.items() if is_kept(name)}


# Reading and writing.


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text, parse_constant=no_constant)
    except (ValueError, RecursionError, TypeError) as error:
        raise CheckpointError(f"{what}: damaged: {error}") from error


def _versioned(text: str, what: str) -> dict[str, Any]:
    fields = _json(text, what)
    if not isinstance(fields, dict) or not isinstance(fields.get("v"), int):
        raise CheckpointError(f"{what}: damaged: it has no version")
    version = fields.pop("v")
    if version != VERSION:
        raise CheckpointError(f"{what}: has version {version}; this version of Tarry reads {VERSION}")
    return fields


def _read(name: str, reader: Callable[[Any], T], value: object) -> T:
    try:
        return reader(value)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{name}: damaged: {error}") from error


def _int(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError(f"expected a whole number, got {type(value).__name__}")


def _count(value: object) -> int:
    count = _int(value)
    if count < 0:
        raise ValueError(f"expected a count, got {count}")
    return count


def _bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError(f"expected true or false, got {type(value).__name__}")


def _str(value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"expected a text, got {type(value).__name__}")


def _list(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    raise TypeError(f"expected a list, got {type(value).__name__}")


def _texts(value: object) -> dict[str, str]:
    if isinstance(value, dict):
        return {_str(name): _str(item) for name, item in value.items()}
    raise TypeError(f"expected texts by name, got {type(value).__name__}")


def _progress(value: object) -> float | str:
    return value if isinstance(value, str | float) else float(_int(value))


def _optional(reader: Callable[[object], T]) -> Callable[[object], T | None]:
    return lambda value: None if value is None else reader(value)


def _streak(value: object) -> Streak:
    length, spent, since, denied, missing = _list(value)
    return Streak(_count(length), _count(spent), _optional(_int)(since), _count(denied), _count(missing))


def _confirming(value: object) -> Confirming:
    outcome, times = _list(value)
    return Confirming(Outcome(outcome), _count(times))


def _seen(value: object) -> tuple[Seen, ...]:
    return tuple(Seen(_str(path), _str(text), _count(times)) for path, text, times in _list(value))


def _unknown(value: object) -> tuple[str, ...]:
    return tuple(map(_str, _list(value)))


def _marks(value: object) -> list[tuple[int, str, str | None]]:
    return [(_int(at), _str(verdict), _optional(_str)(source)) for at, verdict, source in _list(value)]


def _answer(value: Any) -> list[Any]:
    return [_optional(_int)(value["status"]), _texts(value["headers"]), value["body"], _optional(_str)(value["url"])]


def _same(value: Json) -> Json:
    return value


_READERS: dict[str, Callable[[Any], Any]] = {
    "key": _str,
    "phase": Phase,
    "created_at": _int,
    "deadline": _int,
    "due": _int,
    "wait_source": WaitSource,
    "polls": _count,
    "polled_at": _int,
    "submit_tries": _count,
    "submitted_at": _int,
    "hold_until": _int,
    "closing": _bool,
    "found": _bool,
    "streak": _streak,
    "failed_polls": _count,
    "confirming": _confirming,
    "verdict": Verdict,
    "status": _str,
    "progress": _progress,
    "seen": _seen,
    "unknown": _unknown,
    "error": _str,
    "wait": _int,
    "outcome": Outcome,
    "reason": _str,
    "finished_at": _int,
}
"""How each field of a state is read; one that is not here is not stored."""

_STATE_DEFAULTS: dict[str, Any] = {
    name: getattr(JobState("", Phase.WAITING, 0, None, None), name)
    if name not in {"key", "phase", "created_at"}
    else _ABSENT
    for name in _READERS
}

_WRITERS: dict[str, Callable[[Any], Json]] = {
    "streak": lambda streak: [streak.length, streak.spent, streak.since, streak.denied, streak.missing],
    "confirming": lambda run: [str(run.outcome), run.times],
    "seen": lambda seen: [[one.path, one.value, one.times] for one in seen],
    "unknown": list,
}
