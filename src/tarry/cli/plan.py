"""`tarry plan`: the polls to come, before any is made."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tarry.cli.changes import source
from tarry.cli.exits import Exit, UsageError
from tarry.cli.flags import Flags, spec_of
from tarry.cli.table import print_table
from tarry.cli.text import as_json, count, duration
from tarry.cli.world import say
from tarry.core.plan import Plan, plan
from tarry.words import SECOND, Micros, span


def plan_command(flags: Flags, polls: int, *, as_json_object: bool) -> int:
    """Print the plan of the job that the flags describe."""
    spec = spec_of(flags)
    if spec is None:
        raise UsageError("say what to poll: a URL with --until and --succeeded, or --spec")
    ahead = plan(spec, polls)
    if as_json_object:
        say(as_json(_as_json(ahead), indent=2))
        return Exit.OK
    print_table(
        ("poll", "after", "set by"),
        [(str(poll.number), _after(poll.at), source(poll.source.value)) for poll in ahead.polls],
    )
    for line in _worst(ahead):
        say(line)
    return Exit.OK


def _after(at: Micros) -> str:
    return duration(span(at))


def _worst(ahead: Plan) -> list[str]:
    most = "any number of polls" if ahead.most_polls is None else f"at most {count(ahead.most_polls, 'poll')}"
    longest = "for ever" if ahead.longest is None else f"in at most {_after(ahead.longest)}"
    return [f"{most} {longest}, if the job stays pending", *(f"warning: {text}" for text in ahead.warnings)]


def _as_json(ahead: Plan) -> dict[str, Any]:
    longest: timedelta | None = None if ahead.longest is None else span(ahead.longest)
    return {
        "polls": [
            {"number": poll.number, "at_seconds": poll.at / SECOND, "source": poll.source.value} for poll in ahead.polls
        ],
        "most_polls": ahead.most_polls,
        "most_hinted": ahead.most_hinted,
        "longest_seconds": None if longest is None else longest.total_seconds(),
        "warnings": list(ahead.warnings),
    }
