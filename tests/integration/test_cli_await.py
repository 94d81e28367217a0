"""`tarry await` in this process: exit codes, reports and answers, in virtual time."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tarry.cli.app import app
from tarry.cli.interrupts import interruptible
from tarry.cli.world import World
from tarry.errors import SpecError
from tarry.specs.files import read_spec
from tarry.testing import Answer, FakeClock, ScriptedJob
from tarry.words import ErrorKind

STATUS_URL = "https://api.example.com/jobs/{submit.body.jobId}"
SUBMIT = ("--submit-url", "https://api.example.com/jobs", "--submit-json", '{"dataset": "orders"}')
JUDGED = (
    *("--until", "body.state", "--succeeded", "SUCCEEDED,DONE", "--failed", "FAILED", "--pending", "QUEUED"),
    *("--pending", "RUNNING", "--cancelled", "CANCELLED", "--partial", "PARTIAL", "--expired", "EXPIRED"),
    *("--skipped", "SKIPPED", "--blocked", "PAUSED"),
)
SUCCEEDED = {"state": "SUCCEEDED", "result": {"rows": 3}}


@dataclass
class Terminal:
    """Runs commands in virtual time against one scripted job and one database file."""

    folder: Path
    answers: Sequence[Any]
    submit: Any = None
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.job = ScriptedJob(self.answers, submit=self.submit, clock=self.clock)
        self.db = str(self.folder / "tarry.db")

    def run(self, *arguments: str, stdin: str | None = None, secrets: dict[str, str] | None = None) -> Result:
        """One command; an exception that is no exit fails the test."""
        world = World(clock=self.clock, environ=secrets or {}, run=self.clock.run, transport=self.job)
        return CliRunner().invoke(app, list(arguments), obj=world, input=stdin, catch_exceptions=False)

    def await_(self, *more: str, key: str = "orders") -> Result:
        """`tarry await` for the scripted job."""
        return self.run("await", STATUS_URL, *SUBMIT, *JUDGED, "--key", key, "--db", self.db, *more)


def spec_file(folder: Path, **changes: Any) -> str:
    """A spec as a JSON file."""
    spec: dict[str, Any] = {
        "poll": {"method": "GET", "url": "https://api.example.com/jobs/1"},
        "until": {"type": "match", "path": "body.state", "succeeded": "SUCCEEDED"},
    }
    path = folder / "spec.json"
    path.write_text(json.dumps(spec | changes), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("answers", "more", "code", "outcome"),
    [
        ([SUCCEEDED], (), 0, "succeeded"),
        ([{"state": "PARTIAL"}], (), 0, "partial"),
        ([{"state": "SKIPPED"}], (), 0, "skipped"),
        ([{"state": "FAILED"}], (), 1, "failed"),
        ([{"state": "EXPIRED"}], (), 1, "expired"),
        ([{"state": "RUNNING"}], ("--timeout", "90"), 3, "timed_out"),
        ([{"state": "RUNNING"}], ("--max-polls", "3"), 3, "exhausted"),
        ([{"state": "RUNNING"}, Answer(410)], (), 4, "lost"),
        ([{"state": "CANCELLED"}], (), 5, "cancelled"),
    ],
)
def test_the_exit_code_tells_the_outcome(
    tmp_path: Path, answers: list[Any], more: tuple[str, ...], code: int, outcome: str
) -> None:
    """A script can tell success, failure, a limit, trouble and a cancellation apart."""
    ended = Terminal(tmp_path, answers).await_("--json", *more)
    assert ended.exit_code == code, ended.stderr
    answer = json.loads(ended.stdout)
    assert (answer["key"], answer["outcome"]) == ("orders", outcome)
    assert (answer["error"] is None) == (code == 0)


def test_a_service_that_stays_away_is_trouble(tmp_path: Path) -> None:
    """The budget of failed polls is spent: exit 4."""
    terminal = Terminal(tmp_path, [ErrorKind.CONNECT])
    spec = spec_file(tmp_path, errors={"max_consecutive": 2, "min_outage": "1s"})
    ended = terminal.run("await", "--spec", spec, "--key", "k", "--db", terminal.db, "--json")
    assert ended.exit_code == 4
    assert json.loads(ended.stdout)["outcome"] == "unreachable"


def test_a_submit_of_unknown_fate_is_trouble(tmp_path: Path) -> None:
    """Nobody knows whether it arrived, and it is not sent again: exit 4, one submit, no poll."""
    terminal = Terminal(tmp_path, [SUCCEEDED], submit=ErrorKind.TIMEOUT)
    ended = terminal.await_("--json")
    assert ended.exit_code == 4
    assert json.loads(ended.stdout)["outcome"] == "submit_unknown"
    assert (terminal.job.submits, terminal.job.polls) == (1, 0)


def test_a_lost_submit_is_sent_again_where_that_is_safe(tmp_path: Path) -> None:
    """`--idempotent` says that it is; both times with the same key."""
    terminal = Terminal(tmp_path, [SUCCEEDED], submit=[ErrorKind.TIMEOUT, Answer(202, {"jobId": "job-1"})])
    assert terminal.await_("--idempotent").exit_code == 0
    first, second = (seen.headers["idempotency-key"] for seen in terminal.job.requests[:2])
    assert first == second


def test_a_condition_that_answers_no_verdict_is_wrong_usage(tmp_path: Path) -> None:
    """The spec is at fault, not the service: exit 2."""
    terminal = Terminal(tmp_path, [{"state": "RUNNING"}])
    spec = spec_file(tmp_path, until={"type": "expression", "expression": "body.state"})
    ended = terminal.run("await", "--spec", spec, "--key", "k", "--db", terminal.db)
    assert ended.exit_code == 2
    assert ended.stderr.startswith("tarry: ")


def test_the_answer_has_output_polls_and_time(tmp_path: Path) -> None:
    """What `--result` selects, the polls made, the seconds from creation to the end, both instants."""
    terminal = Terminal(tmp_path, [{"state": "RUNNING"}, SUCCEEDED])
    answer = json.loads(terminal.await_("--json", "--quiet", "--result", "body.result", "--every", "5s").stdout)
    assert answer["output"] == {"rows": 3}
    assert (answer["polls"], answer["elapsed_seconds"]) == (2, 5.0)
    assert answer["started_at"] == "2026-01-01T00:00:00+00:00"
    assert answer["finished_at"] == "2026-01-01T00:00:05+00:00"


def test_each_change_is_one_line(tmp_path: Path) -> None:
    """Time, polls, what changed, the next wait; a poll that changed nothing is no line; then the output."""
    terminal = Terminal(
        tmp_path,
        [
            {"state": "QUEUED"},
            {"state": "QUEUED"},
            {"state": "RUNNING", "progress": 40},
            Answer(503, headers={"Retry-After": "20"}),
            {"state": "RUNNING", "progress": 80},
            {"state": "SUCCEEDED", "progress": 100, "result": {"rows": 3}},
        ],
    )
    ended = terminal.await_("--every", "10", "--progress", "body.progress", "--result", "body.result")
    assert ended.exit_code == 0
    assert ended.stderr == ""
    lines = ended.stdout.splitlines()
    first = lines.index("00:00:00Z  poll 1    status QUEUED; next poll in 10s")
    assert (
        ", ".join(line.removeprefix("00:00:00Z").strip() for line in lines[:first]) == "created, submitting, submitted"
    )
    assert lines[first + 1 :] == [
        "00:00:20Z  poll 3    status QUEUED -> RUNNING, progress 40 %; next poll in 10s",
        "00:00:30Z  poll 4    poll failed: HTTP 503, wait set by server's hint; next poll in 20s",
        "00:00:50Z  poll 5    answers again after 1 failed poll, progress 80 %; next poll in 10s",
        "00:01:00Z  poll 6    status RUNNING -> SUCCEEDED, progress 100 %",
        "succeeded after 6 polls in 1m 00s",
        "{",
        '  "rows": 3',
        "}",
    ]


def test_with_json_the_changes_go_to_stderr(tmp_path: Path) -> None:
    """Stdout holds one object and nothing else; `--quiet` silences the rest."""
    ended = Terminal(tmp_path, [{"state": "RUNNING"}, SUCCEEDED]).await_("--json")
    assert len(ended.stdout.splitlines()) == 1
    assert "status RUNNING" in ended.stderr
    quiet = Terminal(tmp_path, [{"state": "RUNNING"}, SUCCEEDED]).await_("--json", "--quiet", key="other")
    assert len(quiet.stdout.splitlines()) == 1
    assert quiet.stderr == ""


def test_quiet_prints_the_output_alone(tmp_path: Path) -> None:
    """What a script wants to keep."""
    ended = Terminal(tmp_path, [{"state": "RUNNING"}, SUCCEEDED]).await_("--quiet", "--result", "body.result.rows")
    assert (ended.stdout, ended.stderr) == ("3\n", "")


def test_words_of_the_server_cannot_forge_lines(tmp_path: Path) -> None:
    """A status with line breaks and escape sequences is shown escaped, on its own line."""
    nasty = "RUNNING\r\n\x1b[2J00:00:00Z  poll 1    SUCCEEDED\u2028\u202e"
    ended = Terminal(tmp_path, [{"state": nasty}, {"state": "FAILED"}]).await_()
    assert ended.exit_code == 1
    assert not set("\r\x1b\u2028\u202e") & set(ended.stdout + ended.stderr)
    assert not [line for line in ended.stdout.splitlines() if line.startswith("00:00:00Z  poll 1    SUCCEEDED")]


def test_patience_that_is_over_says_how_to_go_on(tmp_path: Path) -> None:
    """Exit 3; the command in the message goes on with the same job, without its spec."""
    terminal = Terminal(tmp_path, [{"state": "RUNNING"}] * 3 + [SUCCEEDED])
    late = terminal.await_("--wait-timeout", "3s", "--every", "2s", key="it's mine")
    assert late.exit_code == 3
    assert late.stderr == (
        "tarry: not over after 2 polls, status RUNNING; the job lives on, "
        f"go on with: tarry await --key 'it'\"'\"'s mine' --db {terminal.db}\n"
    )
    ended = terminal.run("await", "--key", "it's mine", "--db", terminal.db)
    assert ended.exit_code == 0
    assert ended.stdout.splitlines()[0] == "it's mine: known already, goes on after 2 polls, status RUNNING"
    assert (terminal.job.submits, terminal.job.polls) == (1, 4)


def test_a_wait_without_patience_tells_what_it_did(tmp_path: Path) -> None:
    """Zero submits, looks once, and reports that look before its last line; the next run does not tell it again."""
    terminal = Terminal(tmp_path, [{"state": "QUEUED"}, {"state": "RUNNING"}])
    late = terminal.await_("--wait-timeout", "0", "--every", "5s")
    assert late.exit_code == 3
    told = late.stdout.splitlines()
    assert "submitted" in late.stdout
    assert told[-1].startswith("00:00:00Z  poll 1    ")
    assert told[-1].endswith("status QUEUED; next poll in 5s")
    assert "not over after 1 poll, status QUEUED" in late.stderr
    terminal.clock.run(terminal.clock.sleep(5_000_000))
    again = terminal.await_("--wait-timeout", "0", "--every", "5s")
    assert again.stdout.splitlines() == [
        "orders: known already, goes on after 1 poll, status QUEUED",
        "00:00:05Z  poll 2    status QUEUED -> RUNNING; next poll in 5s",
    ]


def test_an_unknown_status_is_told_once(tmp_path: Path) -> None:
    """On one line, in the report and in `show`; `--json` has both events."""
    terminal = Terminal(tmp_path, [{"state": "RUNNING"}, {"state": "ODD"}, SUCCEEDED])
    text = "status RUNNING -> ODD, which is in none of the sets"
    told = terminal.await_("--every", "5s").stdout.splitlines()
    assert [line for line in told if "ODD" in line and "SUCCEEDED" not in line] == [
        f"00:00:05Z  poll 2    {text}; next poll in 5s"
    ]
    shown = terminal.run("show", "orders", "--db", terminal.db).stdout
    assert f"  00:00:05Z  {text}\n" in shown
    assert shown.count("none of the sets") == 1
    events = json.loads(terminal.run("show", "orders", "--db", terminal.db, "--json").stdout)["events"]
    assert [event["kind"] for event in events].count("unknown_status") == 1


def test_an_error_is_told_without_its_kind(tmp_path: Path) -> None:
    """A person reads `HTTP 503`; a program reads the kind too."""
    terminal = Terminal(tmp_path, [Answer(503)])
    spec = spec_file(tmp_path, errors={"max_consecutive": 2, "min_outage": "1s"})
    ended = terminal.run("await", "--spec", spec, "--key", "k", "--db", terminal.db)
    shown = terminal.run("show", "k", "--db", terminal.db)
    for text in (ended.stderr, shown.stdout):
        assert "2 polls in a row failed: HTTP 503" in text
        assert "http_status" not in text
    for command in (("show", "k"), ("await", "--key", "k", "--quiet")):
        assert "http_status: HTTP 503" in terminal.run(*command, "--db", terminal.db, "--json").stdout


def test_patience_that_is_over_as_json(tmp_path: Path) -> None:
    """No outcome, and why; zero looks once."""
    terminal = Terminal(tmp_path, [{"state": "RUNNING"}])
    late = terminal.await_("--wait-timeout", "0", "--json", "--quiet")
    assert late.exit_code == 3
    answer = json.loads(late.stdout)
    assert (answer["outcome"], answer["error"], answer["polls"]) == (None, "wait_timeout", 1)


def test_a_job_that_is_over_is_not_polled_again(tmp_path: Path) -> None:
    """The same command twice: the stored outcome, output and exit code, without a request."""
    terminal = Terminal(tmp_path, [{"state": "FAILED"}])
    assert terminal.await_().exit_code == 1
    again = terminal.await_()
    assert again.exit_code == 1
    assert again.stdout == "orders: already over after 1 poll; nothing is polled\n"
    assert terminal.job.polls == 1


def test_another_job_under_the_same_key_is_refused(tmp_path: Path) -> None:
    """Exit 2, and what differs."""
    terminal = Terminal(tmp_path, [SUCCEEDED])
    terminal.await_()
    more = ("--submit-url", "https://api.example.com/other", "--key", "orders", "--db", terminal.db)
    refused = terminal.run("await", STATUS_URL, *more, *JUDGED)
    assert refused.exit_code == 2
    assert "submit.url" in refused.stderr


def test_without_a_submit_the_url_is_the_key(tmp_path: Path) -> None:
    """The status URL alone names the job."""
    terminal = Terminal(tmp_path, [SUCCEEDED])
    url = "https://api.example.com/jobs/7"
    answer = terminal.run("await", url, *JUDGED, "--db", terminal.db, "--json", "--quiet")
    assert json.loads(answer.stdout)["key"] == url
    assert [seen.url for seen in terminal.job.requests] == [url]


def test_a_secret_comes_from_the_environment_and_is_not_stored(tmp_path: Path) -> None:
    """It reaches the service in the header, and neither the database nor any output."""
    terminal = Terminal(tmp_path, [SUCCEEDED])
    arguments = ("await", "https://api.example.com/jobs/7", *JUDGED, "--db", terminal.db, "--key", "k")
    header = ("--header", "Authorization: Bearer {secret.API_TOKEN}", "--header", "X-Team: one")
    ended = terminal.run(*arguments, *header, secrets={"API_TOKEN": "s3cr3t-value"})
    assert ended.exit_code == 0, ended.stderr
    sent = terminal.job.requests[0].headers
    assert (sent["authorization"], sent["x-team"]) == ("Bearer s3cr3t-value", "one")
    shown = terminal.run("show", "k", "--db", terminal.db, "--json")
    assert "s3cr3t-value" not in ended.output + shown.output
    assert b"s3cr3t-value" not in Path(terminal.db).read_bytes()


def test_a_spec_file_says_it_all(tmp_path: Path) -> None:
    """From a file or from stdin, also with a byte order mark."""
    terminal = Terminal(tmp_path, [SUCCEEDED])
    spec = spec_file(tmp_path, result="body.result.rows")
    from_file = terminal.run("await", "--spec", spec, "--key", "a", "--db", terminal.db, "--quiet")
    text = "\ufeff" + Path(spec).read_text(encoding="utf-8")
    from_stdin = terminal.run("await", "--spec", "-", "--key", "b", "--db", terminal.db, "--quiet", stdin=text)
    assert (from_file.stdout, from_stdin.stdout) == ("3\n", "3\n")


def test_a_spec_file_that_names_a_callable_needs_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a file is a program: refused until it is said to be trusted, then its module is imported and called."""
    name = "polled_by_test_cli_await"
    marks = tmp_path / "marks"
    (tmp_path / f"{name}.py").write_text(
        f"import pathlib\n\npathlib.Path({str(marks)!r}).write_text('imported')\n\ndef look():\n    return {{'state': 'RUNNING'}}\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    terminal = Terminal(tmp_path, [SUCCEEDED])
    spec = spec_file(tmp_path, poll={"function": f"{name}:look"})
    command = ("await", "--spec", spec, "--key", "k", "--db", terminal.db, "--wait-timeout", "0")
    refused = terminal.run(*command)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"tarry: --spec {spec}: it would call {name}:look; add --allow-callables if you trust this file like a script\n"
    )
    assert not marks.exists()
    late = terminal.run(*command, "--allow-callables")
    assert late.exit_code == 3
    assert late.stderr.endswith(f"--key k --db {terminal.db} --spec {spec} --allow-callables\n")
    assert "status RUNNING" in late.stdout
    assert marks.read_text(encoding="utf-8") == "imported"


@pytest.mark.parametrize(
    ("pace", "waits"),
    [
        (("--every", "3"), [3, 3, 3]),
        (("--every", "3s", "--backoff", "fixed"), [3, 3, 3]),
        (("--every", "3s", "--backoff", "linear"), [3, 6, 9]),
        (("--every", "3s", "--backoff", "exponential", "--max-every", "10s"), [3, 6, 10]),
        (("--backoff", "linear", "--max-every", "3"), [2, 3, 3]),
    ],
)
def test_the_pace_is_as_asked(tmp_path: Path, pace: tuple[str, ...], waits: list[int]) -> None:
    """Fixed, linear, exponential, with a maximum; a bare number is seconds."""
    terminal = Terminal(tmp_path, [{"state": "RUNNING"}] * 3 + [SUCCEEDED])
    assert terminal.await_("--quiet", *pace).exit_code == 0
    times = [seen.at for seen in terminal.job.requests[1:]]
    assert [(later - earlier) / 1e6 for earlier, later in pairwise(times)] == waits


def test_a_status_may_be_a_number_or_a_boolean(tmp_path: Path) -> None:
    """A shell has only texts, so a word means its number and its boolean too."""
    judged = ("--until", "body.done", "--succeeded", "true,1,2.5", "--pending", "false")
    for number, done in enumerate((True, 1, "1", 2.5, "TRUE")):
        terminal = Terminal(tmp_path, [{"done": False}, {"done": done}])
        url = f"https://api.example.com/jobs/{number}"
        assert terminal.run("await", url, *judged, "--db", terminal.db, "--quiet").exit_code == 0, done


def test_an_interrupt_before_anything_was_stored_says_so(tmp_path: Path) -> None:
    """Exit 130, nothing sent, no command to go on with."""
    terminal = Terminal(tmp_path, [SUCCEEDED])

    def interrupted(work: Coroutine[Any, Any, int]) -> int:
        async def main() -> int:
            waiting = asyncio.create_task(work)
            asyncio.get_running_loop().call_soon(waiting.cancel)
            return await waiting

        return terminal.clock.run(main())

    world = World(clock=terminal.clock, environ={}, run=interrupted, transport=terminal.job)
    arguments = ["await", "https://api.example.com/jobs/7", *JUDGED, "--db", terminal.db, "--key", "k"]
    ended = CliRunner().invoke(app, arguments, obj=world, catch_exceptions=False)
    assert ended.exit_code == 130
    assert ended.stderr == "tarry: interrupted before the job was stored; nothing was sent\n"
    assert terminal.job.requests == []


def test_outside_the_main_thread_signals_stay_as_they_are() -> None:
    """A command that runs in a thread works; it only cannot catch signals there."""

    async def inside() -> str:
        with interruptible():
            return "ran"

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: asyncio.run(inside())).result() == "ran"


def test_a_command_may_have_no_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--spec -` with a closed stdin is an empty file, no traceback."""
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SpecError, match="not JSON"):
        read_spec("-")
