"""The errors, sorted by whose turn it is.

    TarryError
    ├── SpecError (ValueError)         yours: the definition can never work
    ├── JobError                       the job ended otherwise than well
    │   ├── JobFailed                  failed or expired
    │   ├── JobCancelled
    │   ├── JobTimedOut                total_duration, or a stall
    │   ├── JobExhausted               max_polls
    │   ├── JobUnreachable             the error budget
    │   ├── JobLost                    the service no longer knows it
    │   ├── SubmitUnknown              nobody knows whether the submit arrived
    │   ├── ResultUnavailable          the job succeeded, and its result cannot be fetched
    │   └── ConditionError             the condition answered no verdict
    ├── WaitTimeout (TimeoutError)     the caller's patience; the job lives on
    ├── ResultInvalid (ValueError)     the job succeeded; its output is of another type than asked for
    └── StoreError
        ├── JobNotFound (LookupError)
        ├── KeyConflict                same key, another spec
        ├── LeaseLost                  another worker holds the job now
        ├── CheckpointError            damaged, or written by a newer version
        └── StoreUnavailable           transient: the runtime tries again

Facts are attributes, and every error pickles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Self, get_args, get_origin

from tarry.words import Outcome

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

    from tarry.core.observation import Observation
    from tarry.core.results import Job, JobResult

_SHOULD: Final = "Input should be "


class TarryError(Exception):
    """The root of all errors that Tarry raises on purpose."""


class SpecError(TarryError, ValueError):
    """The definition can never work. `field` is its dotted name, `problem` what is wrong and the way out.

    `faults` counts what was found wrong; the message tells of one. `where` is the file and line of a
    spec that was read from a file, else empty.
    """

    def __init__(self, field: str, problem: str, where: str = "") -> None:
        super().__init__(field, problem, where)
        self.field = field
        self.problem = problem
        self.where = where
        self.faults = 1

    def __str__(self) -> str:
        told = f"{self.field}: {self.problem}"
        return f"{self.where}: {told}" if self.where else told

    @classmethod
    def of(cls, model: type[BaseModel], error: ValidationError) -> Self:
        """What pydantic found, in our words: where, what kind of value was there, and the way out.

        Never the value itself, which may be a secret. Of several faults it is the one
        that explains the others: a misspelt name before the name that it left missing.
        """
        found = error.errors(include_url=False)
        others = len({each["loc"][:1] for each in found}) - 1
        first = min(found, key=lambda each: _weight(model, each))
        steps = _steps(model, first["loc"])
        alike = [each for each in found if _steps(model, each["loc"]) == steps]
        field, problem = _told(model, steps, alike, first)
        inner = first.get("ctx", {}).get("error")
        told = cls(field, problem + (f" (and {others} more)" if others else ""))
        told.faults = others + (inner.faults if isinstance(inner, SpecError) else 1)
        return told


def _weight(model: type[BaseModel], found: ErrorDetails) -> tuple[int, int]:
    """How far a fault is from explaining the others."""
    inner = found.get("ctx", {}).get("error")
    if isinstance(inner, SpecError):
        return inner.faults, 1  # in a union, the member with the fewest faults is the one that was meant
    is_misspelt = found["type"] == "extra_forbidden" and _near(str(found["loc"][-1]), model.model_fields)
    is_consequence = found["type"] in {"missing", "too_short"}
    return (0 if is_misspelt else 1), (2 if is_consequence else 0)


def _steps(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """The way to a value without the names of union members that pydantic adds to it."""
    if not loc:
        return ()
    field = model.model_fields.get(str(loc[0]))
    keys = 1 if field is not None and _holds_names(field.annotation) else 0
    steps: list[int | str] = [loc[0]]
    for step in loc[1:]:
        if isinstance(step, int):
            steps.append(step)
        elif keys and step.isidentifier():
            keys -= 1
            steps.append(step)
    return tuple(steps)


def _holds_names(annotation: object) -> bool:
    return get_origin(annotation) is dict or any(get_origin(part) is dict for part in get_args(annotation))


def _told(
    model: type[BaseModel], steps: tuple[int | str, ...], alike: list[ErrorDetails], first: ErrorDetails
) -> tuple[str, str]:
    """The field and the problem."""
    facts = first.get("ctx", {})
    inner = facts.get("error")
    field = model.__name__ + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    if isinstance(inner, SpecError):
        below = re.sub(r"^\w+", "", inner.field)
        return field + below, inner.problem
    if inner is not None:
        return field, f"{inner} (got {_kind(first)})" if steps else str(inner)
    match first["type"]:
        case "missing":
            return field, "is missing"
        case "extra_forbidden":
            return field, "unknown name" + _hint(str(first["loc"][-1]), model.model_fields)
        case "union_tag_not_found":
            return f"{field}.type", "is missing; it says which kind this is"
        case "union_tag_invalid":
            kinds = facts["expected_tags"].replace("'", "")
            return f"{field}.type", f"no kind of it; one of {kinds}" + _hint(facts["tag"], kinds.split(", "))
        case _:
            return field, f"{_wanted(alike)} (got {_kind(first)})"


def _wanted(alike: list[ErrorDetails]) -> str:
    """What the members of a union would have taken."""
    messages = [
        f"a {each.get('ctx', {})['class_name']}" if each["type"] == "model_type" else each["msg"].removeprefix(_SHOULD)
        for each in alike
    ]
    return ("must be " if alike[0]["msg"].startswith(_SHOULD) else "") + " or ".join(dict.fromkeys(messages))


def _kind(found: ErrorDetails) -> str:
    return type(found["input"]).__name__


def _hint(name: str, known: Iterable[str]) -> str:
    near = _near(name, known)
    return f"; did you mean {near}?" if near else ""


def _near(name: str, known: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(name, list(known), n=1)), None)


class JobError(TarryError):
    """The job ended otherwise than well.

    `key`; `outcome`; `job`, the snapshot it ended with; `last`, the last observation, if any was made.
    """

    def __init__(
        self,
        message: str,
        *,
        key: str = "",
        outcome: Outcome = Outcome.FAILED,
        job: Job | None = None,
        last: Observation | None = None,
    ) -> None:
        super().__init__(message)
        self.key = key
        self.outcome = outcome
        self.job = job
        self.last = last


class JobFailed(JobError):
    """The service says that the job failed or expired."""


class JobCancelled(JobError):
    """The job was cancelled, here or there."""


class JobTimedOut(JobError):
    """`total_duration` is over, or the spec says that a stall ends the job. The remote job may still run."""


class JobExhausted(JobError):
    """`max_polls` are spent. The remote job may still run."""


class JobUnreachable(JobError):
    """Too many polls in a row failed. The remote job may still run."""


class JobLost(JobError):
    """The service no longer knows the job."""


class SubmitUnknown(JobError):
    """The submit may or may not have arrived, and the spec does not promise that sending it again is safe."""


class ResultUnavailable(JobError):
    """The job succeeded, and its result could not be fetched. The next wait for the key tries again."""


class ConditionError(JobError):
    """The condition answered something that is no verdict."""


class WaitTimeout(TarryError, TimeoutError):
    """The caller's patience is over; the job lives on. `key` names it."""

    def __init__(self, message: str, *, key: str = "") -> None:
        super().__init__(message)
        self.key = key


class ResultInvalid(TarryError, ValueError):
    """The job has succeeded, and its output is not of the `output_type` that was asked for.

    `key`; `path`, where in the output (empty: the output itself); `problem`; `result`, the result as it
    is stored. Another wait with another `output_type`, or without one, returns it.
    """

    def __init__(self, key: str, path: str, problem: str, result: JobResult[Any]) -> None:
        super().__init__(key, path, problem, result)
        self.key = key
        self.path = path
        self.problem = problem
        self.result = result

    def __str__(self) -> str:
        return (
            f"job {self.key!r} {self.result.outcome}, but its output does not fit: {self.path or 'it'}: {self.problem}"
        )


class StoreError(TarryError):
    """The store refused, or could not be used."""


class JobNotFound(StoreError, LookupError):
    """No job has this key."""


class KeyConflict(StoreError):
    """The key belongs to a job with another submit, input or (without a submit) poll."""


class LeaseLost(StoreError):
    """Another worker holds the job now; what this one saw was not written."""


class CheckpointError(StoreError):
    """A stored job is damaged or was written by a newer version; it is left as it is."""


class StoreUnavailable(StoreError):
    """A passing fault of the database: the same call may work later."""


_BY_OUTCOME: dict[Outcome, type[JobError]] = {
    Outcome.FAILED: JobFailed,
    Outcome.EXPIRED: JobFailed,
    Outcome.CANCELLED: JobCancelled,
    Outcome.TIMED_OUT: JobTimedOut,
    Outcome.EXHAUSTED: JobExhausted,
    Outcome.UNREACHABLE: JobUnreachable,
    Outcome.LOST: JobLost,
    Outcome.SUBMIT_UNKNOWN: SubmitUnknown,
    Outcome.INVALID: ConditionError,
}


def error_for(outcome: Outcome) -> type[JobError]:
    """The error class of an outcome that is not a success."""
    return _BY_OUTCOME[outcome]
