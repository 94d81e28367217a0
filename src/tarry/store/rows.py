"""Between the columns of the database and the values of the ports."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

from sqlalchemy import RowMapping

from tarry.core.moves import POLLED
from tarry.errors import CheckpointError, SpecError
from tarry.ports import Event, Glance, JobRow, NewJob, StoredEvent
from tarry.words import Instant, Json, Outcome, Phase, moment

NAMESPACE_BYTES = 255
KEY_BYTES = 1024

JOB_FIELDS = tuple(field.name for field in fields(JobRow))
"""The order in which a job's columns are read."""

_AT = {name: place for place, name in enumerate(JOB_FIELDS)}
_NUMBERS = frozenset(each.name for each in fields(JobRow) if str(each.type).startswith(("int", "Instant", "Micros")))
_MAY_BE_NONE = frozenset(each.name for each in fields(JobRow) if str(each.type).endswith("| None"))
_PHASES: Mapping[str, Phase] = {phase.value: phase for phase in Phase}


def job_row(columns: Sequence[Any]) -> JobRow:
    """The job in these columns, in the order of its fields; `CheckpointError` when they hold what no Tarry wrote."""
    return JobRow(*_checked(columns))


def claimed_row(columns: Sequence[Any], owner: int, nonce: str, permit_until: Instant | None) -> JobRow:
    """As `job_row`; a job that nobody holds is as this owner's claim leaves it.

    That permits the poll, too, of one that waits for it until then.
    """
    values = _checked(columns)
    if values[_AT["owner"]] is None:
        values[_AT["owner"]], values[_AT["nonce"]], values[_AT["wake"]] = owner, nonce, None
        values[_AT["fence"]] += 1
        values[_AT["step"]] += 1
        values[_AT["reserved"]] = int(permit_until is not None and _wants_a_poll(values, permit_until))
    return JobRow(*values)


def _wants_a_poll(values: Sequence[Any], until: Instant) -> bool:
    phase, due, polls, most = (values[_AT[name]] for name in ("phase", "due", "polls", "max_polls"))
    is_open = most is None or polls < most
    return phase in POLLED and is_open and due is not None and due <= until


def glance(columns: Sequence[Any]) -> Glance:
    """What a waiter needs of the job in these columns; `CheckpointError` for an outcome that no Tarry wrote."""
    number, owner, wake, cmd, step, outcome = columns
    try:
        return Glance(number, owner, wake, cmd, step, None if outcome is None else Outcome(outcome))
    except ValueError as error:
        raise _damaged("", number, str(error)) from error


def new_job(job: NewJob, owner: int | None = None) -> dict[str, Any]:
    """The columns of a job to create, but for those that begin alike for all; an owner takes it at once."""
    is_taken = owner is not None
    is_open = job.max_polls is None or job.polls < job.max_polls
    return {
        "owner": owner,
        "nonce": job.token if is_taken else None,
        "fence": int(is_taken),
        "step": int(is_taken),
        "reserved": int(is_taken and is_open and job.reserved == 1),
        "namespace": job.namespace,
        "key": job.key,
        "token": job.token,
        "fingerprint": clean(job.fingerprint),
        "spec": spec_hash(job.spec),
        "labels": json_text(dict(job.labels)),
        "state": clean(job.state),
        "phase": job.phase.value,
        "created_at": job.created_at,
        "due": job.due,
        "wake": None if is_taken else job.due,
        "deadline": job.deadline,
        "max_polls": job.max_polls,
        "floor": job.floor,
        "polls": job.polls,
        "polled_at": job.polled_at,
        "last": cleaned(job.last),
        "submit": cleaned(job.submit),
        "timeline": job.timeline,
        "carried": cleaned(job.carried),
        "baseline": cleaned(job.baseline),
        "poll": cleaned(job.poll),
        "status_url": cleaned(job.status_url),
        "event_seq": len(job.events),
    }


def event_rows(job: int, events: Sequence[Event]) -> list[tuple[int, int, str, int, str]]:
    """The columns of a job's newest events: the job, how many come after, the kind, the time and the data."""
    last = len(events) - 1
    return [(job, last - n, clean(e.kind), e.at, json_text(dict(e.data))) for n, e in enumerate(events)]


def stored_event(key: str, columns: RowMapping) -> StoredEvent:
    """The event in these columns; `CheckpointError` when they hold what no Tarry wrote."""
    try:
        data = json.loads(columns["data"])
        moment(columns["at"])
        sound = isinstance(columns["kind"], str) and isinstance(columns["at"], int) and isinstance(data, dict)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise _damaged_event(key, columns) from error
    if not sound:
        raise _damaged_event(key, columns)
    return StoredEvent(key, columns["run"], columns["seq"], columns["kind"], columns["at"], data)


def check_key(namespace: str, key: str) -> None:
    """Raise `SpecError` for what not every database can hold and find again, byte for byte."""
    for field, text, most in (("namespace", namespace, NAMESPACE_BYTES), ("key", key, KEY_BYTES)):
        if not fits(text, most):
            raise SpecError(field, f"use at most {most} bytes of UTF-8, without NUL or lone surrogates")


def fits(text: str, most: int = KEY_BYTES) -> bool:
    """Whether a key of at most `most` bytes can be stored as it is."""
    try:
        return len(text.encode()) <= most and "\x00" not in text
    except UnicodeEncodeError:
        return False


def clean(text: str) -> str:
    """The text without what some databases refuse: NUL and lone surrogates become JSON's escapes for them."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-8", "backslashreplace").decode()
    # Looked for first: to look is much cheaper than to replace nothing.
    return text.replace("\x00", "\\u0000") if "\x00" in text else text


def cleaned(text: str | None) -> str | None:
    """As `clean`; None stays None."""
    return None if text is None else clean(text)


def json_text(value: Json) -> str:
    """Canonical JSON in ASCII; `ValueError` for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def label_fragments(name: str, value: str) -> tuple[str, str]:
    """What stored labels contain, one or the other, exactly when they hold this pair.

    Stored labels are canonical JSON: a quote inside a name or value is
    escaped there, so the bracket or comma before the name cannot be part of either.
    """
    pair = json_text({name: value})[1:-1]
    return f"{{{pair}", f",{pair}"


def spec_hash(spec: str) -> str:
    """What a spec is stored under: equal texts are stored once."""
    return hashlib.sha256(clean(spec).encode()).hexdigest()


def _checked(columns: Sequence[Any]) -> list[Any]:
    """The values of a job's fields."""
    values = list(columns)
    try:
        wrong = _misfit(tuple(map(type, values)))
        if wrong is not None:
            raise TypeError(f"{wrong} is {type(values[_AT[wrong]]).__name__}")  # noqa: TRY301 - one way out for all damage
        phase, outcome, labels = _AT["phase"], _AT["outcome"], _AT["labels"]
        values[phase] = _PHASES.get(values[phase]) or Phase(values[phase])
        values[outcome] = None if values[outcome] is None else Outcome(values[outcome])
        values[labels] = {} if values[labels] == "{}" else _labels(values[labels])
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(columns[_AT["key"]], columns[_AT["id"]], str(error)) from error
    return values


@lru_cache(maxsize=1024)
def _misfit(kinds: tuple[type, ...]) -> str | None:
    """The first field of a job that cannot have a value of its type. Most rows have the types of another."""
    for name, kind in zip(JOB_FIELDS, kinds, strict=True):
        fine = issubclass(kind, int if name in _NUMBERS else str)
        if not fine and not (kind is type(None) and name in _MAY_BE_NONE):
            return name
    return None


def _labels(text: str) -> Mapping[str, str]:
    labels = json.loads(text)
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise ValueError("labels are no texts by name")
    return labels


def _damaged_event(key: str, columns: RowMapping) -> CheckpointError:
    return CheckpointError(f"job {key!r}: event {columns['seq']} is damaged; it was left as it is")


def _damaged(key: object, number: object, what: str) -> CheckpointError:
    return CheckpointError(
        f"job {key!r} (id {number}) is damaged or was written by a newer version: {what}; it was left as it is"
    )
