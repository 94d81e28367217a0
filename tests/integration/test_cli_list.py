"""`tarry list` and `tarry show` over a database with jobs in several states."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tarry.api import Poller
from tarry.cli.app import app
from tarry.cli.world import World
from tarry.core.conditions import Match
from tarry.core.limits import Limits
from tarry.core.request import Request
from tarry.core.spec import JobSpec
from tarry.testing import FakeClock, ScriptedJob

EXPORT = JobSpec(
    poll=Request("GET", "https://api.example.com/jobs/{key}"),
    until=Match("body.state", succeeded="DONE", failed="BROKEN"),
    limits=Limits(max_polls=5, total_duration="1h"),
    labels={"team": "orders"},
)


@pytest.fixture
def clock() -> FakeClock:
    """One clock for the jobs and for those who look at them."""
    return FakeClock()


@pytest.fixture
def db(tmp_path: Path, clock: FakeClock) -> str:
    """A database with a finished, a failed and an untouched job."""
    path = str(tmp_path / "tarry.db")

    async def fill() -> None:
        answers = [{"state": "DONE", "rows": 3}, {"state": "BROKEN"}]
        transport = ScriptedJob(answers, clock=clock)
        async with Poller(f"sqlite:///{path}", clock=clock, transport=transport) as poller:
            await poller.await_job("a-done", EXPORT)
            await poller.await_job("b-broken", EXPORT, raises=False)
            await poller.add("[red]c-open", EXPORT)

    clock.run(fill())
    return path


def run(clock: FakeClock, *arguments: str) -> Result:
    """One command at the clock's time."""
    world = World(clock=clock, environ={}, run=clock.run)
    return CliRunner().invoke(app, list(arguments), obj=world, catch_exceptions=False)


def test_the_list_has_a_line_a_job(clock: FakeClock, db: str) -> None:
    """Oldest first: state, last status, polls, age, what comes next."""
    clock.advance(60_000_000)
    shown = run(clock, "list", "--db", db)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "KEY          STATE      LAST STATUS  POLLS  AGE     NEXT POLL  DEADLINE",
        "a-done       succeeded  DONE         1/5    1m 00s  -          -",
        "b-broken     failed     BROKEN       1/5    1m 00s  -          -",
        "[red]c-open  waiting    -            0/5    1m 00s  due        in 59m 00s",
    ]


def test_the_list_is_filtered_and_cut(clock: FakeClock, db: str) -> None:
    """By outcome (any of several), by prefix, by number; a cut list says so."""
    keys = [job["key"] for job in json.loads(run(clock, "list", "--db", db, "--json").stdout)]
    assert keys == ["a-done", "b-broken", "[red]c-open"]
    ended = run(clock, "list", "--db", db, "--json", "--outcome", "Failed", "--outcome", "expired")
    assert [job["key"] for job in json.loads(ended.stdout)] == ["b-broken"]
    begun = run(clock, "list", "--db", db, "--json", "--prefix", "a-")
    assert [job["key"] for job in json.loads(begun.stdout)] == ["a-done"]
    assert run(clock, "list", "--db", db, "--limit", "1").stdout.endswith("(the first 1; --limit shows more)\n")


def test_an_outcome_that_is_none_is_refused(clock: FakeClock, db: str) -> None:
    """Exit 2, and the words that are."""
    refused = run(clock, "list", "--db", db, "--outcome", "done\x1b")
    assert refused.exit_code == 2
    assert r"'done\\x1b' is none of succeeded, partial" in refused.stderr


def test_a_job_is_shown_in_full(clock: FakeClock, db: str) -> None:
    """The detail for a person."""
    shown = run(clock, "show", "a-done", "--db", db)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0] == "a-done  succeeded after 1 poll in 0s"
    assert "timeline (every poll)" in lines
    assert lines[-1] == '  {"state": "DONE", "rows": 3}'


def test_a_job_is_shown_as_json(clock: FakeClock, db: str) -> None:
    """State, timeline and all events for a program."""
    shown = json.loads(run(clock, "show", "b-broken", "--db", db, "--json").stdout)
    assert (shown["outcome"], shown["polls"], shown["labels"]) == ("failed", 1, {"team": "orders"})
    assert [event["kind"] for event in shown["events"]] == ["created", "status", "finished"]
    assert shown["events"][0]["at"] == "2026-01-01T00:00:00+00:00"
    (poll,) = shown["timeline"]
    assert poll == {
        "number": 1,
        "offset_seconds": 0.0,
        "verdict": "failed",
        "wait_seconds": None,
        "wait_source": None,
    }


def test_a_key_that_is_not_there_is_said(clock: FakeClock, db: str) -> None:
    """Exit 2: the person typed it wrongly."""
    missing = run(clock, "show", "nope", "--db", db)
    assert missing.exit_code == 2
    assert "'nope'" in missing.stderr


def test_a_command_that_is_interrupted_exits_130(clock: FakeClock, db: str) -> None:
    """Ctrl-C in any command is no traceback."""

    def interrupted(work: object) -> int:
        getattr(work, "close")()  # noqa: B009  # any coroutine; it is never run here
        raise KeyboardInterrupt

    world = World(clock=clock, environ={}, run=interrupted)
    ended = CliRunner().invoke(app, ["list", "--db", db], obj=world, catch_exceptions=False)
    assert (ended.exit_code, ended.output) == (130, "")
