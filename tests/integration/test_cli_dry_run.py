"""`tarry await --dry-run`: a spec is tried on answers from a file, and nothing leaves the machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tarry.cli.app import app
from tarry.cli.world import World
from tarry.testing import FakeClock, ScriptedJob

URL = "https://api.example.com/jobs/7"
TRY = ("await", URL, "--until", "body.state", "--succeeded", "DONE", "--every", "10s", "--dry-run")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, stdin: str | None = None) -> Result:
    """One command, which sends nothing and stores nothing."""
    clock = FakeClock()
    silent = ScriptedJob([AssertionError("nothing is polled here")], clock=clock)
    world = World(clock=clock, environ={}, run=clock.run, transport=silent)
    ended = CliRunner().invoke(app, list(arguments), obj=world, input=stdin, catch_exceptions=False)
    assert not silent.requests
    assert list(Path().glob("*.db")) == []
    return ended


def write(value: Any, name: str = "answers.json") -> str:
    Path(name).write_text(json.dumps(value))
    return name


def test_each_answer_is_a_line() -> None:
    """Its verdict, what comes next, and what to mind; the exit code is 0 whatever the answers say."""
    ended = run(
        *TRY, "--answers", write([{"body": {"state": {"is": "DONE"}}}, {"status": 410}, {"body": {"state": "DONE"}}])
    )
    assert ended.exit_code == 0
    assert ended.stdout.splitlines()[1:] == [
        "1       unknown    object  polls in 10s (strategy)  body.state is an object: write the path of the word in it",
        "2       not_found  -       ends lost                HTTP 410",
        '3       succeeded  DONE    ends succeeded           output {"state": "DONE"}',
    ]


def test_it_comes_as_json_too() -> None:
    """One object an answer."""
    ended = run(*TRY, "--answers", "-", "--json", stdin=json.dumps([{"body": {"state": "RUNNING"}}]))
    assert json.loads(ended.stdout) == [
        {
            "verdict": "unknown",
            "status": "RUNNING",
            "outcome": None,
            "wait_seconds": 10.0,
            "wait_source": "strategy",
            "error": None,
            "output": None,
            "problems": ["RUNNING is named nowhere"],
        }
    ]


def test_a_spec_file_is_tried_with_the_answer_to_its_submit() -> None:
    """The answers come with the one to the submit, which a condition may read."""
    spec = {
        "submit": {"method": "POST", "url": "https://api.example.com/jobs"},
        "poll": {"method": "GET", "url": URL},
        "until": {"type": "expression", "expression": "submit.body.parts == body.done"},
    }
    answers = {"submit": {"body": {"parts": 2}}, "answers": [{"body": {"done": 1}}, {"body": {"done": 2}}]}
    ended = run("await", "--spec", write(spec, "spec.json"), "--dry-run", "--answers", write(answers), "--json")
    assert [one["verdict"] for one in json.loads(ended.stdout)] == ["pending", "succeeded"]


@pytest.mark.parametrize(
    ("arguments", "answers", "told"),
    [
        (TRY, None, "--dry-run needs --answers"),
        (("await", "--key", "k", "--dry-run", "--answers", "answers.json"), [], "--dry-run needs the job"),
        ((*TRY[:-1], "--answers", "answers.json"), [], "--answers needs --dry-run"),
        (("await", "--spec", "-", "--dry-run", "--answers", "-"), [], "stdin is the spec already"),
        ((*TRY, "--answers", "answers.json"), {"answer": []}, "--answers answers.json: write a list of answers"),
        ((*TRY, "--answers", "answers.json"), 7, "--answers answers.json: write a list of answers"),
        ((*TRY, "--answers", "answers.json"), [{"stats": 1}], "--answers answers.json: answers[0]: no answer"),
        ((*TRY, "--answers", "other.json"), [], "--answers other.json: no such file"),
    ],
)
def test_what_cannot_be_tried_is_told(arguments: tuple[str, ...], answers: Any, told: str) -> None:
    """One line that names the flag, and exit code 2."""
    write(answers)
    ended = run(*arguments)
    assert ended.exit_code == 2
    assert told in ended.stderr
    assert "Traceback" not in ended.output
