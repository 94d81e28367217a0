"""Tarry awaits remote jobs: it polls politely, and a restart resumes where the last checkpoint stands.

`Poller` is the front door, `JobSpec` says what to await. Every name here is
resolved on first use, so that `import tarry` loads neither an HTTP client nor
a database library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tarry.api import Poller, await_job
    from tarry.core.batch import Batch
    from tarry.core.check import check
    from tarry.core.conditions import Acceptors, Expression, Match, Status
    from tarry.core.limits import Limits
    from tarry.core.observation import Observation
    from tarry.core.phases import Phases
    from tarry.core.plan import plan
    from tarry.core.policies import Errors, Hints
    from tarry.core.politeness import Politeness
    from tarry.core.request import Request
    from tarry.core.results import Job, JobResult
    from tarry.core.spec import JobSpec
    from tarry.core.stalls import Stall
    from tarry.core.strategies import Exponential, Fixed, Linear
    from tarry.errors import (
        CheckpointError,
        ConditionError,
        JobCancelled,
        JobError,
        JobExhausted,
        JobFailed,
        JobLost,
        JobNotFound,
        JobTimedOut,
        JobUnreachable,
        KeyConflict,
        LeaseLost,
        ResultUnavailable,
        SpecError,
        StoreError,
        SubmitUnknown,
        TarryError,
        WaitTimeout,
    )
    from tarry.ports import StoredEvent
    from tarry.words import Outcome, Phase, Verdict

__all__ = [
    "Acceptors",
    "Batch",
    "CheckpointError",
    "ConditionError",
    "Errors",
    "Exponential",
    "Expression",
    "Fixed",
    "Hints",
    "Job",
    "JobCancelled",
    "JobError",
    "JobExhausted",
    "JobFailed",
    "JobLost",
    "JobNotFound",
    "JobResult",
    "JobSpec",
    "JobTimedOut",
    "JobUnreachable",
    "KeyConflict",
    "LeaseLost",
    "Limits",
    "Linear",
    "Match",
    "Observation",
    "Outcome",
    "Phase",
    "Phases",
    "Politeness",
    "Poller",
    "Request",
    "ResultUnavailable",
    "SpecError",
    "Stall",
    "Status",
    "StoreError",
    "StoredEvent",
    "SubmitUnknown",
    "TarryError",
    "Verdict",
    "WaitTimeout",
    "await_job",
    "check",
    "plan",
]

# Where each name lives; what is not named here is an error or a word.
_HOMES = {
    "api": ("Poller", "await_job"),
    "core.batch": ("Batch",),
    "core.check": ("check",),
    "core.conditions": ("Acceptors", "Expression", "Match", "Status"),
    "core.limits": ("Limits",),
    "core.observation": ("Observation",),
    "core.phases": ("Phases",),
    "core.plan": ("plan",),
    "core.politeness": ("Politeness",),
    "core.policies": ("Errors", "Hints"),
    "core.request": ("Request",),
    "core.results": ("Job", "JobResult"),
    "core.spec": ("JobSpec",),
    "core.stalls": ("Stall",),
    "core.strategies": ("Exponential", "Fixed", "Linear"),
    "ports": ("StoredEvent",),
    "words": ("Outcome", "Phase", "Verdict"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # with it in sight, checkers would take every mistyped name for an object

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'tarry' has no attribute {name!r}")
        value = getattr(import_module(f"tarry.{_HOME.get(name, 'errors')}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
