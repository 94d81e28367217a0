"""The document that conditions and expressions see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.core.answers import Answers, answer
from tarry.core.observation import Observation
from tarry.core.texts import as_text, short
from tarry.words import CallKind, Json

if TYPE_CHECKING:
    from tarry.core.spec import JobSpec

_EXCERPT = 140
_NONE = Answers()


def document(spec: JobSpec, polls: int, seen: Observation, answers: Answers = _NONE) -> dict[str, Json]:
    """What a condition judges: the answer, the job's input, the submit's answer, the baseline.

    Without a baseline of before the submit, the first answer is one, also to itself. `status` is None for a callable and for a call without a response; `polls` counts
    this poll; `error` is the error's kind.
    """
    baseline, headers = answers.baseline, seen.headers
    if baseline is None and spec.reads_baseline and seen.kind is CallKind.POLL and seen.error is None:
        baseline = answer(seen)
    return {
        "status": seen.status,
        "headers": headers if type(headers) is dict else dict(headers),
        "body": seen.body,
        "input": spec.input,
        "submit": answers.submit,
        "baseline": baseline,
        "polls": polls,
        "error": None if seen.error is None else str(seen.error.kind),
    }


def excerpt(seen: Observation) -> str:
    """An answer in a few words: the status and the beginning of the body."""
    head = f"HTTP {seen.status}"
    return head if seen.body is None else short(f"{head}: {as_text(seen.body)}", _EXCERPT)
