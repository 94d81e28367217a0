"""The last polls of a job as JSON text.

The text is `[count, at, verdict, source, run, …]`: how many polls it has, the last of them, then those before it,
newest first. Polls in a row with the same verdict and source are one run, `[verdict, source, gap, …]`, where each `gap`
says how much earlier one was than the poll after it. Times are milliseconds, `at` since the creation of the job.

A list of `[at, verdict, source]`, oldest first, is read as well: so it was written once.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from tarry.codec.reading import items, optional, parsed, read, text, whole

_WORD = re.compile("[a-z_]+")

Mark: TypeAlias = tuple[int, str, str | None]
"""A poll: milliseconds since creation, verdict, what set the wait after it."""


def decode_timeline(stored: str | None) -> list[Mark]:
    """The last polls, oldest first. Raises `CheckpointError`."""
    return [] if stored is None else read("timeline", _marks, parsed(stored, "timeline"))


def extended_timeline(stored: str | None, poll: Mark, waited: str | None, most: int) -> str:
    """The text with one more poll, and of those before it the newest: `most` in all; `waited` set the wait it ended.

    The text is extended as it is: it was checked when the job was claimed, and its words are our own.
    """
    at, verdict, source = poll
    last = f'{at},"{verdict}",null' if source is None else f'{at},"{verdict}","{source}"'
    if stored is None or stored == "[]":
        return f"[1,{last}]"
    if stored[1] == "[" or " " in stored:
        stored = _in_runs(decode_timeline(stored), most)
    count, was_at, was_verdict, rest = stored.split(",", 3)
    polls, gap, (_, _, runs) = int(count[1:]) + 1, at - int(was_at), rest.partition(",")
    begin = f"[{was_verdict},null," if waited is None else f'[{was_verdict},"{waited}",'
    if runs.startswith(begin):
        runs = f"{begin}{gap},{runs[len(begin) :]}"
    else:
        runs = f"{begin}{gap}],{runs}" if runs else f"{begin}{gap}]]"
    if polls > most:
        polls, runs = polls - 1, _without_oldest(runs)
    return f"[{polls},{last},{runs}"


def _without_oldest(runs: str) -> str:
    runs, _, _ = runs.rpartition(",")
    return f"{runs}]]" if runs[-1].isdigit() else f"{runs.rpartition(',[')[0]}]"


def _in_runs(marks: list[Mark], most: int) -> str:
    first, *later = marks
    stored, waited = extended_timeline(None, first, None, most), first[2]
    for mark in later:
        stored, waited = extended_timeline(stored, mark, waited, most), mark[2]
    return stored


def _marks(value: object) -> list[Mark]:
    found = items(value)
    return _in_old_form(found) if not found or isinstance(found[0], list) else _of_runs(*found)


def _in_old_form(marks: list[Any]) -> list[Mark]:
    return [(whole(at), _word(verdict), optional(_word)(source)) for at, verdict, source in marks]


def _word(value: object) -> str:
    """One of ours, by its looks: a text that is extended must not be cut in the middle of another."""
    word = text(value)
    if not _WORD.fullmatch(word):
        raise ValueError("a verdict or a source that is no word")
    return word


def _of_runs(count: Any, at: Any, verdict: Any, source: Any, *runs: Any) -> list[Mark]:
    at, marks = whole(at), []
    for word, cause, *gaps in map(items, ([verdict, source, 0], *runs)):
        said = _word(word), optional(_word)(cause)
        for gap in gaps:
            at -= whole(gap)
            marks.append((at, *said))
    if whole(count) != len(marks):
        raise ValueError(f"it says that it has {count} polls, and has {len(marks)}")
    return marks[::-1]
