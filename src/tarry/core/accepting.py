"""What an answer on the way to a job means: to a baseline, to a submit, to a probe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from tarry.core.answers import Answers, answer
from tarry.core.batch import Batch
from tarry.core.function import Function
from tarry.core.judging import is_accepted, is_repeatable
from tarry.core.observation import Observation
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.core.templates import is_filled, texts

_SERVER_ERRORS = 5


class Meaning(StrEnum):
    """What the answer came to."""

    ACCEPTED = "accepted"
    """It is what was asked for."""
    AGAIN = "again"
    """Ask again: nothing was done, or it may be done twice."""
    LOST = "lost"
    """Nobody knows whether the submit arrived."""
    MISSING = "missing"
    """The probe did not find the job."""
    REFUSED = "refused"
    """It will not be otherwise if it is asked again."""


def read_baseline(spec: JobSpec, seen: Observation) -> Meaning:
    """What a baseline's answer means: it only looks, so whatever may pass is asked for again."""
    if seen.error is not None:
        return Meaning.AGAIN
    if seen.status is None or is_accepted(spec.baseline, seen.status):
        return Meaning.ACCEPTED
    return Meaning.AGAIN if _may_pass(seen.status) else Meaning.REFUSED


def read_submit(spec: JobSpec, state: JobState, seen: Observation) -> Meaning:
    """What a submit's answer means; `state.submit_tries` counts this one."""
    if seen.status is not None and not _is_cut_off(spec, seen):
        return _read_submit_status(spec, state, seen.status)
    if seen.error is None:
        return Meaning.ACCEPTED
    if not seen.error.sent:
        return Meaning.AGAIN
    return Meaning.AGAIN if is_repeatable(spec) else Meaning.LOST


def read_probe(spec: JobSpec, key: str, seen: Observation, answers: Answers) -> Meaning:
    """What a probe's answer means: found is an answer that can stand in for the submit's.

    It has whatever `poll` names of it as `{submit…}`.
    """
    if seen.error is not None:
        return Meaning.AGAIN
    if seen.status in {404, 410} or (seen.status is None and seen.body is None):
        return Meaning.MISSING
    if seen.status is not None and not is_accepted(spec.probe, seen.status):
        return Meaning.AGAIN
    values = {**answers.values(key, spec.input), "submit": answer(seen)}
    return Meaning.ACCEPTED if _says_which(spec, values) else Meaning.MISSING


def _is_cut_off(spec: JobSpec, seen: Observation) -> bool:
    """Whether the submit was accepted, but the answer broke off before it said which job that is: then it is lost."""
    if seen.error is None or seen.status is None or not is_accepted(spec.submit, seen.status):
        return False
    return not _says_which(spec, {"submit": answer(seen)})


def _says_which(spec: JobSpec, values: Mapping[str, Any]) -> bool:
    """Whether there is all that the poll takes from the submit's answer."""
    return all(is_filled(text, "submit", values) for text in _texts(spec))


def _texts(spec: JobSpec) -> Iterable[str]:
    """What is filled in for a poll."""
    if isinstance(spec.poll, Function):
        return texts(spec.args)
    return (spec.poll.id,) if isinstance(spec.poll, Batch) else spec.poll.texts


def _read_submit_status(spec: JobSpec, state: JobState, status: int) -> Meaning:
    if is_accepted(spec.submit, status):
        return Meaning.ACCEPTED
    if status == 429:
        return Meaning.AGAIN
    if _may_pass(status):
        return Meaning.AGAIN if is_repeatable(spec) else Meaning.LOST
    if status == 409 and state.submit_tries > 1:
        return Meaning.ACCEPTED  # an earlier try of ours arrived: its job is the one to poll
    return Meaning.REFUSED


def _may_pass(status: int) -> bool:
    return status in {408, 429} or status // 100 == _SERVER_ERRORS
