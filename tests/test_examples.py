"""Every example runs offline and prints what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.prose import agrees

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


def run_example(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The script under the guard on sockets, in an empty folder, warnings being errors."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PYTHONWARNINGS": "error",
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }
    command = [sys.executable, "-m", "tests.offline", str(script)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)


def check_example(script: Path, expected: Path, folder: Path) -> None:
    """The script ends well, says nothing on stderr, and prints the expected text."""
    run = run_example(script, folder)
    assert (run.returncode, run.stderr) == (0, "")
    assert agrees(run.stdout, expected.read_text(encoding="utf-8")), f"{script.name} printed:\n{run.stdout}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(script: Path, tmp_path: Path) -> None:
    """Its output is the text in `examples/expected`."""
    check_example(script, EXAMPLES / "expected" / f"{script.stem}.txt", tmp_path)


def test_no_expectation_is_left_over() -> None:
    """Each expected text belongs to an example."""
    assert {path.stem for path in EXAMPLES.glob("expected/*.txt")} <= {path.stem for path in SCRIPTS}


@pytest.mark.parametrize(
    "code",
    [
        "print('other')",
        "print('done'); raise SystemExit(3)",
        "import sys; print('done'); print('noise', file=sys.stderr)",
        "import contextlib, socket\nprint('done')\nwith contextlib.suppress(Exception):\n    socket.gethostbyname('a.example')",
    ],
    ids=["prints something else", "ends badly", "makes noise", "reaches beyond loopback"],
)
def test_a_wrong_example_fails(code: str, tmp_path: Path) -> None:
    """The check finds what it is there to find."""
    script, expected = tmp_path / "example.py", tmp_path / "expected.txt"
    script.write_text(code)
    expected.write_text("done\n")
    with pytest.raises(AssertionError):
        check_example(script, expected, tmp_path)


def test_a_right_example_passes(tmp_path: Path) -> None:
    """And the check passes what is as it says, dots standing for anything."""
    script, expected = tmp_path / "example.py", tmp_path / "expected.txt"
    script.write_text("print('done in 1.25 s')")
    expected.write_text("done in ... s\n")
    check_example(script, expected, tmp_path)
