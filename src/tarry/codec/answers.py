"""The answers that travel beside a state, and the status URL, as JSON text."""

from __future__ import annotations

from typing import Any

from tarry.codec.observations import sent_on
from tarry.codec.reading import optional, parsed, read, text, texts, whole
from tarry.core.answers import Answer, StatusUrl, Validators, answer
from tarry.core.observation import Observation, saying
from tarry.core.texts import as_json_text, bounded

ANSWER_LIMIT = 4 << 20
"""Bytes of a body as JSON. A body that HTTP brought is kept whole: the id of a job that was made is in there somewhere."""


def encode_answer(seen: Observation) -> str:
    """An answer as templates and conditions see it: status, headers, body, url."""
    body, _ = bounded(seen.body, ANSWER_LIMIT)
    return as_json_text(answer(saying(seen, body, headers=sent_on(seen))))


def decode_answer(stored: str | None, what: str = "answer") -> Answer | None:
    """An answer as `encode_answer` wrote it, if there is one. Raises `CheckpointError`."""
    return None if stored is None else read(what, _answer, parsed(stored, what))


def encode_status_url(found: StatusUrl) -> str:
    """A status URL, whole: its query may be a signature."""
    return as_json_text([found.url, found.found_at, found.instead_of])


def decode_status_url(stored: str | None) -> StatusUrl | None:
    """The status URL, if one was found. Raises `CheckpointError`."""
    return None if stored is None else read("status_url", _status_url, parsed(stored, "status_url"))


def encode_validators(found: Validators | None) -> str:
    """The validators of the last answer; that there are none is written down, too."""
    return as_json_text(None if found is None else [found.url, found.etag, found.last_modified])


def decode_validators(stored: str | None) -> Validators | None:
    """The validators, if there are any. Raises `CheckpointError`."""
    return None if stored is None else read("validators", optional(_validators), parsed(stored, "validators"))


def _answer(value: Any) -> Answer:
    return {
        "status": optional(whole)(value["status"]),
        "headers": dict(texts(value["headers"])),
        "body": value["body"],
        "url": optional(text)(value["url"]),
    }


def _status_url(value: Any) -> StatusUrl:
    url, found_at, instead_of = value
    return StatusUrl(text(url), optional(text)(found_at), text(instead_of))


def _validators(value: Any) -> Validators:
    url, etag, last_modified = value
    return Validators(text(url), optional(text)(etag), optional(text)(last_modified))
