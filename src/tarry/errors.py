"""The errors, sorted by whose turn it is.

    TarryError
    ├── SpecError (ValueError)         yours: the definition can never work
    ├── JobError                       the job ended otherwise than well
    │   ├── JobFailed                  failed or expired
    │   ├── JobCancelled
    │   ├── JobTimedOut                total_duration
    │   ├── JobExhausted               max_polls
    │   ├── JobUnreachable             the error budget
    │   ├── JobLost                    the service no longer knows it
    │   ├── SubmitUnknown              nobody knows whether the submit arrived
    │   └── ConditionError             the condition answered no verdict
    ├── WaitTimeout (TimeoutError)     the caller's patience; the job lives on
    └── StoreError
        ├── JobNotFound (LookupError)
        ├── KeyConflict                same key, another spec
        ├── LeaseLost                  another worker holds the job now
        ├── CheckpointError            damaged, or written by a newer version
        └── StoreUnavailable           transient: the runtime tries again

Facts are attributes, and every error pickles.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Self

from tarry.words import Outcome

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

    from tarry.core.observation import Observation
    from tarry.core.results import Job


class TarryError(Exception):
    """The root of all errors that Tarry raises on purpose."""


class SpecError(TarryError, ValueError):
    """The definition can never work. `field` is its dotted name, `problem` what is wrong and the way out."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field = field
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}"

    @classmethod
    def of(cls, model: type[BaseModel], error: ValidationError) -> Self:
        """The first thing that pydantic found, in our words: never the value itself, which may be a secret."""
        found = error.errors(include_url=False)
        first = found[0]
        inner = first.get("ctx", {}).get("error")
        path = [str(step) for step in first["loc"] if str(step).isidentifier() or isinstance(step, int)]
        if isinstance(inner, SpecError):
            path, problem = [*path, inner.field.partition(".")[2] or inner.field], inner.problem
        elif first["type"] == "extra_forbidden":
            near = get_close_matches(str(first["loc"][-1]), model.model_fields, n=1)
            problem = "unknown name" + (f"; did you mean {near[0]}?" if near else "")
        elif inner is not None:
            problem = str(inner)
        else:
            problem = f"{first['msg']}, got {type(first['input']).__name__}"
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return cls(".".join([model.__name__, *path]), problem + more)


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
    """`total_duration` is over. The remote job may still run."""


class JobExhausted(JobError):
    """`max_polls` are spent. The remote job may still run."""


class JobUnreachable(JobError):
    """Too many polls in a row failed. The remote job may still run."""


class JobLost(JobError):
    """The service no longer knows the job."""


class SubmitUnknown(JobError):
    """The submit may or may not have arrived, and the spec does not promise that sending it again is safe."""


class ConditionError(JobError):
    """The condition answered something that is no verdict."""


class WaitTimeout(TarryError, TimeoutError):
    """The caller's patience is over; the job lives on. `key` names it."""

    def __init__(self, message: str, *, key: str = "") -> None:
        super().__init__(message)
        self.key = key


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
