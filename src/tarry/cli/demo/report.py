"""Tells the story: a timeline, what the witnesses counted, the claims, and where to look."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tarry.cli.demo.claims import Claim, claims
from tarry.cli.demo.story import Seen, Story
from tarry.cli.exits import Exit
from tarry.cli.text import count, duration
from tarry.cli.world import complain, is_terminal, program, say
from tarry.words import SECOND, Instant, instant, moment

_NEAR = SECOND // 2
"""A poll's mark in the database and its line in the service's log are never further apart."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of the timeline."""

    at: Instant
    who: str
    what: str
    style: str = ""


def tell(story: Story) -> int:
    """Print it all; 1 when a claim did not hold."""
    checked = claims(story)
    say()
    _print_styled(timeline(story))
    say()
    for claim in checked:
        say(f"  {'ok' if claim.holds else 'NO':<4}{claim.text}")
    say()
    say(f"The database is {story.database}; look at the job with")
    say("  " + shlex.join([program(), "show", story.job.key, "--db", str(story.database)]))
    say("and at the program that ran twice with  " + shlex.join([program(), "demo", "--code"]))
    return _verdict(checked)


def _verdict(checked: Sequence[Claim]) -> int:
    broken = [claim.text for claim in checked if not claim.holds]
    if broken:
        complain(f"tarry: {count(len(broken), 'claim')} did not hold: {'; '.join(broken)}")
        return Exit.FAILED
    return Exit.OK


def timeline(story: Story) -> list[tuple[str, str]]:
    """The lines of the timeline with their styles, oldest first."""
    start = story.first.started_at
    return [
        (f"  {f'+{(each.at - start) / SECOND:.2f}s':>8}  {each.who:<10}{each.what}", each.style)
        for each in sorted(_moments(story), key=lambda each: each.at)
    ]


def _moments(story: Story) -> Iterator[Moment]:
    first, second = story.first, story.second
    yield Moment(first.started_at, "process 1", f"starts (pid {first.pid})", "dim")
    yield Moment(first.ended_at, "process 1", "is killed: SIGKILL, no goodbye", "bold red")
    yield Moment(second.started_at, "process 2", f"starts (pid {second.pid}): same program, same key", "dim")
    yield Moment(second.ended_at, "process 2", f"returns: {second.printed}", "bold green")
    before: Seen | None = None
    for seen in story.seen:
        who = "process 1" if seen.at < first.ended_at else "process 2"
        if seen.method == "POST":
            yield Moment(seen.at, who, f"submits: POST {seen.path} -> {seen.job}", "cyan")
            continue
        since = "" if before is None else f", {duration(moment(seen.at) - moment(before.at))} after the last one"
        yield Moment(seen.at, who, f"polls: {_answer(story, seen)}{since}")
        before = seen


def _answer(story: Story, seen: Seen) -> str:
    """The state that the poll brought, as the database has it."""
    if not any(abs(instant(tick.at) - seen.at) < _NEAR for tick in story.job.timeline):
        return "answer lost in the kill"
    changes = [stored for stored in story.events if stored.kind == "status"]
    known = [change.data.get("to") for change in changes if change.at < seen.at + _NEAR]
    return str(known[-1]) if known else "no status"


def _print_styled(lines: Sequence[tuple[str, str]]) -> None:
    if not is_terminal(sys.stdout):
        for text, _ in lines:
            say(text)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    for text, style in lines:
        console.print(Text(text, style=style), soft_wrap=True)
