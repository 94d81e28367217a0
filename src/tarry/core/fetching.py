"""The request for the result of a job that ended well: what its answer means, and when to ask again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tarry.core import hints
from tarry.core.document import excerpt
from tarry.core.observation import Observation
from tarry.core.request import Request
from tarry.core.spec import JobSpec
from tarry.core.texts import short
from tarry.words import SECOND, ErrorKind, Micros, Outcome, micros

TRIES = 5
"""How often one wait asks for a result. Between the tries lie 1, 2, 4 and 8 s, or what the server asks for."""

_WHY = 180
_NOT_YET = frozenset({404, 408, 425, 429})
_FOR_GOOD = frozenset({ErrorKind.REFUSED, ErrorKind.TOO_LARGE})
_HAVE_A_RESULT = frozenset({Outcome.SUCCEEDED, Outcome.PARTIAL})


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer holds the result."""


@dataclass(frozen=True, slots=True)
class FetchAgain:
    """The result may be there later: ask again after `wait` microseconds."""

    wait: Micros
    why: str


@dataclass(frozen=True, slots=True)
class NoResult:
    """The result cannot be had now; `why` is one line."""

    why: str


Fetch: TypeAlias = Fetched | FetchAgain | NoResult


def is_fetched(spec: JobSpec, outcome: Outcome | None) -> bool:
    """Whether a job that ended so has its result fetched: a skipped one did nothing, so has none."""
    return spec.fetch is not None and outcome in _HAVE_A_RESULT


def read_fetch(spec: JobSpec, seen: Observation, tries: int) -> Fetch:
    """What the answer to the `tries`-th request for the result means.

    A result may lag behind its job, so 404 is "not yet"; so are 408, 425, 429, server errors and
    calls that broke. Any other answer is final, a redirect too: it is not followed.
    """
    if _is_answered(spec, seen):
        return Fetched()
    why = short(excerpt(seen) if seen.error is None else f"{seen.error.kind}: {seen.error.detail}", _WHY)
    if not _may_come(seen):
        return NoResult(why)
    if tries >= TRIES:
        return NoResult(f"{why} ({tries} tries)")
    hint = hints.read(spec.hints, seen)
    asked = 0 if hint is None else hint.span
    if asked > micros(spec.hints.maximum) and spec.hints.on_excess == "fail":
        return NoResult(f"{why} (asked to wait longer than hints.maximum)")
    return FetchAgain(max(SECOND * 2 ** (tries - 1), min(asked, micros(spec.hints.maximum))), why)


def _is_answered(spec: JobSpec, seen: Observation) -> bool:
    if seen.error is not None:
        return False
    if seen.status is None:
        return True
    return spec.fetch.is_accepted(seen.status) if isinstance(spec.fetch, Request) else seen.status // 100 == 2


def _may_come(seen: Observation) -> bool:
    if seen.error is not None:
        return seen.error.kind not in _FOR_GOOD
    return seen.status in _NOT_YET or (seen.status or 0) >= 500
