"""A job's polls in the order they were made: when, what each came to, how long the wait after it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from tarry.cli.changes import source
from tarry.cli.text import duration, plain
from tarry.core.results import Job
from tarry.runtime.timeline import LENGTH


@dataclass(frozen=True, slots=True)
class Poll:
    """One poll: its number, its offset from the job's creation, its verdict, and the wait after it."""

    number: int
    offset: timedelta
    verdict: str
    wait: timedelta | None
    wait_source: str | None


def polls(job: Job) -> Iterator[Poll]:
    """The polls that the job remembers (the last `LENGTH`), oldest first.

    A poll that a stopped worker was permitted and never settled counts in `job.polls`
    and leaves no mark: the numbers are exact only for a job without one.
    """
    forgotten = job.polls - len(job.timeline) if len(job.timeline) >= LENGTH else 0
    starts = [tick.at for tick in job.timeline] + [job.next_poll_at]
    for position, tick in enumerate(job.timeline):
        after = starts[position + 1]
        yield Poll(
            number=forgotten + position + 1,
            offset=tick.at - job.created_at,
            verdict=tick.verdict,
            wait=None if after is None or tick.wait_source is None else after - tick.at,
            wait_source=tick.wait_source,
        )


def lines(job: Job) -> list[str]:
    """The timeline as aligned lines."""
    return [line(poll) for poll in polls(job)]


def line(poll: Poll) -> str:
    """`poll 2     +1.02s  pending         1s to the next (strategy)`."""
    wait = "" if poll.wait is None else f"{duration(poll.wait):>7} to the next ({source(poll.wait_source)})"
    offset = f"+{poll.offset.total_seconds():.2f}s"
    return f"poll {poll.number:<4d}{offset:>9}  {plain(poll.verdict, 12):<12}{wait}".rstrip()
