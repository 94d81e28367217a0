"""`tarry list` and `tarry show`: what the database knows of its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tarry.cli import changes, timeline
from tarry.cli.changes import commits, described
from tarry.cli.database import url_of
from tarry.cli.exits import Exit, UsageError
from tarry.cli.history import whole_history
from tarry.cli.table import print_table
from tarry.cli.text import (
    as_json,
    count,
    date_and_time,
    duration,
    plain,
    progress,
    readable,
    readable_json,
    standing,
    time_of_day,
)
from tarry.cli.world import World, say
from tarry.core.observation import Observation
from tarry.core.results import Job
from tarry.ports import StoredEvent
from tarry.runtime.timeline import LENGTH
from tarry.words import Outcome, moment

_COLUMNS = ("key", "state", "last status", "polls", "age", "next poll", "deadline")

MOST_EVENTS = 30
"""How many events a person is shown; `--json` has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which jobs to list: outcomes by name, a key prefix, at most `limit` of them."""

    outcomes: Sequence[str] = ()
    prefix: str = ""
    limit: int = 100


def list_command(world: World, db: str, wanted: Filter, *, as_json_array: bool) -> int:
    """Print the jobs, oldest first."""
    url = url_of(db, must_exist=True)
    outcomes = tuple(_outcome(name) for name in wanted.outcomes)
    return world.run(_list(world, url, outcomes, wanted, as_json_array=as_json_array))


def show_command(world: World, key: str, db: str, *, as_json_object: bool) -> int:
    """Print one job: its state, limits, timeline, events, output."""
    url = url_of(db, must_exist=True)
    return world.run(_show(world, url, key, as_json_object=as_json_object))


def _outcome(name: str) -> Outcome:
    try:
        return Outcome(name.strip().lower())
    except ValueError:
        known = ", ".join(outcome.value for outcome in Outcome)
        raise UsageError(f"--outcome: {plain(name, 40)!r} is none of {known}") from None


async def _list(world: World, url: str, outcomes: Sequence[Outcome], wanted: Filter, *, as_json_array: bool) -> int:
    async with world.poller(url) as poller:
        jobs = await poller.jobs(outcomes=outcomes, prefix=wanted.prefix, limit=wanted.limit)
    if as_json_array:
        say(as_json([job_json(job) for job in jobs], indent=2))
        return Exit.OK
    now = moment(world.clock.now())
    print_table(_COLUMNS, [_row(job, now) for job in jobs])
    if len(jobs) == wanted.limit:
        say(f"(the first {wanted.limit}; --limit shows more)")
    return Exit.OK


def _row(job: Job, now: datetime) -> tuple[str, ...]:
    over = job.outcome is not None
    return (
        plain(job.key, 60),
        standing(job),
        plain(job.status, 24) if job.status else "-",
        str(job.polls) if job.max_polls is None else f"{job.polls}/{job.max_polls}",
        duration(now - job.created_at),
        "-" if job.next_poll_at is None else _in(job.next_poll_at - now, "due"),
        "-" if over or job.deadline is None else _in(job.deadline - now, "over"),
    )


def _in(span: timedelta, past: str) -> str:
    return past if span <= timedelta() else f"in {duration(span)}"


async def _show(world: World, url: str, key: str, *, as_json_object: bool) -> int:
    async with world.poller(url) as poller:
        job = await poller.get(key)
        events = await whole_history(poller, key)
    if as_json_object:
        shown = {**job_json(job), "timeline": _timeline_json(job), "events": [event_json(event) for event in events]}
        say(as_json(shown, indent=2))
        return Exit.OK
    for line in detail(job, events, moment(world.clock.now())):
        say(line)
    return Exit.OK


def detail(job: Job, events: Sequence[StoredEvent], now: datetime) -> list[str]:
    """A job for a person, line by line."""
    lines = [f"{plain(job.key)}  {headline(job)}"]
    lines += [f"  {name:<10} {text}" for name, text in _facts(job, now) if text]
    if job.timeline:
        lines += [
            "",
            f"timeline ({_remembered(job)}){_written_off(job)}",
            *(f"  {line}" for line in timeline.lines(job)),
        ]
    if events:
        told = events[-MOST_EVENTS:]
        some = "" if len(told) == len(events) else f" (the last {len(told)} of {len(events)})"
        lines += ["", f"events{some}", *(f"  {line}" for line in event_lines(told))]
    if job.output is not None:
        lines += ["", "output", f"  {readable_json(job.output, 2000)}"]
    return lines


def headline(job: Job) -> str:
    """How the job stands, in a few words."""
    if job.outcome is None:
        return f"{standing(job)}, {count(job.polls, 'poll')} so far"
    took = "" if job.finished_at is None else f" in {duration(job.finished_at - job.created_at)}"
    return f"{job.outcome} after {count(job.polls, 'poll')}{took}"


def _facts(job: Job, now: datetime) -> list[tuple[str, str]]:
    over = job.outcome is not None
    return [
        ("reason", plain(readable(job.reason), 300) if job.reason else ""),
        ("status", plain(job.status, 60) if job.status else ""),
        ("progress", progress(job.progress)),
        ("stalled", "" if not job.stalled or job.changed_at is None else _since(job.changed_at, now)),
        ("error", _error(job)),
        ("created", date_and_time(job.created_at)),
        ("finished", "" if job.finished_at is None else date_and_time(job.finished_at)),
        ("next poll", _next_poll(job, now)),
        ("deadline", "none" if job.deadline is None else _when(job.deadline, now, "over", quiet=over)),
        ("polls", _limit(job)),
        ("holder", "" if job.owner is None else f"worker {job.owner}"),
        ("polled at", "" if job.status_url is None else plain(job.status_url, 300)),
        ("labels", readable_json(dict(job.labels), 300) if job.labels else ""),
    ]


def _error(job: Job) -> str:
    if not job.failures:
        return ""
    return f"{plain(readable(str(job.error)), 300)} ({count(job.failures, 'failed poll')} in a row)"


def _when(at: datetime, now: datetime, past: str, *, quiet: bool = False) -> str:
    return date_and_time(at) + ("" if quiet else f", {_in(at - now, past)}")


def _next_poll(job: Job, now: datetime) -> str:
    if job.next_poll_at is None:
        return ""
    why = "" if job.wait_source is None else f" ({changes.source(job.wait_source)})"
    return _when(job.next_poll_at, now, "due") + why


def _since(at: datetime, now: datetime) -> str:
    return f"nothing changed since {date_and_time(at)}, {duration(now - at)} ago"


def _limit(job: Job) -> str:
    if job.max_polls is None:
        return f"{job.polls}, no limit"
    permit = ", 1 permitted and not settled" if job.reserved else ""
    return f"{job.polls} of at most {job.max_polls}, {job.max_polls - job.polls - job.reserved} left{permit}"


def _remembered(job: Job) -> str:
    marks = len(job.timeline)
    return "every poll" if marks == job.polls else f"{marks} of {count(job.polls, 'poll')}"


def _written_off(job: Job) -> str:
    """Why polls are counted that left no mark, where the timeline has room for all of them."""
    lost = job.polls - len(job.timeline)
    if lost <= 0 or job.polls > LENGTH:
        return ""
    return f" ({lost} permitted to a worker that died: sent or not, it counts)"


def event_lines(events: Sequence[StoredEvent]) -> list[str]:
    """`18:30:12Z  status QUEUED -> RUNNING`: one line a change."""
    return [f"{time_of_day(moment(commit[0].at))}  {text}" for commit in commits(events) for text in described(commit)]


def event_json(stored: StoredEvent) -> dict[str, Any]:
    """An event as JSON."""
    return {
        "run": stored.run,
        "seq": stored.seq,
        "at": moment(stored.at).isoformat(),
        "kind": stored.kind,
        "data": dict(stored.data),
    }


def _timeline_json(job: Job) -> list[dict[str, Any]]:
    return [
        {
            "number": poll.number,
            "offset_seconds": poll.offset.total_seconds(),
            "verdict": poll.verdict,
            "wait_seconds": None if poll.wait is None else poll.wait.total_seconds(),
            "wait_source": poll.wait_source,
        }
        for poll in timeline.polls(job)
    ]


def job_json(job: Job) -> dict[str, Any]:
    """A snapshot as JSON; of the last answer only what is safe and short."""
    return {
        "key": job.key,
        "phase": str(job.phase),
        "paused": job.paused,
        "quarantined": job.quarantined,
        "outcome": None if job.outcome is None else str(job.outcome),
        "reason": job.reason,
        "status": job.status,
        "progress": job.progress,
        "polls": job.polls,
        "reserved": job.reserved,
        "max_polls": job.max_polls,
        "failures": job.failures,
        "error": job.error,
        "created_at": job.created_at.isoformat(),
        "next_poll_at": _iso(job.next_poll_at),
        "wait_source": job.wait_source,
        "changed_at": _iso(job.changed_at),
        "stalled": job.stalled,
        "deadline": _iso(job.deadline),
        "finished_at": _iso(job.finished_at),
        "status_url": job.status_url,
        "labels": dict(job.labels),
        "last": _last(job.last),
        "output": job.output,
    }


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _last(last: Observation | None) -> dict[str, Any] | None:
    if last is None:
        return None
    error = None if last.error is None else {"kind": str(last.error.kind), "detail": last.error.detail}
    return {"http_status": last.status, "body": last.body, "error": error}
