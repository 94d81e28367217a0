"""Why a job ended as it did, in one line that a person can act on."""

from __future__ import annotations

from collections.abc import Iterator

from tarry.core import durations, misses
from tarry.core.state import JobState, Seen
from tarry.core.texts import short
from tarry.words import MILLISECOND, SECOND, Micros, Outcome, Verdict, span

LONGEST = 600
_KEY, _PART = 120, 160
_MOST_VALUES = 5
_MOST_MISSES = 2
_KINDS = {"missing": "missing", "empty": "an empty list", "object": "an object", "list": "a list"}
_UNFINISHED = {Outcome.TIMED_OUT, Outcome.EXHAUSTED, Outcome.UNREACHABLE}


def explain(state: JobState, max_polls: int | None = None, total_duration: Micros | None = None) -> str:
    """Key, outcome, the limit that fired, polls, time, what was seen, the last error: at most 600 bytes.

    `max_polls` and `total_duration` are the limits that the job had.
    """
    parts = [
        f"{short(state.key, _KEY)}: {state.outcome or state.phase}",
        *_why(state, max_polls, total_duration),
        _effort(state),
        *_seen(state),
        *_error(state),
    ]
    return short("; ".join(parts), LONGEST)


def _why(state: JobState, max_polls: int | None, total_duration: Micros | None) -> Iterator[str]:
    if state.reason is not None:
        yield short(state.reason, _PART)
    elif state.outcome is Outcome.TIMED_OUT and total_duration is not None:
        yield f"total_duration of {_time(total_duration)} leaves no time for another poll"
    elif state.outcome is Outcome.EXHAUSTED and max_polls is not None:
        yield f"max_polls={max_polls} are spent"
    if state.outcome in _UNFINISHED:
        yield "the remote job may still run"
    elif state.outcome is Outcome.SUBMIT_UNKNOWN:
        yield "the remote job may or may not exist; look there, then settle it with reset"


def _effort(state: JobState) -> str:
    failed = f", {state.failed_polls} of them failed" if state.failed_polls else ""
    polls = f"{state.polls} poll{'' if state.polls == 1 else 's'}{failed}"
    return polls if state.finished_at is None else f"{polls} in {_time(state.finished_at - state.created_at)}"


def _seen(state: JobState) -> Iterator[str]:
    yield from _almost(state)
    is_open = state.confirming is None and state.verdict not in {None, Verdict.BLOCKED}
    never_matched = state.outcome in _UNFINISHED and bool(state.seen) and is_open
    if never_matched:
        yield "your condition never matched"
    if state.seen:
        yield _values(state)
    if never_matched:
        yield from _misses(state)
    if state.status is not None:
        yield f"last status {state.status}"


def _almost(state: JobState) -> Iterator[str]:
    """What a limit cut short, though the condition matched."""
    if state.outcome in _UNFINISHED and state.confirming is not None:
        yield f"{state.confirming.outcome} was seen {state.confirming.times}× in a row, and confirm asks for more"
    elif state.outcome in _UNFINISHED and state.verdict is Verdict.BLOCKED:
        yield "it waits for a person"


def _misses(state: JobState) -> Iterator[str]:
    """What may be wrong with the condition."""
    if state.verdict is Verdict.UNKNOWN:
        yield from filter(None, (misses.no_word(one.path, one.value) for one in state.seen[:_MOST_MISSES]))
    ends = [value for value in state.unknown if misses.looks_terminal(value)][:_MOST_MISSES]
    if ends:
        yield f"{' and '.join(f'`{value}`' for value in ends)} looks like an end and is named nowhere"


def _values(state: JobState) -> str:
    good = state.polls - state.failed_polls
    by_path: dict[str, list[Seen]] = {}
    for one in state.seen:
        by_path.setdefault(one.path, []).append(one)
    return short(", ".join(_of_path(path, values, good) for path, values in by_path.items()), 2 * _PART)


def _of_path(path: str, values: list[Seen], good: int) -> str:
    if len(values) == 1 and values[0].times >= good > 1:
        return f"`{path}` was {_quoted(values[0].value)} in all {values[0].times} polls"
    shown = sorted(values, key=lambda one: -one.times)[:_MOST_VALUES]
    more = " and others" if len(values) > len(shown) else ""
    return f"`{path}` was " + ", ".join(f"{_quoted(one.value)} ({one.times}×)" for one in shown) + more


def _quoted(value: str) -> str:
    return _KINDS.get(value, f"`{value}`")


def _error(state: JobState) -> Iterator[str]:
    if state.error is not None and state.error not in (state.reason or ""):
        yield f"last error: {short(state.error, _PART)}"


def _time(spent: Micros) -> str:
    """The time, to the millisecond, or to the second where it is long."""
    unit = MILLISECOND if spent < 10 * SECOND else SECOND
    exact = spent // unit * unit
    return durations.write(span(max(0, exact)))
