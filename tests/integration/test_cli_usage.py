"""What people type wrongly: one line that names the flag, exit 2 or 4, never a traceback."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tarry.cli.app import app
from tarry.cli.world import World
from tarry.specs import spec_schema
from tarry.testing import FakeClock, ScriptedJob

URL = "https://api.example.com/jobs/7"
GOOD = ("await", URL, "--until", "body.state", "--succeeded", "DONE", "--db", "new.db")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    """One command against a service that must not be asked."""
    clock = FakeClock()
    silent = ScriptedJob([AssertionError("nothing is polled here")], clock=clock)
    world = World(clock=clock, environ={}, run=clock.run, transport=silent)
    ended = CliRunner().invoke(app, list(arguments), obj=world, input=stdin, catch_exceptions=False)
    assert not silent.requests
    return ended


def with_flags(*more: str) -> tuple[str, ...]:
    """A good command with these flags added or put in place of its own."""
    return (*GOOD, *more)


MISSPELT = {
    "poll": {"method": "GET", "url": URL},
    "until": {"type": "match", "path": "body.state", "succeeded": "DONE"},
    "max_pols": 3,
}

BAD_FLAGS = [
    (("--every", "0"), "--every"),
    (("--every", "-1"), "--every"),
    (("--every", "NaN"), "--every"),
    (("--every", "inf"), "--every"),
    (("--every", "1e308"), "--every"),
    (("--every", "5 parsecs"), "--every"),
    (("--every", "1:30"), "--every"),
    (("--every", "1_000"), "--every"),
    (("--every", "0.0000001"), "--every"),
    (("--every", "9" * 400), "--every"),
    (("--timeout", "0"), "--timeout"),
    (("--timeout", "200 years"), "--timeout"),
    (("--wait-timeout", "soon"), "--wait-timeout"),
    (("--wait-timeout", "-1s"), "--wait-timeout"),
    (("--max-polls", "0"), "--max-polls"),
    (("--max-polls", str(2**63)), "--max-polls"),
    (("--max-polls", "many"), "--max-polls"),
    (("--backoff", "quick"), "--backoff"),
    (("--max-every", "1m"), "--max-every"),
    (("--every", "1m", "--backoff", "linear", "--max-every", "1s"), "--max-every"),
    (("--until", ""), "--until"),
    (("--until", "(" * 900), "--until"),
    (("--until", "state"), "--until"),
    (("--until", "__class__"), "--until"),
    (("--succeeded", "A", "--failed", "a"), "--failed"),
    (("--result", "body["), "--result"),
    (("--progress", "body["), "--progress"),
    (("--header", "no colon"), "--header"),
    (("--header", ": empty"), "--header"),
    (("--header", "X: 1", "--header", "x: 2"), "--header"),
    (("--header", "Authorization: Bearer literal"), "--header"),
    (("--header", "Host: evil.example.com"), "--header"),
    (("--header", "X: a\r\nY: b"), "--header"),
    (("--header", "X: é"), "--header"),
    (("--submit-json", "{}"), "--submit-url"),
    (("--idempotent",), "--submit-url"),
    (("--submit-url", "https://api.example.com/jobs"), "--key"),
    (("--submit-url", "ftp://api.example.com", "--key", "k"), "URL"),
    (("--submit-url", URL, "--key", "k", "--submit-json", "{"), "--submit-json"),
    (("--submit-url", URL, "--key", "k", "--submit-json", "[NaN]"), "--submit-json"),
    (("--submit-url", URL, "--key", "k", "--submit-json", "[1e999]"), "--submit-json"),
    (("--submit-url", URL, "--key", "k", "--submit-json", '{"a": 1, "a": 2}'), "--submit-json"),
    (("--submit-url", URL, "--key", "k", "--submit-json", "[" * 100_000), "--submit-json"),
    (("--submit-url", URL, "--key", "k", "--submit-json", "9" * 5000), "--submit-json"),
    (("--key", ""), "key"),
    (("--key", " "), "key"),
    (("--key", "a\x00"), "key"),
    (("--key", "a\nCRITICAL fake"), "key"),
    (("--key", "\u202egnp.exe"), "key"),
    (("--key", "k" * 1000), "key"),
    (("--spec", "spec.json"), "--spec"),
    (("--allow-callables",), "--spec"),
    (("--db", ""), "--db"),
    (("--db", "a\x00b"), "--db"),
    (("--db", "what?.db"), "--db"),
    (("--nonsense",), "--nonsense"),
]


@pytest.mark.parametrize(("more", "named"), BAD_FLAGS, ids=lambda value: str(value)[:50])
def test_a_flag_that_cannot_work_is_named(more: tuple[str, ...], named: str, folder: Path) -> None:
    """Exit 2, the flag in the message, nothing sent, no database left behind, no control character on the screen."""
    ended = run(*with_flags(*more))
    assert ended.exit_code == 2
    assert ended.stdout == ""
    assert named in ended.stderr
    assert not set("\x00\r\u202e") & set(ended.stderr)
    assert "Traceback" not in ended.stderr
    if named != "key":  # A key is judged by the poller, once its database is open.
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://",
        "//host",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://h:99999/",
        "http://exa mple/",
        "http://h/\r\nX: y",
        "http://h\\@evil/",
        "http://h/" + "a" * 70_000,
    ],
)
def test_a_url_that_cannot_work_is_refused(url: str) -> None:
    """Exit 2, and the message says that it is the URL."""
    ended = run("await", url, "--until", "body.state", "--succeeded", "DONE", "--key", "k")
    assert ended.exit_code == 2
    assert "URL" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("await",), "give a URL, or --key to go on with a stored job"),
        (("await", "--until", "body.state"), "the status URL is missing"),
        (("await", "--key", "k", "--until", "body.state"), "the status URL is missing"),
        (("await", URL), "--until is missing"),
        (("await", URL, "--until", "body.state"), "--succeeded is missing"),
        (("await", URL, "--until", "body.state", "--failed", "F"), "--succeeded is missing"),
        (("await", URL, "--until", "body.state", "--succeeded", " , ,"), "--succeeded is missing"),
        (("await", URL + "?sig=abc", "--until", "body.state", "--succeeded", "D"), "--key is missing"),
        (("await", URL + "/{key}", "--until", "body.state", "--succeeded", "D"), "--key is missing"),
        (("await", "https://u:pw@api.example.com", "--until", "body.state", "--succeeded", "D"), "--key is missing"),
        (("show",), "KEY"),
        (("nonsense",), "nonsense"),
        (("list", "--limit", "-1"), "--limit"),
        (("list", "--limit", "1000000000"), "--limit"),
        (("stub", "--port", "99999"), "--port"),
        (("stub", "--log", "nowhere/log"), "--log"),
    ],
)
def test_what_is_missing_or_out_of_range_is_said(arguments: tuple[str, ...], said: str) -> None:
    """Exit 2, and how to go on."""
    ended = run(*arguments)
    assert ended.exit_code == 2
    assert said in ended.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (b"\x00\x01\xff\xfe", "not UTF-8"),
        ('{"poll": 1}'.encode("utf-16"), "not UTF-8"),
        (b"[]", "a JSON object is needed"),
        (b'"text"', "a JSON object is needed"),
        (b"{} {}", "not JSON"),
        (b"[" * 200_000, "too deep"),
        (b"{" + b" " * 5_000_000 + b"}", "larger than"),
        (b'{"poll": 1, "poll": 2}', "given twice"),
        (b"{}", "poll"),
        (json.dumps(MISSPELT).encode(), "JobSpec.max_pols"),
    ],
)
def test_a_spec_file_that_cannot_work_is_refused(folder: Path, content: bytes, said: str) -> None:
    """Empty, binary, cut, doubled, huge, misspelt: exit 2 and one line."""
    folder.joinpath("spec.json").write_bytes(content)
    ended = run("await", "--spec", "spec.json", "--key", "k")
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "part",
    [
        {"poll": {"function": "os:system"}},
        {"submit": {"function": "os:system"}, "poll": {"function": "os:getcwd"}},
        {"until": {"type": "custom", "by": {"function": "os:system"}}},
    ],
    ids=lambda part: next(iter(part)),
)
def test_a_spec_file_calls_nothing_by_itself(folder: Path, part: dict[str, object]) -> None:
    """To poll, to submit or to judge: exit 2 and one line that names the callable and the flag."""
    folder.joinpath("spec.json").write_text(json.dumps({"poll": MISSPELT["poll"], "until": MISSPELT["until"]} | part))
    ended = run("await", "--spec", "spec.json", "--key", "k")
    assert (ended.exit_code, len(ended.stderr.splitlines())) == (2, 1)
    assert "os:system" in ended.stderr
    assert "--allow-callables" in ended.stderr
    assert [path.name for path in folder.iterdir()] == ["spec.json"]


@pytest.mark.parametrize("name", ["no_such_module:f", "os:no_such_name", "os:sep", ":f", "os", "a\x1b:f"])
def test_a_callable_that_is_not_there_is_refused(folder: Path, name: str) -> None:
    """Also where callables are allowed: exit 2 and one line, not a wait for somebody who knows it."""
    folder.joinpath("spec.json").write_text(json.dumps({"poll": {"function": name}, "until": MISSPELT["until"]}))
    ended = run("await", "--spec", "spec.json", "--key", "k", "--allow-callables")
    assert (ended.exit_code, len(ended.stderr.splitlines())) == (2, 1)
    assert "cannot use" in ended.stderr
    assert "\x1b" not in ended.stderr


def test_a_spec_that_is_no_file_is_refused(folder: Path) -> None:
    """A folder, a pipe that nobody writes to, a name that is not there: no hang."""
    os.mkfifo(folder / "pipe")
    for name in ("missing.json", ".", "pipe", "a\x00b"):
        ended = run("await", "--spec", name, "--key", "k")
        assert (ended.exit_code, ended.stdout) == (2, ""), name
        assert "--spec" in ended.stderr


def test_an_empty_stdin_is_no_spec() -> None:
    """Exit 2."""
    ended = run("await", "--spec", "-", "--key", "k", stdin="")
    assert ended.exit_code == 2
    assert "not JSON" in ended.stderr


@pytest.mark.parametrize("command", [("list",), ("show", "k"), ("await", "--key", "k")])
def test_looking_leaves_no_database_behind(command: tuple[str, ...], folder: Path) -> None:
    """A database that is not there is trouble (exit 4), and is not made."""
    ended = run(*command, "--db", "missing.db")
    assert ended.exit_code == 4
    assert "there is no database at missing.db" in ended.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("db", "said"),
    [
        (".", "is a folder"),
        ("nowhere/x.db", "does not exist"),
        ("sqlite:////nonexistent/x.db", "does not exist"),
        ("text.db", ""),
        ("nosuch+driver://h/x", ""),
        ("mysql://u:pa@ss:hush@h:x/db", ""),
    ],
)
def test_a_database_that_cannot_be_used_is_trouble(db: str, said: str, folder: Path) -> None:
    """Exit 2 or 4 and one line, without the password; what was in the file stays there."""
    text = "this is no database, only a text that is longer than a header would be " * 3
    folder.joinpath("text.db").write_text(text, encoding="utf-8")
    ended = run(*GOOD, "--db", db)
    assert ended.exit_code in {2, 4}
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert "hush" not in ended.stderr
    assert folder.joinpath("text.db").read_text(encoding="utf-8") == text


def test_a_database_of_something_else_is_left_as_it_is(folder: Path) -> None:
    """Looking at a job that is not there: exit 2, the key in the message."""
    with closing(sqlite3.connect(folder / "other.db")) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    ended = run("show", "k", "--db", "other.db")
    assert ended.exit_code == 2
    assert "'k'" in ended.stderr


def test_the_version_is_told() -> None:
    """`tarry --version` prints it and exits 0."""
    ended = run("--version")
    assert ended.exit_code == 0
    assert ended.stdout.strip() in {f"tarry {version('tarry')}" if is_installed() else "", "tarry (not installed)"}


def is_installed() -> bool:
    """Whether the project is installed here, or only on the path."""
    try:
        return bool(version("tarry"))
    except ModuleNotFoundError:
        return False


def test_help_names_every_command() -> None:
    """`tarry` alone shows it too."""
    shown = run("--help").stdout
    assert all(f"  {command}  " in shown for command in ("await", "list", "show", "demo", "stub"))
    assert run().output.startswith("Usage: tarry")


def test_the_schema_is_printed() -> None:
    """`tarry schema` is ready to be put into a file."""
    assert json.loads(run("schema").stdout) == spec_schema()


def test_the_demo_shows_its_program() -> None:
    """`--code` prints what runs, without running it."""
    ended = run("demo", "--code")
    assert ended.exit_code == 0
    assert "await poller.await_job(" in ended.stdout
    compile(ended.stdout, "export.py", "exec")
