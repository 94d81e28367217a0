"""What a poll's answer means, by the spec's condition.

The status of the HTTP response is not the status of the job. A condition
judges what it is shown; all else is sorted here: unchanged, denied, missing,
gone, or a failed poll.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tarry.core import hints
from tarry.core.batch import Batch
from tarry.core.conditions import Condition
from tarry.core.document import excerpt
from tarry.core.ending import OUTCOMES
from tarry.core.judgement import InvalidAnswer, Judgement
from tarry.core.observation import Observation
from tarry.core.request import Request
from tarry.core.spec import JobSpec
from tarry.core.status_url import NowhereError
from tarry.core.texts import short
from tarry.frozen import quick, replace
from tarry.words import ErrorKind, Json, Verdict

_ERROR = 160
MOVED = frozenset({307, 308})
"""Statuses that move the status URL by themselves: the same is to be asked elsewhere."""


class Sort(StrEnum):
    """What kind of answer a poll brought."""

    JUDGED = "judged"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    MOVED = "moved"
    DENIED = "denied"
    MISSING = "missing"
    GONE = "gone"
    INVALID = "invalid"


_JUDGED = Sort.JUDGED
_SPECIAL = frozenset({Verdict.TRANSIENT, Verdict.NOT_FOUND, Verdict.REDIRECT})
_SORTS = {401: Sort.DENIED, 403: Sort.DENIED, 404: Sort.MISSING, 410: Sort.GONE}


@quick
@dataclass(frozen=True, slots=True)
class Finding:
    """What a poll came to.

    `judgement` is there whenever the condition answered with a verdict; `error`, one
    line, whenever the poll was no good; `spends` says that it spends the error budget,
    `is_unsent` that no byte of it left.
    """

    sort: Sort
    judgement: Judgement | None = None
    error: str | None = None
    spends: bool = False
    is_unsent: bool = False


def is_repeatable(spec: JobSpec) -> bool:
    """Whether a submit whose answer was lost may be sent again."""
    submit = spec.submit
    return isinstance(submit, Request) and (submit.idempotent or submit.method == "PUT")


def is_request_to_wait(status: int | None) -> bool:
    """Whether the answer asks for less traffic: its hint is a lower bound."""
    return status in {429, 503}


def read_poll(spec: JobSpec, seen: Observation, document: dict[str, Json]) -> Finding:
    """What a poll's answer means; `document` is what the condition is shown of it."""
    if seen.is_json and seen.error is None and (seen.status is None or 200 <= seen.status <= 299):
        # As most are: any condition may judge it, and can read it.
        return judged(spec.until, document, redirects=spec.redirect is not None)
    if seen.status == 304 and not is_accepted(spec.poll, 304):
        return Finding(Sort.UNCHANGED)
    is_plain = _is_plain_answer(spec, seen)
    if not is_plain and not _is_shown(spec, seen):
        return _unjudged(spec, seen)
    if _is_unreadable(spec, seen):
        return _failed(ErrorKind.BAD_BODY, f"not JSON: {excerpt(seen)}")
    finding = judged(spec.until, document, redirects=spec.redirect is not None)
    return finding if is_plain or _has_judged(finding) else _unjudged(spec, seen)


def lasting(spec: JobSpec, seen: Observation, document: dict[str, Json]) -> Judgement | None:
    """What each answer with this status and body means to the job; None where there is more to it, or where it ends it."""
    finding = read_poll(spec, seen, document) if spec.is_told_by_body else None
    judgement = None if finding is None or finding.sort is not _JUDGED else finding.judgement
    return None if judgement is None or judgement.verdict in OUTCOMES else judgement


def _has_judged(finding: Finding) -> bool:
    """Whether the condition made something of an answer that is not 2xx, or of an error.

    It has not when it raised, gave no verdict, or found a value that no set names.
    """
    return finding.judgement is not None and finding.judgement.verdict is not Verdict.UNKNOWN


def judged(condition: Condition, document: dict[str, Json], *, redirects: bool = False) -> Finding:
    """What a condition makes of a document; `redirects` says that a redirect has a target."""
    try:
        judgement = condition.judge(document)
    except InvalidAnswer as answer:
        return Finding(Sort.INVALID, error=short(str(answer), _ERROR))
    except Exception as error:  # noqa: BLE001  # whatever a condition raises is this job's failed poll, no more
        return _failed(ErrorKind.CONDITION, f"{type(error).__name__}: {error}")
    if judgement.verdict not in _SPECIAL:
        return Finding(_JUDGED, judgement)
    match judgement.verdict:
        case Verdict.TRANSIENT:
            return _failed(ErrorKind.REPORTED, f"the condition calls {judgement.value} transient", judgement)
        case Verdict.NOT_FOUND:
            return Finding(Sort.MISSING, judgement, error=f"not found: the condition says so of {judgement.value}")
        case Verdict.REDIRECT if redirects:
            return Finding(Sort.MOVED, judgement)
        case _:
            return Finding(Sort.INVALID, judgement, error="the verdict is redirect, and the spec has no target for it")


def _unjudged(spec: JobSpec, seen: Observation) -> Finding:
    """The meaning of an answer that the condition does not judge."""
    if seen.error is not None:
        failed = _failed(seen.error.kind, seen.error.detail, spends=seen.error.kind is not ErrorKind.POOL)
        return replace(failed, is_unsent=not seen.error.sent)
    sort = _SORTS.get(seen.status or 0)
    if sort is not None:
        return Finding(sort, error=excerpt(seen))
    if seen.status in MOVED and isinstance(spec.poll, Request):
        return Finding(Sort.MOVED, error=excerpt(seen))
    is_redirect = seen.status is not None and seen.status // 100 == 3
    kind = ErrorKind.REDIRECT if is_redirect else ErrorKind.HTTP_STATUS
    return _failed(kind, excerpt(seen), spends=not _is_congested(spec, seen))


def nowhere(error: NowhereError) -> Finding:
    """An answer that moves the status URL to where it must not be called, or cannot be."""
    return _failed(ErrorKind.REDIRECT, str(error))


def _is_congested(spec: JobSpec, seen: Observation) -> bool:
    """A service that asks for less traffic is not down: a 429, or a 503 with a hint."""
    return seen.status == 429 or (seen.status == 503 and hints.read(spec.hints, seen) is not None)


def _failed(kind: ErrorKind, detail: str, judgement: Judgement | None = None, *, spends: bool = True) -> Finding:
    return Finding(Sort.FAILED, judgement, error=short(f"{kind}: {detail}", _ERROR), spends=spends)


def _is_shown(spec: JobSpec, seen: Observation) -> bool:
    """Whether the condition is shown an answer that is no plain one."""
    if seen.error is not None:
        return "error" in spec.judged_roots
    return not spec.judged_roots.isdisjoint({"status", "error"})


def _is_plain_answer(spec: JobSpec, seen: Observation) -> bool:
    """A callable's return, a 2xx or an accepted status: an answer that any condition may judge."""
    if seen.error is not None:
        return False
    return seen.status is None or is_accepted(spec.poll, seen.status)


def _is_unreadable(spec: JobSpec, seen: Observation) -> bool:
    """Whether the condition reads a body that is no JSON.

    An empty body is none where nothing else was to be expected (202, 204), or where
    the condition reads the status too and so can do without.
    """
    if seen.is_json or seen.status is None or "body" not in spec.judged_roots:
        return False
    return not (seen.body is None and (seen.status in {202, 204} or "status" in spec.judged_roots))


def is_accepted(call: object, status: int) -> bool:
    """Whether a call's answer with this HTTP status is read; a callable that answers for HTTP means 2xx."""
    return call.is_accepted(status) if isinstance(call, Request | Batch) else status // 100 == 2
