"""What of a call's answer travels on, beside the state."""

from __future__ import annotations

from tarry.core import validators
from tarry.core.answers import Answers, StatusUrl, answer
from tarry.core.observation import Observation
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.core.status_url import NowhereError, current, followed, redirected
from tarry.frozen import replace
from tarry.words import CallKind, Phase, Verdict

_POLL = CallKind.POLL


def kept(spec: JobSpec, before: JobState, after: JobState, seen: Observation, answers: Answers) -> Answers:
    """What was answered so far, with this answer; `before` and `after` are the states around `step`.

    An answer is kept where the spec reads it: whoever drives a job gives the next `step` what this gives.
    """
    if seen.kind is not _POLL:
        return _of_no_poll(before, after, seen, answers)
    if spec.is_forgetful and after.hops <= before.hops and answers.status_url is None and answers.validators is None:
        return answers
    found = _of_poll(spec, before, after, seen, answers)
    marks = validators.after_poll(spec, before, after, seen, answers, found)
    return found if marks is found.validators else replace(found, validators=marks)


def _of_poll(spec: JobSpec, before: JobState, after: JobState, seen: Observation, answers: Answers) -> Answers:
    if after.hops > before.hops:
        is_told = after.verdict is Verdict.REDIRECT
        return replace(answers, status_url=redirected(spec, after.key, seen, answers, is_told=is_told))
    return _judged(spec, after, seen, answers) if after.found > before.found else answers


def _of_no_poll(before: JobState, after: JobState, seen: Observation, answers: Answers) -> Answers:
    match seen.kind:
        case CallKind.BASELINE if before.phase is Phase.PREPARING and after.phase is not Phase.PREPARING:
            return answers if after.outcome else replace(answers, baseline=answer(seen))
        case CallKind.SUBMIT | CallKind.PROBE if after.submitted_at is not None:
            return replace(answers, submit=answer(seen))
        case _:
            return answers


def _judged(spec: JobSpec, after: JobState, seen: Observation, answers: Answers) -> Answers:
    is_first = answers.baseline is None and spec.reads_baseline
    is_named, status_url = "poll" in spec.named, _status_url(spec, after, seen, answers)
    if not (is_first or is_named) and status_url is answers.status_url:
        return answers
    return replace(
        answers,
        baseline=answer(seen) if is_first else answers.baseline,
        poll=answer(seen) if is_named else answers.poll,
        status_url=status_url,
    )


def _status_url(spec: JobSpec, after: JobState, seen: Observation, answers: Answers) -> StatusUrl | None:
    try:
        return followed(spec, after.key, seen, answers)
    except NowhereError:  # of a job that is over, and so not polled there
        return current(spec, answers)
