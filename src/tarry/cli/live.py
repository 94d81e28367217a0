"""The live line of `tarry await` on a terminal: status, progress, and a countdown to the next poll."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tarry.cli.changes import source
from tarry.cli.text import duration, plain, progress, readable, standing
from tarry.core.results import Job
from tarry.words import Outcome

SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
BAR_WIDTH = 16
_SECOND = timedelta(seconds=1)
# Waits that the strategy did not choose are worth a word.
_EXPECTED_SOURCES = frozenset({None, "strategy", "start", "maximum"})


def frame(job: Job, now: datetime, turn: int = 0) -> Text:
    """The line for this snapshot at this time; `turn` moves the spinner."""
    if job.outcome is not None:
        return _final(job)
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(SPIN[turn % len(SPIN)] + " ", style="cyan")
    text.append(plain(job.key, 40), style="bold")
    text.append("  " + _status(job), style="yellow" if job.failures else "cyan")
    _append_progress(text, job)
    text.append(f"  {_polls(job)}  {_next(job, now)}", style="dim")
    text.append(f"  {duration(now - job.created_at)} so far{_left(job, now)}", style="dim")
    return text


def _final(job: Job) -> Text:
    good = job.outcome is not None and job.outcome.is_success
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(("✓" if good else "✗") + " ", style="green" if good else "red")
    text.append(plain(job.key, 40), style="bold")
    text.append(f"  {job.outcome}", style="green" if good else "red")
    took = "" if job.finished_at is None else f" in {duration(job.finished_at - job.created_at)}"
    text.append(f"  {_polls(job)}{took}", style="dim")
    if job.reason and job.outcome is not Outcome.SUCCEEDED:
        text.append(f"  {plain(readable(job.reason), 100)}")
    return text


def _status(job: Job) -> str:
    if job.failures:
        return f"no answer ({job.failures} in a row): {plain(readable(job.error or 'error'), 60)}"
    if job.paused:
        return standing(job)
    word = plain(job.status, 40) if job.status else str(job.phase)
    return f"{word} (waits for a person)" if job.phase == "blocked" else word


def _append_progress(text: Text, job: Job) -> None:
    shown = progress(job.progress)
    if isinstance(job.progress, int | float):
        filled = round(min(max(job.progress, 0.0), 1.0) * BAR_WIDTH)
        text.append("  ")
        text.append("━" * filled, style="green")
        text.append("━" * (BAR_WIDTH - filled), style="bright_black")
    if shown:
        text.append((" " if isinstance(job.progress, int | float) else "  ") + shown)


def _polls(job: Job) -> str:
    return f"poll {job.polls}" + ("" if job.max_polls is None else f"/{job.max_polls}")


def _next(job: Job, now: datetime) -> str:
    if job.next_poll_at is None or job.next_poll_at <= now:
        return "polling now"
    name = job.wait_source
    why = "" if name in _EXPECTED_SOURCES else f" ({source(name)})"
    # Whole seconds: tenths that race by say nothing.
    seconds = -(-(job.next_poll_at - now) // _SECOND)
    return f"next poll in {duration(seconds * _SECOND)}{why}"


def _left(job: Job, now: datetime) -> str:
    return "" if job.deadline is None else f", {duration(job.deadline - now)} left"


class LiveLine:
    """One line of a terminal, redrawn in place; the last frame stays."""

    def __init__(self, stream: TextIO | None) -> None:
        self._turn = 0
        self._live = Live(
            console=Console(file=stream, highlight=False, markup=False, emoji=False),
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def draw(self, job: Job, now: datetime) -> None:
        """Draw this snapshot."""
        self._turn += 1
        self._live.update(frame(job, now, self._turn), refresh=True)
