"""`check`: what a spec would say to answers that you have, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tarry.core import misses, templates
from tarry.core.answers import Answers
from tarry.core.decision import Call, Decision, Stop, Wait
from tarry.core.document import document
from tarry.core.judging import Finding, Sort, read_poll
from tarry.core.keeping import kept
from tarry.core.machine import start, step
from tarry.core.observation import CallError, Observation
from tarry.core.origin import OriginError, resolve
from tarry.core.output import output_of
from tarry.core.request import Request
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.core.templates import TemplateError
from tarry.frozen import replace
from tarry.words import CallKind, ErrorKind, Instant, Json, Micros, Outcome, WaitSource

AnswerLike: TypeAlias = Observation | dict[str, Any]
"""An answer: an `Observation`, or a dict with any of `status`, `headers`, `body`, `text` and `error`."""

_KEY = "check"
_NAMES = frozenset({"status", "headers", "body", "text", "error"})
_WORDS = {Sort.UNCHANGED: "unchanged", Sort.INVALID: "invalid", Sort.GONE: "not_found", Sort.MISSING: "not_found"}


@dataclass(frozen=True, slots=True)
class Checked:
    """What a spec makes of one answer.

    - `verdict`: a verdict's word; a failed poll is "transient", a 304 "unchanged", and where the condition
      gave no verdict it is "invalid".
    - `value`: the status as the condition read it.
    - `outcome`: how the job would end by this answer; None when it would go on.
    - `wait`, `wait_source`: how long until the next poll, in microseconds, and what set that; None when the job ends.
    - `error`: why the poll failed, or the words with which the job ended.
    - `output`: what `result` selects, when the job ends well and has no `fetch`.
    - `problems`: lines for a person, such as a path that leads to an object.
    """

    verdict: str
    value: str | None = None
    outcome: Outcome | None = None
    wait: Micros | None = None
    wait_source: WaitSource | None = None
    error: str | None = None
    output: Json = None
    problems: tuple[str, ...] = ()


def check(
    spec: JobSpec,
    answers: Iterable[AnswerLike],
    *,
    submit: AnswerLike | None = None,
    baseline: AnswerLike | None = None,
    now: Instant = 0,
) -> tuple[Checked, ...]:
    """What the spec would say to these answers, one after the other, each polled when it is due.

    An answer is an `Observation` or a dict such as `{"status": 200, "headers": {…}, "body": {…}}`: a 200 if it
    does not say; `text` is a body that is not JSON, `error` an error kind such as "timeout". `submit` and
    `baseline` are the answers to those requests, for what is read of them (an empty 202 and 200).
    An answer that comes after the end is judged as if the job had gone on. Nothing is sent; the job begins at `now`
    (microseconds since 1970 UTC), and jitter is that of one made-up key. Raises ValueError for what is no answer.
    """
    before = {CallKind.BASELINE: baseline or {}, CallKind.SUBMIT: submit or {"status": 202}}
    return tuple(_checked(spec, answers, before, now))


def _checked(
    spec: JobSpec, given: Iterable[AnswerLike], before: Mapping[CallKind, AnswerLike], now: Instant
) -> Iterator[Checked]:
    (state, decision), answers = start(spec, _KEY, now), Answers()
    while isinstance(decision, Call) and decision.kind in before:
        seen = _seen(before[decision.kind], decision.kind, str(decision.kind), now, _url(spec, decision.kind, answers))
        after, decision = step(spec, state, seen, now, answers)
        if isinstance(decision, Stop) or after.phase is state.phase:
            raise ValueError(f"{seen.kind}: the job is not polled after it: {after.reason or after.error}")
        state, answers = after, kept(spec, state, after, seen, answers)
    for number, each in enumerate(given):
        now = decision.due if isinstance(decision, Wait) else now
        seen = _seen(each, CallKind.POLL, f"answers[{number}]", now, _url(spec, CallKind.POLL, answers))
        after, then = step(spec, state, seen, now, answers)
        shown = document(spec, after.polls, seen, answers)
        yield _with_output(_told(read_poll(spec, seen, shown), state, after, then, now), spec, shown)
        if not isinstance(then, Stop):
            state, decision, answers = after, then, kept(spec, state, after, seen, answers)


def _url(spec: JobSpec, kind: CallKind, answers: Answers) -> str | None:
    """Where the call goes, as far as it is known without secrets; None for a callable."""
    request = spec.target(kind)
    if not isinstance(request, Request):
        return None
    if kind is CallKind.POLL and answers.status_url is not None:
        return answers.status_url.url
    values = answers.values(_KEY, spec.input)
    try:
        return resolve(templates.render_url(request.url, values), templates.finder(request.url, values))
    except (TemplateError, OriginError):
        return templates.blanked(request.url)


def _told(finding: Finding, before: JobState, after: JobState, then: Decision, now: Instant) -> Checked:
    has_failed = after.failed_polls > before.failed_polls
    judgement = finding.judgement
    return Checked(
        verdict=_word(finding, has_failed=has_failed),
        value=None if judgement is None else judgement.value,
        outcome=after.outcome,
        wait=then.due - now if isinstance(then, Wait) else None,
        wait_source=then.source if isinstance(then, Wait) else None,
        error=after.reason or (after.error if has_failed else None),
        problems=() if judgement is None else tuple(misses.problems(judgement)),
    )


def _with_output(told: Checked, spec: JobSpec, shown: Mapping[str, Json]) -> Checked:
    if told.outcome is None or not told.outcome.is_success or spec.fetch is not None:
        return told
    output, problem = output_of(spec, shown)
    if output is None and problem is None and spec.result is not None:
        problem = f"result: {spec.result} selects nothing"
    return replace(told, output=output, problems=told.problems if problem is None else (*told.problems, problem))


def _word(finding: Finding, *, has_failed: bool) -> str:
    if finding.sort is Sort.MISSING and not has_failed:
        return "pending"  # too early to be found
    if finding.judgement is not None:
        return str(finding.judgement.verdict)
    return _WORDS.get(finding.sort, "transient")


def _seen(given: object, kind: CallKind, where: str, now: Instant, url: str | None) -> Observation:
    """The answer as if it had come now."""
    if isinstance(given, Observation):
        return replace(given, kind=kind, started_at=now, finished_at=now, url=given.url or url)
    if not isinstance(given, dict) or not _NAMES.issuperset(given):
        raise ValueError(f"{where}: no answer; write an object with any of {', '.join(sorted(_NAMES))}")
    if "error" in given:
        return Observation(kind, now, now, error=_error(given["error"], where))
    status, headers = given.get("status", None if url is None else 200), given.get("headers") or {}
    if status is not None and not (isinstance(status, int) and 100 <= status <= 599):
        raise ValueError(f"{where}.status: an HTTP code from 100 to 599, or null for a callable")
    if not isinstance(headers, Mapping) or not all(isinstance(text, str) for text in headers.values()):
        raise ValueError(f"{where}.headers: an object of texts")
    lowered = {str(name).lower(): text for name, text in headers.items()}
    text, body = given.get("text"), given.get("body")
    is_json = text is None and body is not None
    return Observation(kind, now, now, status, lowered, body if text is None else text, is_json, url)


def _error(word: object, where: str) -> CallError:
    try:
        return CallError(ErrorKind(str(word)), f"{word}, as given")
    except ValueError:
        raise ValueError(f"{where}.error: one of {', '.join(ErrorKind)}") from None
