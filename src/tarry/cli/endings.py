"""The last words of a wait, for a person and as JSON."""

from __future__ import annotations

from typing import Any

from tarry.cli.text import count, duration, plain
from tarry.core.results import Job, JobResult
from tarry.errors import JobError


def met(job: Job) -> str:
    """What to say of a job that was stored before this wait began."""
    if job.outcome is not None:
        return f"{plain(job.key)}: already over after {count(job.polls, 'poll')}; nothing is polled"
    return f"{plain(job.key)}: known already, goes on after {count(job.polls, 'poll')}{_status(job)}"


def summary(result: JobResult[Any]) -> str:
    """`succeeded after 5 polls in 8s`."""
    return f"{result.outcome} after {count(result.polls, 'poll')} in {duration(result.elapsed)}"


def late(job: Job) -> str:
    """What to say when the caller's patience is over."""
    return f"not over after {count(job.polls, 'poll')}{_status(job)}"


def result_json(result: JobResult[Any]) -> dict[str, Any]:
    """A job that ended well."""
    return {
        "key": result.key,
        "outcome": str(result.outcome),
        "output": result.output,
        "polls": result.polls,
        "elapsed_seconds": result.elapsed.total_seconds(),
        "started_at": result.started_at.isoformat(),
        "finished_at": result.finished_at.isoformat(),
        "error": None,
    }


def error_json(error: JobError) -> dict[str, Any]:
    """A job that ended otherwise; `error` is the whole message."""
    job = error.job
    took = None if job is None or job.finished_at is None else job.finished_at - job.created_at
    return {
        "key": error.key,
        "outcome": str(error.outcome),
        "output": None,
        "polls": None if job is None else job.polls,
        "elapsed_seconds": None if took is None else took.total_seconds(),
        "started_at": None if job is None else job.created_at.isoformat(),
        "finished_at": None if job is None or job.finished_at is None else job.finished_at.isoformat(),
        "status": None if job is None else job.status,
        "reason": None if job is None else job.reason,
        "error": str(error),
    }


def open_json(key: str, why: str, job: Job | None = None) -> dict[str, Any]:
    """A job that is not over: `error` says why the wait is ("wait_timeout", "interrupted")."""
    return {
        "key": key,
        "outcome": None,
        "output": None,
        "polls": None if job is None else job.polls,
        "status": None if job is None else job.status,
        "error": why,
    }


def _status(job: Job) -> str:
    return f", status {plain(job.status, 40)}" if job.status else ""
