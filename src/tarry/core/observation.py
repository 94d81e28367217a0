"""What a call saw: a response, or a classified error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from tarry.frozen import copier, quick, replace
from tarry.words import CallKind, ErrorKind, Instant, Json


@dataclass(frozen=True, slots=True)
class CallError:
    """Why a call brought no usable answer.

    `detail` is one line for a person, free of secrets. `sent` is false only
    when no byte of the request can have left.
    """

    kind: ErrorKind
    detail: str
    sent: bool = True


@quick
@dataclass(frozen=True, slots=True)
class Observation:
    """What one call saw.

    Of a response: `status` (the HTTP code), `headers` (lower-case names),
    `body` (the JSON value; text when it was not JSON; None when it was empty, or left out for whoever knows it)
    and `is_json`. A polled callable has no status: its return value is `body`.
    Of a call without a response: `error`. `carried` is what a callable hands to its
    next call, as JSON text. `digest` is a number that answers share whose bodies are the same, byte for byte,
    where that is known without going through it; it holds in this process alone. `text` is what a JSON body was read
    from, where it says all of it and nothing else; a copy with another body has none. `started_at` and `finished_at`
    are instants of the clock that made the call.
    """

    kind: CallKind
    started_at: Instant
    finished_at: Instant
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Json = None
    is_json: bool = False
    url: str | None = None
    error: CallError | None = None
    carried: str | None = None
    digest: int | None = field(default=None, compare=False, repr=False)
    text: str | None = field(default=None, compare=False, repr=False)


_with_body = copier(Observation, "body")


def saying(seen: Observation, body: Json, **changes: Any) -> Observation:
    """The observation with another body, which is not what its text tells, and other changes."""
    return replace(seen, body=body, text=None, **changes)


def no_earlier(seen: Observation, sent: Instant) -> Observation:
    """The observation of a call that left at `sent`: it started no earlier, whatever a transport of somebody else's says.

    Nor between two microseconds: a state with such an instant could not be read again.
    """
    if type(seen.started_at) is int and type(seen.finished_at) is int and seen.started_at >= sent:
        return seen
    started, finished = _whole(seen.started_at, sent), _whole(seen.finished_at, sent)
    return replace(seen, started_at=max(started, sent), finished_at=finished)


def _whole(at: object, otherwise: Instant) -> Instant:
    """The instant, or another in place of what is none."""
    return int(at) if isinstance(at, int) or (isinstance(at, float) and isfinite(at)) else otherwise


def is_folded(seen: Observation) -> bool:
    """Whether the text of a body stands for it."""
    return seen.text is not None and seen.body is None


def folded(seen: Observation) -> Observation:
    """The observation while it has to wait: its text in place of a body, which takes a multiple of the memory."""
    return seen if seen.text is None or seen.body is None else _with_body(seen, body=None)


def unfolded(seen: Observation) -> Observation:
    """The whole of an observation that was folded."""
    return seen if seen.text is None or seen.body is not None else _with_body(seen, body=json.loads(seen.text))
