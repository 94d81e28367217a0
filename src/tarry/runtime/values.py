"""Between the stored row and what calls can know: the answers so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tarry.codec import (
    decode_answer,
    decode_observation,
    decode_status_url,
    decode_validators,
    encode_answer,
    encode_status_url,
    encode_validators,
)
from tarry.core.answers import Answers, answer
from tarry.core.observation import Observation
from tarry.core.origin import masked
from tarry.frozen import getter, replace
from tarry.ports import Checkpoint, JobRow


def answers_of(row: JobRow) -> Answers:
    """What was answered so far."""
    return Answers(
        submit=decode_answer(row.submit),
        baseline=decode_answer(row.baseline),
        poll=decode_answer(row.poll),
        status_url=decode_status_url(row.status_url),
        validators=decode_validators(row.validators),
    )


def answers_with(known: Answers, write: Checkpoint) -> Answers:
    """What was answered by the time of this write, as it will be read back."""
    texts = _written(write)
    if not any(texts):
        return known
    return replace(known, **{name: _DECODE[name](text) for name, text in zip(_DECODE, texts, strict=True) if text})


_DECODE: dict[str, Callable[[str], Any]] = {
    "submit": decode_answer,
    "baseline": decode_answer,
    "poll": decode_answer,
    "status_url": decode_status_url,
    "validators": decode_validators,
}
_written = getter(Checkpoint, *_DECODE)


def changed_texts(before: Answers, after: Answers, seen: Observation) -> dict[str, Any]:
    """The columns of the answers that `seen` changed, with their new texts."""
    if after is before:
        return {}
    names = [name for name in ("submit", "baseline", "poll") if getattr(after, name) is not getattr(before, name)]
    text = encode_answer(seen) if names else ""
    columns = dict.fromkeys(names, text)
    if after.status_url is not None and after.status_url != before.status_url:
        columns["status_url"] = encode_status_url(after.status_url)
    if after.validators != before.validators:
        columns["validators"] = encode_validators(after.validators)
    return columns


def moved_to(before: Answers, after: Answers) -> str | None:
    """The new status URL as it may be shown; None when that is the old one."""
    if after.status_url is before.status_url:
        return None
    old, new = (None if one.status_url is None else masked(one.status_url.url) for one in (before, after))
    return None if new == old else new


def last_answers_of(row: JobRow) -> Answers:
    """As `answers_of`; a last answer that was not kept whole, as it is stored for people."""
    answers = answers_of(row)
    if answers.poll is not None or row.last is None:
        return answers
    return replace(answers, poll=answer(decode_observation(row.last)))
