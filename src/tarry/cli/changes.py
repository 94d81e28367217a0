"""Changes of a job as lines: what happened, at which poll, and when the next one is due."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import groupby

from tarry.cli.text import count, duration, plain, progress, readable, time_of_day
from tarry.core.results import Job
from tarry.ports import StoredEvent
from tarry.words import Instant, Json, moment

# What happens before the first poll: there is no count of polls to tell with it.
_OF_SUBMIT = frozenset(
    {"created", "baseline_taken", "baseline_failed", "submit_sent", "submitted", "submit_failed", "probing"}
    | {"probe_failed"}
)

_CALLED = re.compile(r"^(baseline|submit|probe): ")

_WORDS_OF_SOURCE = {
    "start": "first poll",
    "strategy": "strategy",
    "strategy_error": "the strategy failed: default strategy",
    "maximum": "maximum",
    "hint": "server's hint",
    "hint_bound": "server's hint, cut to the bound",
    "floor": "min_interval",
    "at_once": "at once: moved, or denied",
    "error_backoff": "backoff after a failed poll",
    "deadline": "brought forward: deadline",
    "stagger": "spread out after a downtime",
    "nudge": "a nudge",
}


def source(name: str | None) -> str:
    """What set a wait, in words."""
    return "nothing" if name is None else _WORDS_OF_SOURCE.get(name, plain(name, 40))


def line(commit: Sequence[StoredEvent], job: Job | None) -> str:
    """`18:30:14Z  poll 3    status QUEUED -> RUNNING, progress 40 %; next poll in 2s`.

    `commit` holds what one commit changed. `job` is the snapshot after it; None when there is only a newer one.
    """
    at = commit[-1].at
    if _OF_SUBMIT.issuperset(stored.kind for stored in commit):
        job = None
    what = ", ".join(described(commit))
    polls, due = ("", "") if job is None else (f"poll {job.polls}", _next(at, job))
    return f"{time_of_day(moment(at))}  {polls:<9} {what}{due}"


def commits(events: Iterable[StoredEvent]) -> list[list[StoredEvent]]:
    """The events by the commit that made them: those of one instant, what comes before the first poll apart."""
    return [list(together) for _, together in groupby(events, key=lambda seen: (seen.at, seen.kind in _OF_SUBMIT))]


def described(commit: Sequence[StoredEvent]) -> list[str]:
    """What one commit changed, each change once: a status that no set names is told as what it is."""
    kinds = {stored.kind for stored in commit}
    is_unknown = {"status", "unknown_status"} <= kinds
    told = [stored for stored in commit if not is_unknown or stored.kind != "unknown_status"]
    words = [describe(stored.kind, stored.data) for stored in told]
    return [
        f"{text}, which is in none of the sets" if is_unknown and stored.kind == "status" else text
        for stored, text in zip(told, words, strict=True)
    ]


def describe(kind: str, data: Mapping[str, Json]) -> str:
    """What an event says; a kind that is not known here is shown by its name."""
    words = _WORDS.get(kind)
    return plain(kind.replace("_", " "), 40) if words is None else words(data)


def _next(at: Instant, job: Job) -> str:
    if job.next_poll_at is None:
        return ""
    wait = job.next_poll_at - moment(at)
    return "; next poll now" if wait <= timedelta() else f"; next poll in {duration(wait)}"


def _shown(data: Mapping[str, Json], name: str) -> str:
    value = data.get(name)
    return "none" if value is None else plain(value, 60)


def _status(data: Mapping[str, Json]) -> str:
    before, after = data.get("from"), _shown(data, "to")
    return f"status {after}" if before is None else f"status {_shown(data, 'from')} -> {after}"


def _progress(data: Mapping[str, Json]) -> str:
    value = data.get("progress")
    return f"progress {progress(value if isinstance(value, str | float | int) else None) or 'none'}"


def _wait(data: Mapping[str, Json]) -> str:
    name = data.get("source")
    error = data.get("error")
    why = f" ({plain(readable(str(error)), 120)})" if error else ""
    return f"wait set by {source(name if isinstance(name, str) else None)}{why}"


def _finished(data: Mapping[str, Json]) -> str:
    reason = data.get("reason")
    return _shown(data, "outcome").upper() + ("" if reason is None else f": {plain(readable(str(reason)), 200)}")


def _error(data: Mapping[str, Json]) -> str:
    return plain(readable(_CALLED.sub("", str(data.get("error")))), 120)


_WORDS: dict[str, Callable[[Mapping[str, Json]], str]] = {
    "created": lambda _: "created",
    "submit_sent": lambda _: "submitting",
    "baseline_taken": lambda _: "baseline taken",
    "baseline_failed": lambda data: f"baseline failed: {_error(data)}",
    "submitted": lambda data: "found by the probe" if data.get("by") == "probe" else "submitted",
    "submit_failed": lambda data: f"submit failed: {_error(data)}",
    "probing": lambda _: "the answer is lost, looking for the job",
    "probe_failed": lambda data: f"probe failed: {_error(data)}",
    "status_url_moved": lambda data: f"polled at {_shown(data, 'to')} from now on",
    "status": _status,
    "progress": _progress,
    "blocked": lambda data: f"blocked, waits for a person (status {_shown(data, 'status')})",
    "unblocked": lambda _: "no longer blocked",
    "unknown_status": lambda data: f"status {_shown(data, 'value')} is in none of the sets",
    "poll_failed": lambda data: f"poll failed: {_error(data)}",
    "recovered": lambda data: f"answers again after {count(_number(data, 'failed_polls'), 'failed poll')}",
    "stalled": lambda data: f"stalled: no change for {duration(timedelta(microseconds=_number(data, 'unmoved_us')))}",
    "unstalled": lambda _: "moves again",
    "wait_changed": _wait,
    "spec_changed": lambda data: f"spec changed: {_listed(data, 'fields')}",
    "reset": lambda data: f"begun anew by a {_shown(data, 'by')}",
    "imported": lambda _: "came from another store",
    "nudged": lambda _: "told to look now",
    "paused": lambda _: "paused",
    "quarantined": lambda data: f"quarantined: {_number(data, 'strikes')} processes ended while it was called",
    "resumed": lambda _: "goes on",
    "freed": lambda _: "taken from a worker that stopped",
    "written_off": lambda _: "a permit of a worker that stopped counts as a poll",
    "gap": lambda data: f"{count(_number(data, 'missed'), 'older event')} no longer kept",
    "finished": _finished,
}


def _listed(data: Mapping[str, Json], name: str) -> str:
    value = data.get(name)
    return plain(", ".join(map(str, value)), 200) if isinstance(value, list) else "none"


def _number(data: Mapping[str, Json], name: str) -> int:
    value = data.get(name)
    return value if isinstance(value, int) else 0
