"""The commands around a worker, in this process: submit, run, watch, cancel, prune, db, plan."""

from __future__ import annotations

import asyncio
import gc
import json
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tarry.cli.app import app
from tarry.cli.world import World
from tarry.testing import FakeClock, ScriptedJob
from tarry.testing.scripted import Seen

JOB = (
    "https://api.example.com/jobs/1",
    "--until",
    "body.state",
    "--succeeded",
    "DONE",
    "--failed",
    "BROKEN",
    "--pending",
    "RUNNING",
)
RUNNING, DONE, BROKEN = {"state": "RUNNING"}, {"state": "DONE"}, {"state": "BROKEN"}


@dataclass
class Shell:
    """Commands in virtual time, against one scripted job and one database file."""

    folder: Path
    answers: Sequence[Any]
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.job = ScriptedJob(self.answers, clock=self.clock)
        self.db = str(self.folder / "tarry.db")

    def run(self, *arguments: str, on: str | None = None) -> Result:
        """One command on the database."""
        world = World(clock=self.clock, environ={}, run=self.clock.run, transport=self.job)
        command = [*arguments, "--db", on or self.db]
        return CliRunner().invoke(app, command, obj=world, catch_exceptions=False)

    def submit(self, key: str = "orders", *more: str) -> Result:
        """Store a job."""
        return self.run("submit", *JOB, "--key", key, *more)


def test_what_is_submitted_is_polled_by_whoever_runs(tmp_path: Path) -> None:
    """`submit` polls nothing and returns at once; `run` ends the jobs and tells each event on a line."""
    shell = Shell(tmp_path, [RUNNING, DONE])
    stored = shell.submit()
    assert (stored.exit_code, stored.stdout) == (0, "orders: stored; `tarry run` polls it\n")
    assert shell.job.polls == 0
    ran = shell.run("run", "--until-idle")
    assert (ran.exit_code, shell.job.polls) == (0, 2)
    assert ran.stderr == f"tarry: polling what is due in {shell.db} until none is left\n"
    assert [line.split("  ", 1)[1] for line in ran.stdout.splitlines()] == [
        "orders  created",
        "orders  status RUNNING",
        "orders  status RUNNING -> DONE",
        "orders  SUCCEEDED",
    ]
    again = shell.submit()
    assert (again.exit_code, again.stdout) == (0, "orders: already over after 2 polls; nothing is polled\n")


def test_a_worker_has_the_collector_look_less_often(tmp_path: Path) -> None:
    """It stops all polls while it looks, and they seldom leave it anything; for as long as the worker runs."""
    before, meanwhile = gc.get_threshold(), []

    def answer(_: Seen) -> dict[str, str]:
        meanwhile.append(gc.get_threshold()[0])
        return DONE

    shell = Shell(tmp_path, [answer])
    shell.submit()
    shell.run("run", "--until-idle")
    assert meanwhile == [100_000]
    assert gc.get_threshold() == before


def test_a_worker_can_tell_in_json_or_nothing(tmp_path: Path) -> None:
    """One object a line for a program; silence for a service's log."""
    shell = Shell(tmp_path, [DONE])
    shell.submit("a")
    ran = shell.run("run", "--until-idle", "--json")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(event["key"], event["kind"]) for event in events] == [("a", "created"), ("a", "status"), ("a", "finished")]
    shell.submit("b")
    quiet = shell.run("run", "--until-idle", "--quiet")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")


def test_a_submit_can_answer_in_json(tmp_path: Path) -> None:
    """The job as it is stored."""
    answer = json.loads(Shell(tmp_path, [DONE]).submit("orders", "--json").stdout)
    assert (answer["key"], answer["phase"], answer["polls"]) == ("orders", "waiting", 0)


def test_another_job_under_the_same_key_is_refused(tmp_path: Path) -> None:
    """Exit 2, and the job that is there stays."""
    shell = Shell(tmp_path, [DONE])
    shell.submit()
    other = shell.run("submit", "https://api.example.com/jobs/2", *JOB[1:], "--key", "orders")
    assert other.exit_code == 2
    assert "belongs to another job" in other.stderr


def test_a_worker_imports_what_has_the_callables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job with a callable is polled by one that was told where it is."""
    module = ModuleType("exports")
    exec("def check():\n    return {'state': 'DONE'}", module.__dict__)  # noqa: S102  # as a module on disk would be
    monkeypatch.setitem(sys.modules, "exports", module)
    spec = tmp_path / "spec.json"
    until = {"type": "match", "path": "body.state", "succeeded": "DONE"}
    spec.write_text(json.dumps({"poll": {"function": "exports:check"}, "until": until}))
    shell = Shell(tmp_path, [DONE])
    assert shell.run("submit", "--spec", str(spec), "--allow-callables", "--key", "called").exit_code == 0
    assert shell.run("run", "--until-idle", "--import", "exports").exit_code == 0
    assert json.loads(shell.run("show", "called", "--json").stdout)["outcome"] == "succeeded"
    refused = shell.run("run", "--import", "no_such_module")
    assert refused.exit_code == 2
    assert "--import no_such_module: ModuleNotFoundError" in refused.stderr


def test_bounds_of_a_worker_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    """Exit 2, and the flag is named."""
    refused = Shell(tmp_path, [DONE]).run("run", "--per-second", "0")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("tarry: --per-second: ")


@pytest.mark.parametrize(("answer", "code", "word"), [(DONE, 0, "succeeded"), (BROKEN, 1, "failed")])
def test_watching_tells_what_happened_and_exits_as_the_job_did(
    tmp_path: Path, answer: Any, code: int, word: str
) -> None:
    """From its first event to its last; nothing is polled."""
    shell = Shell(tmp_path, [RUNNING, answer])
    shell.submit()
    shell.run("run", "--until-idle")
    watched = shell.run("watch", "orders")
    assert (watched.exit_code, shell.job.polls) == (code, 2)
    lines = watched.stdout.splitlines()
    assert [line.split("  ", 1)[1].strip() for line in lines[:2]] == ["created", "status RUNNING"]
    assert lines[-1].startswith(f"orders  {word} after 2 polls in ")
    events = [json.loads(line)["kind"] for line in shell.run("watch", "orders", "--json").stdout.splitlines()]
    assert (events[0], events[-1]) == ("created", "finished")


def test_a_job_can_be_cancelled(tmp_path: Path) -> None:
    """It ends here, and nobody polls it any more."""
    shell = Shell(tmp_path, [RUNNING])
    shell.submit()
    assert shell.run("cancel", "orders").stdout == "orders  cancelled after 0 polls in 0s\n"
    assert json.loads(shell.run("cancel", "orders", "--json").stdout)["outcome"] == "cancelled"
    assert shell.run("run", "--until-idle").exit_code == 0
    assert shell.job.polls == 0
    assert shell.run("cancel", "nobody").exit_code == 2


def test_a_cancel_asks_the_service_unless_it_is_local(tmp_path: Path) -> None:
    """With a `cancel` in the spec it is sent, and the job goes on; `--local` ends the job here."""
    shell = Shell(tmp_path, [RUNNING, RUNNING, {"state": "STOPPED"}])
    spec = {
        "submit": {"method": "POST", "url": "https://api.example.com/jobs"},
        "poll": {"method": "GET", "url": "https://api.example.com/jobs/{submit.body.jobId}"},
        "cancel": {"method": "DELETE", "url": "https://api.example.com/jobs/{submit.body.jobId}"},
        "until": {"type": "match", "path": "body.state", "succeeded": "DONE", "cancelled": "STOPPED"},
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    for key in ("asked", "left"):
        shell.run("submit", "--spec", str(tmp_path / "spec.json"), "--key", key)
        assert shell.run("await", "--key", key, "--wait-timeout", "0").exit_code == 3
    assert shell.run("cancel", "left", "--local").stdout.startswith("left  cancelled after 1 poll")
    assert (shell.job.cancels, shell.job.polls) == (0, 2)
    assert shell.run("cancel", "asked").stdout == "asked  cancelling, 1 poll so far\n"
    assert shell.job.cancels == 1
    assert "cancelling" in shell.run("list").stdout
    shell.run("run", "--until-idle")
    assert json.loads(shell.run("show", "asked", "--json").stdout)["outcome"] == "cancelled"
    assert shell.job.cancels == 1


def test_a_job_can_be_nudged_paused_and_resumed(tmp_path: Path) -> None:
    """Each command is carried out by whoever polls the job, and tells how it stands."""
    shell = Shell(tmp_path, [RUNNING, DONE])
    shell.submit("orders", "--every", "1h")
    assert shell.run("pause", "orders").exit_code == 0
    assert shell.run("run", "--until-idle").exit_code == 0
    assert shell.job.polls == 0
    assert shell.run("resume", "orders").stdout.startswith("orders  ")
    began = shell.clock.now()
    with pytest.raises(TimeoutError):
        shell.clock.run(broken_off(shell))
    assert json.loads(shell.run("nudge", "orders", "--json").stdout)["polls"] == 1
    assert shell.run("run", "--until-idle").exit_code == 0
    assert shell.job.polls == 2
    assert shell.clock.now() - began < 60_000_000


async def broken_off(shell: Shell) -> None:
    """A worker, for ten seconds."""
    async with World(clock=shell.clock, environ={}, transport=shell.job).poller(f"sqlite:///{shell.db}") as poller:
        async with asyncio.timeout(10):
            await poller.run()


def test_what_has_been_over_for_long_can_be_forgotten(tmp_path: Path) -> None:
    """By age, as a person writes it."""
    shell = Shell(tmp_path, [DONE])
    for key in ("a", "b"):
        shell.submit(key)
    shell.run("run", "--until-idle")
    shell.clock.advance(3 * 86_400 * 1_000_000)
    shell.submit("c")
    assert shell.run("prune", "--older-than", "30d").stdout == "0 jobs forgotten\n"
    assert json.loads(shell.run("prune", "--older-than", "2d", "--json").stdout) == {"pruned": 2}
    assert [job["key"] for job in json.loads(shell.run("list", "--json").stdout)] == ["c"]
    refused = shell.run("prune", "--older-than", "long")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("tarry: --older-than: ")
    shell.run("run", "--until-idle")
    shell.clock.advance(3 * 86_400 * 1_000_000)
    assert shell.run("run", "--until-idle", "--quiet", "--keep-finished", "1d").exit_code == 0
    assert json.loads(shell.run("list", "--json").stdout) == []
    refused = shell.run("run", "--until-idle", "--keep-finished", "long")
    assert refused.exit_code == 2
    assert "tarry: --keep-finished: " in refused.stderr


def test_a_database_is_looked_at_and_left_as_it_is(tmp_path: Path) -> None:
    """Where, which schema, how many jobs; a newer one is trouble, an empty file is none yet."""
    shell = Shell(tmp_path, [RUNNING])
    shell.submit("a")
    shown = shell.run("db")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[0] == f"database   sqlite:///{shell.db}"
    assert "schema     version 1, current" in shown.stdout
    assert "jobs       1, 1 not over, 0 held" in shown.stdout
    assert json.loads(shell.run("db", "--json").stdout)["schema"] == 1
    for version, told, code in (("9", "made by a newer Tarry", 4), ("0", "brought to 1 at the next use", 0)):
        with closing(sqlite3.connect(shell.db)) as connection, connection:
            connection.execute("UPDATE tarry_meta SET value = ? WHERE name = 'schema'", (version,))
        looked = shell.run("db")
        assert (looked.exit_code, told in looked.stdout) == (code, version == "9")
    empty = tmp_path / "empty.db"
    empty.touch()
    assert "no tables yet" in shell.run("db", on=str(empty)).stdout
    assert shell.run("db", on=str(tmp_path / "none.db")).exit_code == 4


def test_a_plan_is_shown_without_a_database(tmp_path: Path) -> None:
    """The polls to come, the worst case, and what looks unintended."""

    def plan(*more: str) -> Result:
        return CliRunner().invoke(app, ["plan", *JOB, *more], catch_exceptions=False)

    shown = plan("--every", "10s", "--backoff", "exponential", "--max-polls", "4")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[:5] == [
        "POLL  AFTER   SET BY",
        "1     0s      first poll",
        "2     10s     strategy",
        "3     30s     strategy",
        "4     1m 10s  strategy",
    ]
    assert "at most 4 polls in at most 1m 10s, if the job stays pending" in shown.stdout
    assert "warning: max_polls=4 ends the wait" in shown.stdout
    told = json.loads(plan("--every", "1h", "--polls", "2", "--json").stdout)
    assert [poll["at_seconds"] for poll in told["polls"]] == [0, 3600]
    assert told["longest_seconds"] == 86_400


@pytest.mark.parametrize("command", ["plan", "submit"])
def test_a_job_has_to_be_described(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key alone says nothing of what to poll."""
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, [command, "--key", "orders"], catch_exceptions=False)
    assert refused.exit_code == 2
    assert refused.stderr == "tarry: say what to poll: a URL with --until and --succeeded, or --spec\n"


def test_the_doctor_tells_findings_and_exits_by_the_worst(tmp_path: Path) -> None:
    """One line a finding, or all as JSON; 0 while nothing is wrong, 1 when something is, also with a broken file."""
    shell = Shell(tmp_path, [DONE])
    shell.submit()
    assert shell.run("run", "--until-idle", "--quiet").exit_code == 0
    told = shell.run("doctor")
    assert told.exit_code == 0
    assert "ok       schema      version 1, current" in told.stdout.splitlines()
    with closing(sqlite3.connect(shell.db)) as connection, connection:
        connection.execute("UPDATE tarry_job SET finished_at = NULL")
    as_json = shell.run("doctor", "--json")
    found = json.loads(as_json.stdout)
    assert (as_json.exit_code, found["is_sound"]) == (1, False)
    assert {"name": "rule", "level": "error"}.items() <= next(
        f for f in found["findings"] if f["name"] == "rule"
    ).items()
    (tmp_path / "other.db").write_text("nothing like a database")
    broken = shell.run("doctor", on=str(tmp_path / "other.db"))
    assert broken.exit_code == 1
    assert broken.stdout.splitlines()[-1].startswith("error    database    the file is no SQLite database")


def test_a_worker_tells_how_it_is_doing(tmp_path: Path) -> None:
    """As JSON once a minute; to a person only what is late."""
    shell = Shell(tmp_path, [RUNNING, RUNNING, DONE])
    shell.submit("orders", "--every", "50s")
    told = [json.loads(line) for line in shell.run("run", "--until-idle", "--json").stdout.splitlines()]
    (health,) = [line["health"] for line in told if "health" in line]
    assert (health["held"], health["late_seconds"], health["problems"]) == (0, 0.0, [])
    shell.submit("more", "--every", "50s")
    assert shell.run("run", "--until-idle").stderr.count("\n") == 1
