"""Validators: the marks of an answer, by which a service may say of the next poll that nothing changed.

They are those of the last answer, and are kept only while the same body would be judged as it
was. Whatever comes in between drops them, and the next poll asks for the whole answer: a failed poll, an
answer without them, a status URL that moved, an open run of `confirm`, another spec, a new run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tarry.core.answers import Answers, Validators
from tarry.core.condition import Condition
from tarry.core.hints import http_date
from tarry.core.observation import Observation
from tarry.core.request import Request
from tarry.frozen import replace
from tarry.words import SECOND

if TYPE_CHECKING:
    from tarry.core.spec import JobSpec
    from tarry.core.state import JobState

MOVING = frozenset({"polls", "headers"})
"""What changes in the document while the body does not."""

_LONGEST = 200
_NAMES = frozenset({"etag", "last-modified"})
_ETAG = re.compile(r'(W/)?"[\x21\x23-\x7e]*"')  # never `*`, which any answer has
_NOT_MODIFIED = 304


def refusal(poll: Request, until: Condition) -> str | None:
    """Why polls cannot be conditional; None where they can."""
    if poll.method != "GET":
        return f"a {poll.method} is not answered with 304; leave it out"
    if poll.is_accepted(_NOT_MODIFIED):
        return "accepted has 304, which then means what the condition says; leave one of the two out"
    if "poll" in poll.roots:
        return "{poll…} makes each poll another one, which is not to be compared with the last; leave it out"
    if until.functions:
        return "a callable may judge the same body in two ways; leave it out, or use another condition"
    if moving := sorted(until.roots & MOVING):
        return f"the condition reads {moving[0]}, which changes while the body does not; leave it out"
    return None


def is_unchanged(seen: Observation, answers: Answers) -> bool:
    """Whether the answer says that the last one still holds."""
    return seen.status == _NOT_MODIFIED and answers.validators is not None


def after_poll(
    spec: JobSpec, before: JobState, after: JobState, seen: Observation, was: Answers, now: Answers
) -> Validators | None:
    """The validators for the next poll; `was` and `now` are the answers around this one."""
    if after.outcome is not None or not isinstance(spec.poll, Request) or not spec.poll.is_revalidated:
        return None
    if is_unchanged(seen, was):
        return was.validators
    is_judged = after.found > before.found and seen.status is not None and 200 <= seen.status <= 299
    is_settled = after.confirming is None and now.status_url == was.status_url
    return _of(seen) if is_judged and is_settled else None


def unmarked(seen: Observation) -> Observation:
    """The answer without validators: it was asked for by another request than the next one."""
    return replace(seen, headers={name: value for name, value in seen.headers.items() if name not in _NAMES})


def _of(seen: Observation) -> Validators | None:
    etag, modified = seen.headers.get("etag", ""), seen.headers.get("last-modified", "")
    found = Validators(
        url=bare(seen.url or ""),
        etag=etag if len(etag) <= _LONGEST and _ETAG.fullmatch(etag) else None,
        last_modified=modified if _is_telling(modified, seen) else None,
    )
    return found if found.etag or found.last_modified else None


def _is_telling(modified: str, seen: Observation) -> bool:
    """Whether a later change shows: such a date counts seconds, and a second change may come within the same one."""
    at, sent = (http_date(text, seen.finished_at) for text in (modified, seen.headers.get("date", "")))
    return at is not None and sent is not None and sent - at >= SECOND


def bare(url: str) -> str:
    """The URL as observations have it: a query may hold secrets."""
    return url.partition("?")[0]
