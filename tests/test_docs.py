"""Prose is tested: what CONTRIBUTING.md says of documentation holds for every page."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tarry.testing import Behaviour, StubService
from tests.prose import Block, agrees, blocks

ROOT = Path(__file__).parent.parent
PAGES = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path.is_file()]
ORIGIN = "https://api.example.com"
COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)


def page_name(path: Path) -> str:
    """The page as a person would write it."""
    return path.relative_to(ROOT).as_posix()


@contextlib.contextmanager
def serve() -> Iterator[str]:
    """The job service that the prose talks to; prose may say "5s", the hint keeps a run short."""
    numbers = itertools.count(1)
    hurry = Behaviour(hint="ms", wait=0.001)
    with StubService(script=[hurry], new_id=lambda: f"job-{next(numbers)}").run_in_thread() as stub:
        yield stub.url


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that a page's blocks are, together: `__main__`, as for whoever pastes them."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return module


def run_block(block: Block, program: ModuleType, origin: str) -> str:
    """What the block prints. A failure points at the line of the page."""
    code = "\n" * (block.line - 1) + block.body.replace(ORIGIN, origin)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, str(block.path), "exec"), program.__dict__)  # noqa: S102  # running prose is the point
    return printed.getvalue()


def run_page(path: Path, program: ModuleType) -> None:
    """Run the blocks in order and compare what is said to be printed."""
    printed = ""
    with serve() as origin:
        for block in blocks(path):
            if block.language == "python":
                printed = run_block(block, program, origin).replace(origin, ORIGIN)
            elif block.mark == "prints":
                assert agrees(printed, block.body), f"{block} is not what was printed:\n{printed}"


def sessions(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a console block, and the output below it."""
    parts = COMMAND.split(block.body)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def run_command(command: str) -> subprocess.CompletedProcess[str]:
    """A `tarry` command, without colour and at a known width, with the guard on sockets left to the caller."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "-m", "tarry.cli", *shlex.split(command, comments=True)[1:]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def run_console(block: Block) -> None:
    """Run the block's `tarry` commands and compare what they print."""
    with serve() as origin:
        for command, expected in sessions(block):
            if command.startswith("tarry"):
                run = run_command(command.replace(ORIGIN, origin))
                printed = (run.stdout + run.stderr).replace(origin, ORIGIN)
                assert agrees(printed, expected), f"{block}: `{command}` printed:\n{printed}"


def check_exists(command: str) -> None:
    """The documented command is there: a `tarry` command with its help, or a verb of the Makefile."""
    name, *arguments = shlex.split(command, comments=True) or [""]
    if name == "tarry":
        verb = [word for word in arguments[:1] if not word.startswith("-")]
        assert run_command(shlex.join(["tarry", *verb, "--help"])).returncode == 0, command
    elif name == "make":
        run = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_the_python_of_a_page_runs(path: Path, folder: Path, program: ModuleType) -> None:
    """Every block runs, in order, in an empty folder, and prints what the page says."""
    run_page(path, program)


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=page_name)
def test_the_commands_of_a_page_exist(path: Path, folder: Path) -> None:
    """No page names a command that is not there; marked ones print what the page says."""
    for block in blocks(path):
        if block.language == "console":
            assert COMMAND.search(block.body), f"{block} holds no command"
            for command, _ in sessions(block):
                check_exists(command)
            if block.mark == "runs":
                run_console(block)


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=page_name)
def test_a_page_uses_known_fences(path: Path) -> None:
    """A misspelt language or mark would leave a block unchecked without a word."""
    languages = {"", "python", "text", "console", "json", "sql", "toml", "yaml", "ini", "mermaid"}
    for block in blocks(path):
        assert block.language in languages or block.language.startswith("{"), f"{block}: {block.language}"
        assert block.mark in {"", "prints", "runs"}, f"{block}: {block.mark}"


@pytest.mark.parametrize(
    "page", ["```python\n1 / 0\n```", "```python\nprint(1)\n```\n\n<!-- prints -->\n```text\n2\n```"]
)
def test_a_wrong_block_fails(page: str, folder: Path, program: ModuleType) -> None:
    """A block that raises, and one that prints something else, are found."""
    path = folder / "page.md"
    path.write_text(page)
    with pytest.raises((ZeroDivisionError, AssertionError)):
        run_page(path, program)


@pytest.mark.parametrize("command", ["tarry make-coffee", "make coffee"])
def test_a_command_that_is_not_there_fails(command: str, folder: Path) -> None:
    """A page cannot advertise what the program does not know."""
    with pytest.raises(AssertionError):
        check_exists(command)


def test_blocks_share_a_namespace_and_a_service(folder: Path, program: ModuleType) -> None:
    """A later block goes on where an earlier one stopped, and the origin of the prose answers."""
    path = folder / "page.md"
    path.write_text(
        "```python\nimport httpx\n\nat = 'https://api.example.com/jobs'\njob = httpx.post(at).json()['jobId']\n```\n"
        "```python\nprint([httpx.get(f'{at}/{job}').json()['state'] for _ in range(4)])\n```\n\n"
        "<!-- prints -->\n```text\n['QUEUED', ... 'SUCCEEDED']\n```\n"
    )
    run_page(path, program)
