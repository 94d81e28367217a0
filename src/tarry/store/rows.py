"""Between the columns of the database and the values of the ports."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import RowMapping

from tarry.errors import CheckpointError, SpecError
from tarry.ports import Event, Glance, JobRow, NewJob, StoredEvent
from tarry.words import Json, Outcome, Phase, moment

NAMESPACE_BYTES = 255
KEY_BYTES = 1024

_NUMBERS = (
    "id run fence step cmd paused polls reserved created_at floor strikes alone event_seq told",
    "owner polled_at due wake deadline max_polls finished_at cancel_requested_at",
)
_TEXTS = (
    "namespace key token fingerprint spec state",
    "nonce last submit baseline poll status_url validators output timeline carried",
)


def job_row(columns: RowMapping) -> JobRow:
    """The job in these columns; `CheckpointError` when they hold what no Tarry wrote."""
    values: dict[str, Any] = {str(name): value for name, value in columns.items()}
    _check(values, _NUMBERS, int)
    _check(values, _TEXTS, str)
    try:
        values["phase"] = Phase(values["phase"])
        values["outcome"] = None if values["outcome"] is None else Outcome(values["outcome"])
        values["labels"] = _labels(values["labels"])
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(values, str(error) if isinstance(error, ValueError) else type(error).__name__) from error
    return JobRow(**values)


def glance(columns: RowMapping) -> Glance:
    """What a waiter needs of the job in these columns; `CheckpointError` for an outcome that no Tarry wrote."""
    values: dict[str, Any] = {str(name): value for name, value in columns.items()}
    try:
        values["outcome"] = None if values["outcome"] is None else Outcome(values["outcome"])
    except ValueError as error:
        raise _damaged(values, str(error)) from error
    return Glance(**values)


def new_job(job: NewJob) -> dict[str, Any]:
    """The columns of a job to create, but for those that begin alike for all."""
    return {
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
        "wake": job.due,
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
    return text.replace("\x00", "\\u0000")


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


def _labels(text: str) -> Mapping[str, str]:
    labels = json.loads(text)
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise ValueError("labels are no texts by name")
    return labels


def _check(values: Mapping[str, Any], names: tuple[str, str], kind: type) -> None:
    always, maybe = (part.split() for part in names)
    for name in (*always, *maybe):
        value = values[name]
        if not isinstance(value, kind) and not (value is None and name in maybe):
            raise _damaged(values, f"{name} is {type(value).__name__}")


def _damaged_event(key: str, columns: RowMapping) -> CheckpointError:
    return CheckpointError(f"job {key!r}: event {columns['seq']} is damaged; it was left as it is")


def _damaged(values: Mapping[str, Any], what: str) -> CheckpointError:
    return CheckpointError(
        f"job {values.get('key', '')!r} (id {values['id']}) is damaged or was written by a newer version: {what}; "
        "it was left as it is"
    )
