"""`tarry await --dry-run`: what the job's spec would say to answers from a file; nothing is sent or stored."""

from __future__ import annotations

from typing import Any

from tarry.cli.changes import source
from tarry.cli.exits import Exit, UsageError
from tarry.cli.flags import Flags, spec_of
from tarry.cli.table import print_table
from tarry.cli.text import as_json, duration, plain, readable, readable_json
from tarry.cli.world import World, say
from tarry.core.check import Checked, check
from tarry.specs.files import read_document
from tarry.words import SECOND, span

_BEFORE = frozenset({"baseline", "submit"})
_COLUMNS = ("answer", "verdict", "status", "then", "note")


def dry_run_command(world: World, flags: Flags, answers: str | None, *, as_json_array: bool) -> int:
    """Print what the spec makes of each answer in the file `answers`, `-` being stdin."""
    if answers is None:
        raise UsageError("--dry-run needs --answers: a file with a list of answers to try the job on")
    if answers == flags.spec == "-":
        raise UsageError("--answers -: stdin is the spec already")
    spec = spec_of(flags)
    if spec is None:
        raise UsageError("--dry-run needs the job: its URL and flags, or --spec")
    given, before = _read(answers)
    try:
        told = check(spec, given, **before, now=world.clock.now())
    except ValueError as error:
        raise UsageError(f"--answers {plain(answers)}: {plain(error)}") from None
    if as_json_array:
        say(as_json([_json(one) for one in told], indent=2))
    else:
        print_table(_COLUMNS, [_row(number, one) for number, one in enumerate(told, 1)])
    return Exit.OK


def _read(path: str) -> tuple[list[Any], dict[str, Any]]:
    """The answers to the polls, and those to the calls before them, by name."""
    value = read_document(path, f"--answers {plain(path)}").value
    if isinstance(value, list):
        return value, {}
    if isinstance(value, dict) and isinstance(value.get("answers"), list) and value.keys() <= _BEFORE | {"answers"}:
        return value["answers"], {name: value[name] for name in _BEFORE & value.keys()}
    raise UsageError(f'--answers {plain(path)}: write a list of answers, or {{"submit": an answer, "answers": a list}}')


def _row(number: int, told: Checked) -> tuple[str, ...]:
    return (
        str(number),
        told.verdict,
        plain(told.value, 24) if told.value else "-",
        _then(told),
        "; ".join(_notes(told)) or "-",
    )


def _then(told: Checked) -> str:
    if told.wait is None:
        return f"ends {told.outcome}"
    return f"polls in {duration(span(told.wait))} ({source(told.wait_source)})"


def _notes(told: Checked) -> list[str]:
    notes = [] if told.error is None else [plain(readable(told.error), 200)]
    notes += [plain(problem, 200) for problem in told.problems]
    return notes if told.output is None else [*notes, f"output {readable_json(told.output, 80)}"]


def _json(told: Checked) -> dict[str, Any]:
    return {
        "verdict": told.verdict,
        "status": told.value,
        "outcome": None if told.outcome is None else str(told.outcome),
        "wait_seconds": None if told.wait is None else told.wait / SECOND,
        "wait_source": None if told.wait_source is None else str(told.wait_source),
        "error": told.error,
        "output": told.output,
        "problems": list(told.problems),
    }
