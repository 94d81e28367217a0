"""The command line as a process: signals, pipes, terminals, the demo."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tarry.testing.stub import Behaviour, StubService

TARRY = (sys.executable, "-m", "tarry.cli")
PATIENCE = 120.0


@contextmanager
def started(
    *arguments: str, env: Mapping[str, str] | None = None, stdout: int | IO[Any] = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """A command as a process; gone at the end of the block."""
    process = subprocess.Popen(
        [*TARRY, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()  # one that has ended already stays as it is


def finished(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A command, run to its end."""
    return subprocess.run(
        [*TARRY, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **(env or {})},
    )


def line_with(stream: IO[str] | None, text: str) -> str:
    """Read on until this text is there, and give its line."""
    assert stream is not None
    for line in stream:
        if text in line:
            return line
    raise AssertionError(f"{text!r} never came")


def spec_file(folder: Path, url: str) -> str:
    """A spec with a quick pace, which flags cannot ask for."""
    spec = {
        "submit": {"method": "POST", "url": f"{url}/jobs", "json": {}, "idempotent": True},
        "poll": {"method": "GET", "url": f"{url}/jobs/{{submit.body.jobId}}"},
        "until": {"type": "match", "path": "body.state", "succeeded": "SUCCEEDED"},
        "strategy": {"type": "fixed", "interval": "100ms"},
        "limits": {"min_interval": "50ms"},
        "result": "body.result",
    }
    path = folder / "spec.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_the_job_and_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    """Exit 130; the command in the message finishes the same job; one submit in all."""
    service = StubService(script=[Behaviour(states=["RUNNING"], until=1_000)])
    db = str(tmp_path / "my jobs.db")
    with service.run_in_thread():
        spec = spec_file(tmp_path, service.url)
        with started("await", "--spec", spec, "--key", "k", "--db", db) as process:
            line_with(process.stdout, "status RUNNING")
            process.send_signal(number)
            _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert said.startswith("tarry: interrupted; the job lives on, go on with: tarry await ")
        (job,) = service.jobs
        service.script(job, Behaviour(states=["SUCCEEDED"]))
        again = finished(*shlex.split(said.partition("go on with: tarry ")[2]), "--json", "--quiet")
        assert again.returncode == 0, again.stderr
        assert json.loads(again.stdout)["outcome"] == "succeeded"
        assert [seen["kind"] for seen in service.requests].count("submit") == 1


def test_an_interrupt_as_json(tmp_path: Path) -> None:
    """One object, without an outcome, and why."""
    service = StubService(script=[Behaviour(states=["RUNNING"])])
    with service.run_in_thread():
        spec = spec_file(tmp_path, service.url)
        with started("await", "--spec", spec, "--key", "k", "--json", "--db", str(tmp_path / "t.db")) as process:
            line_with(process.stderr, "status RUNNING")
            process.send_signal(signal.SIGINT)
            answer, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert json.loads(answer)["error"] == "interrupted"


def test_the_same_command_twice_at_once_shares_one_job(tmp_path: Path) -> None:
    """One polls, the other hears of the outcome: both exit 0 with the same answer, after one submit."""
    service = StubService(script=[Behaviour(states=["RUNNING"])])
    with service.run_in_thread():
        arguments = ("await", "--spec", spec_file(tmp_path, service.url), "--key", "k", "--db", str(tmp_path / "t.db"))
        with started(*arguments) as first:
            line_with(first.stdout, "status RUNNING")
            with started(*arguments) as second:
                line_with(second.stdout, "known already, goes on after")
                (job,) = service.jobs
                service.script(job, Behaviour(states=["SUCCEEDED"]))
                endings = [process.communicate(timeout=PATIENCE)[0].splitlines()[-4:] for process in (first, second)]
        assert (first.returncode, second.returncode) == (0, 0)
        assert endings[0] == endings[1]
        assert [seen["kind"] for seen in service.requests].count("submit") == 1


def test_a_reader_that_goes_away_ends_the_command_quietly(tmp_path: Path) -> None:
    """Exit 141 without a traceback; the job lives on."""
    service = StubService(script=[Behaviour(states=["QUEUED", "RUNNING"])])
    db = str(tmp_path / "t.db")
    with service.run_in_thread():
        spec = spec_file(tmp_path, service.url)
        with started("await", "--spec", spec, "--key", "k", "--db", db) as process:
            line_with(process.stdout, "status QUEUED")
            assert process.stdout is not None
            process.stdout.close()
            assert process.stderr is not None
            said = process.stderr.read()
            process.wait(PATIENCE)
    assert (process.returncode, said) == (141, "")
    assert json.loads(finished("show", "k", "--db", db, "--json").stdout)["outcome"] is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_that_takes_nothing_is_told_on_one_line(tmp_path: Path) -> None:
    """A full disk behind the redirection: exit 4, not the code of a failed job; the job lives on."""
    service = StubService(script=[Behaviour(states=["QUEUED", "RUNNING"])])
    db = str(tmp_path / "t.db")
    line = "tarry: the output cannot be written: No space left on device\n"
    with service.run_in_thread(), Path("/dev/full").open("w", encoding="utf-8") as full:
        spec = spec_file(tmp_path, service.url)
        for arguments in (("await", "--spec", spec, "--key", "k"), ("list",), ("show", "k", "--json"), ("run",)):
            with started(*arguments, "--db", db, stdout=full) as process:
                _, said = process.communicate(timeout=PATIENCE)
            assert (process.returncode, said.splitlines()[-1:]) == (4, [line.strip()]), arguments
        for arguments in (("--help",), ("run", "--help"), ("--version",)):
            with started(*arguments, stdout=full) as process:
                assert process.communicate(timeout=PATIENCE)[1] == line
    assert json.loads(finished("show", "k", "--db", db, "--json").stdout)["outcome"] is None
    both = shlex.join([*TARRY, "list", "--db", db])
    assert subprocess.run(["/bin/sh", "-c", f"{both} >/dev/full 2>&1"], timeout=PATIENCE).returncode == 4


def test_a_closed_stdout_and_an_ascii_terminal_are_no_trouble(tmp_path: Path) -> None:
    """Nothing to write to, or no letters to write with: the exit code is what counts."""
    service = StubService(script=[Behaviour(states=["läuft"], until=1)])
    with service.run_in_thread():
        spec = spec_file(tmp_path, service.url)
        command = shlex.join([*TARRY, "await", "--spec", spec, "--key", "a", "--db", str(tmp_path / "t.db")])
        closed = subprocess.run(["/bin/sh", "-c", f"{command} >&-"], capture_output=True, text=True, timeout=PATIENCE)
        assert (closed.returncode, closed.stderr) == (0, "")
        arguments = ("await", "--spec", spec, "--key", "é", "--db", str(tmp_path / "t.db"))
        narrow = finished(*arguments, env={"PYTHONIOENCODING": "ascii", "COLUMNS": "0"})
        assert (narrow.returncode, narrow.stderr) == (0, "")
        assert r"l\xe4uft" in narrow.stdout


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path, package: str) -> None:
    """Exit 2."""
    block = f"import sys; sys.modules[{package!r}] = None; from tarry.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 2
    assert ended.stderr == f"tarry: the command line needs {package}; install tarry[cli]\n"


def on_a_terminal(*arguments: str, env: Mapping[str, str]) -> tuple[int, str]:
    """Run a command on a pseudo-terminal: its exit code, and all it drew."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*TARRY, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **env}
    ) as process:
        os.close(theirs)
        drawn = b""
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                drawn += os.read(ours, 65_536)
            except OSError:  # Linux: the other end is closed
                break
    os.close(ours)
    return process.returncode, re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", drawn.decode())


def test_a_terminal_gets_a_live_line_whose_last_frame_stays(tmp_path: Path) -> None:
    """It counts down while it waits; the outcome is the last thing drawn, then the output."""
    service = StubService()
    env = {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "100"}
    with service.run_in_thread():
        url = service.url
        arguments = (
            "await",
            f"{url}/jobs/{{submit.body.jobId}}",
            "--submit-url",
            f"{url}/jobs",
            "--until",
            "body.state",
        )
        more = ("--succeeded", "RUNNING", "--pending", "QUEUED", "--key", "orders", "--db", str(tmp_path / "t.db"))
        code, drawn = on_a_terminal(*arguments, *more, env=env)
        assert code == 0, drawn
        assert "orders  QUEUED" in drawn
        assert "next poll in 1s" in drawn
        assert re.search(r"✓ orders  succeeded  poll 2 in [\d.]+s", drawn)
        code, drawn = on_a_terminal(*arguments, *more, env={**env, "TERM": "dumb"})
        assert (code, "already over after 2 polls" in drawn) == (0, True)
        code, drawn = on_a_terminal("list", "--db", str(tmp_path / "t.db"), env=env)
        assert code == 0
        assert re.search(r"orders +succeeded +RUNNING +2 ", drawn)


def test_the_stub_says_what_to_type(tmp_path: Path) -> None:
    """The command that it suggests works; a port that is taken is told on one line."""
    log = tmp_path / "log.jsonl"
    with started("stub", "--port", "0", "--log", str(log)) as process:
        url = re.findall(r"http://[\d.:]+", line_with(process.stdout, "listens at"))[0]
        command = shlex.split(line_with(process.stdout, "tarry await"))[1:]
        tried = finished(*command, "--db", str(tmp_path / "t.db"), "--json", "--quiet", "--every", "1s")
        assert tried.returncode == 0, tried.stderr
        assert json.loads(tried.stdout)["output"]["rows"] == 4211
        taken = finished("stub", "--port", url.rpartition(":")[2])
        assert taken.returncode == 4
        assert len(taken.stderr.splitlines()) == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert len(log.read_text(encoding="utf-8").splitlines()) == 5


def test_the_demo_kills_resumes_and_checks_its_claims(tmp_path: Path) -> None:
    """Exit 0 within 30 s; every claim holds; the command it names shows the job."""
    ended = finished("demo", env={"TMPDIR": str(tmp_path)})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    assert len(lines) <= 40
    assert [line for line in lines if line.startswith("  NO")] == []
    assert len([line for line in lines if line.startswith("  ok")]) == 5
    order = [lines.index(next(line for line in lines if text in line)) for text in ("process 1 submits", "is killed")]
    assert order == sorted(order)
    (command,) = [line for line in lines if line.startswith("  tarry show")]
    shown = finished(*shlex.split(command)[1:])
    assert shown.returncode == 0
    assert shown.stdout.startswith("orders-2026-q2  succeeded after ")


def test_an_interrupted_demo_leaves_no_process(tmp_path: Path) -> None:
    """Exit 130, and the service that it started is gone."""
    with started("demo", env={"TMPDIR": str(tmp_path)}) as process:
        host, port = re.findall(r"http://([\d.]+):(\d+)", line_with(process.stdout, "listens at"))[0]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=PATIENCE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_stopped_gives_its_jobs_back(tmp_path: Path, number: signal.Signals) -> None:
    """Exit 0, no trace of it in the jobs, and the next worker goes on with them."""
    service = StubService(script=[Behaviour(states=["QUEUED", "RUNNING"])])
    db = str(tmp_path / "t.db")
    with service.run_in_thread():
        spec = spec_file(tmp_path, service.url)
        for key in ("a", "b", "c"):
            assert finished("submit", "--spec", spec, "--key", key, "--db", db).returncode == 0
        with started("run", "--db", db) as process:
            for _ in ("a", "b", "c"):
                line_with(process.stdout, "RUNNING")
            process.send_signal(number)
            _, said = process.communicate(timeout=PATIENCE)
            assert (process.returncode, said.count("\n")) == (0, 1)
        jobs = json.loads(finished("list", "--db", db, "--json").stdout)
        assert {(job["outcome"], job["reserved"]) for job in jobs} == {(None, 0)}
        shown = json.loads(finished("db", "--db", db, "--json").stdout)
        assert (shown["live"], shown["held"], shown["workers"]) == (3, 0, 0)


def test_watching_can_be_interrupted(tmp_path: Path) -> None:
    """Exit 130, and the job is as it was."""
    service = StubService()
    db = str(tmp_path / "t.db")
    with service.run_in_thread():
        finished("submit", "--spec", spec_file(tmp_path, service.url), "--key", "a", "--db", db)
        with started("watch", "a", "--db", db) as process:
            line_with(process.stdout, "created")
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130
