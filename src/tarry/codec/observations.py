"""What calls saw as JSON text, bounded."""

from __future__ import annotations

from typing import Any

from tarry.codec.reading import VERSION, flag, optional, text, texts, versioned, whole
from tarry.core import expressions
from tarry.core.observation import CallError, Observation
from tarry.core.texts import bounded_text, plain_json_text, storable_text
from tarry.errors import CheckpointError
from tarry.words import CallKind, ErrorKind, Json

BODY_LIMIT = 16 * 1024
_HEADER_LIMIT = 4 * 1024
_URL_LIMIT = 8 * 1024
_DETAIL_LIMIT = 500

_TIMES = ',"started_at":'

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


def encode_observation(seen: Observation, keep: str | None = None) -> str:
    """What a call saw, bounded: the part of the body that `keep` selects, at most 16 KiB of it.

    Of the headers those stay that help to follow a job. A body that was cut is stored as text.
    """
    body, is_whole = bounded_text(_kept(seen, keep), BODY_LIMIT)
    told: dict[str, Json] = {"v": VERSION, "kind": str(seen.kind), "is_json": seen.is_json and is_whole}
    if seen.status is not None:
        told["status"] = seen.status
    if seen.url is not None:
        told["url"] = storable_text(seen.url)[:_URL_LIMIT]
    if seen.error is not None:
        error = seen.error
        told["error"] = {
            "kind": str(error.kind),
            "detail": storable_text(error.detail)[:_DETAIL_LIMIT],
            "sent": error.sent,
        }
    # What differs from answer to answer, though nothing changed, comes last.
    headers = {name: _header(value) for name, value in seen.headers.items() if name in _KEPT_HEADERS}
    written = plain_json_text(headers) if headers else "{}"
    times = f'{_TIMES}{seen.started_at},"finished_at":{seen.finished_at},"headers":{written}'
    shown = "" if body == "null" else f',"body":{body}'
    return f"{plain_json_text(told)[:-1]}{shown}{times}}}"


def what_it_says(stored: str) -> str:
    """A stored observation without its times and headers: two that say the same differ at most in those."""
    return stored.rpartition(_TIMES)[0]


def decode_observation(stored: str) -> Observation:
    """What a call saw, as stored. Raises `CheckpointError`."""
    fields = versioned(stored, "observation")
    try:
        error = fields.get("error")
        return Observation(
            kind=CallKind(fields["kind"]),
            started_at=whole(fields["started_at"]),
            finished_at=whole(fields["finished_at"]),
            status=optional(whole)(fields.get("status")),
            headers=texts(fields.get("headers", {})),
            body=fields.get("body"),
            is_json=flag(fields.get("is_json", False)),
            url=optional(text)(fields.get("url")),
            error=None
            if error is None
            else CallError(ErrorKind(error["kind"]), text(error["detail"]), flag(error["sent"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"observation: damaged: {error}") from error


def sent_on(seen: Observation) -> dict[str, Any]:
    """The headers that templates and conditions may read later."""
    return {name: _header(value) for name, value in seen.headers.items() if name not in _DROPPED_HEADERS}


def _kept(seen: Observation, keep: str | None) -> Json:
    if keep is None or not seen.is_json:
        return seen.body
    try:
        found: Json = expressions.search(keep, seen.body)
    except Exception as error:  # noqa: BLE001  # what is kept for people must not fail a poll
        return f"[keep: {type(error).__name__}]"
    return found


def _header(value: str) -> str:
    return storable_text(value)[:_HEADER_LIMIT]
