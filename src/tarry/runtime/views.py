"""Rows as what callers get: snapshots, results, errors."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tarry.codec import decode_observation, decode_spec, decode_status_url, state_of
from tarry.core.answers import Answers
from tarry.core.diagnosis import explain
from tarry.core.fetching import is_fetched
from tarry.core.observation import Observation
from tarry.core.origin import masked
from tarry.core.results import Job, JobResult, Ticked
from tarry.core.status_url import current
from tarry.core.texts import short
from tarry.errors import CheckpointError, JobError, ResultUnavailable, error_for
from tarry.ports import QUARANTINED, JobRow
from tarry.runtime.timeline import ticks
from tarry.words import Instant, Outcome, micros, moment, span

log = logging.getLogger("tarry")

_KEY = 120


def snapshot(row: JobRow) -> Job:
    """The job as last committed; raises `CheckpointError` when the row is damaged."""
    with _reading(row):
        state = state_of(row)
        return Job(
            id=row.id,
            key=row.key,
            namespace=row.namespace,
            phase=row.phase,
            paused=row.paused != 0,
            quarantined=row.paused == QUARANTINED,
            outcome=row.outcome,
            reason=state.reason,
            status=state.status,
            progress=state.progress,
            polls=row.polls,
            reserved=row.reserved,
            max_polls=row.max_polls,
            failures=state.streak.length,
            error=state.error,
            created_at=moment(row.created_at),
            next_poll_at=_moment(row.due),
            deadline=_moment(row.deadline),
            finished_at=_moment(row.finished_at),
            owner=row.owner,
            output=_loaded(row.output),
            last=_last(row),
            labels=row.labels,
            status_url=_status_url(row),
            timeline=ticks(row.timeline, row.created_at),
            cancel_requested_at=_moment(row.cancel_requested_at),
            wait_source=None if row.due is None else str(state.wait_source),
            changed_at=_moment(state.changed_at),
            stalled=state.stalled,
        )


def snapshots(rows: Iterable[JobRow]) -> list[Job]:
    """The jobs whose rows can be read; each of the others is left out, with one line in the log."""
    jobs = []
    for row in rows:
        try:
            jobs.append(snapshot(row))
        except CheckpointError as error:
            log.error("left out: %s", error)  # noqa: TRY400  # the message is the whole of it
    return jobs


def result(row: JobRow) -> JobResult[Any]:
    """The result of a job that is over; raises `CheckpointError` when the row is damaged."""
    with _reading(row):
        outcome, finished = _end(row)
        return JobResult(
            key=row.key,
            outcome=outcome,
            output=_loaded(row.output),
            last=_last(row),
            polls=row.polls,
            started_at=moment(row.created_at),
            finished_at=moment(finished),
            elapsed=span(max(0, finished - row.created_at)),  # the clock may have been set back between two runs
            labels=row.labels,
        )


def failure(row: JobRow) -> JobError:
    """The error of a job that ended otherwise than well; raises `CheckpointError` when the row is damaged."""
    with _reading(row):
        outcome, _ = _end(row)
        state, total = state_of(row), decode_spec(row.spec).limits.total_duration
        message = explain(state, max_polls=row.max_polls, total_duration=None if total is None else micros(total))
        return error_for(outcome)(message, key=row.key, outcome=outcome, job=snapshot(row), last=_last(row))


def lacks_result(row: JobRow) -> bool:
    """Whether the job is over and its result still has to be fetched; raises `CheckpointError`."""
    if row.outcome is None or row.output is not None:
        return False
    with _reading(row):
        return is_fetched(decode_spec(row.spec), row.outcome)


def unavailable(row: JobRow, why: str) -> ResultUnavailable:
    """The error of a job that succeeded and whose result cannot be fetched."""
    with _reading(row):
        outcome, _ = _end(row)
        message = f"{short(row.key, _KEY)}: {outcome}, but its result is not available: {why}; wait for it to try again"
        return ResultUnavailable(message, key=row.key, outcome=outcome, job=snapshot(row), last=_last(row))


def ticked(row: JobRow, *, is_mine: bool) -> Ticked:
    """Where the job stands after a tick; raises `CheckpointError` when the row is damaged."""
    job = snapshot(row)
    return Ticked(job.outcome, job.next_poll_at, is_mine or job.outcome is not None)


@contextmanager
def _reading(row: JobRow) -> Iterator[None]:
    """Whatever turns out to be damaged leaves the block as a `CheckpointError` that names the job."""
    job = f"job {row.key!r}: "
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(job + str(error).removeprefix(job)) from error
    except OverflowError as error:
        raise CheckpointError(f"{job}a stored time is out of range") from error


def _end(row: JobRow) -> tuple[Outcome, Instant]:
    if row.outcome is None or row.finished_at is None:
        raise CheckpointError("it is not over, or the row is damaged")
    return row.outcome, row.finished_at


def _last(row: JobRow) -> Observation | None:
    return None if row.last is None else decode_observation(row.last)


def _status_url(row: JobRow) -> str | None:
    found = current(decode_spec(row.spec), Answers(status_url=decode_status_url(row.status_url)))
    return None if found is None else masked(found.url)


def _loaded(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError("the stored output is damaged") from error


def _moment(value: Instant | None) -> Any:
    return None if value is None else moment(value)
