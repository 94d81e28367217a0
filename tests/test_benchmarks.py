"""The benchmarks still run: at tiny sizes, whose figures mean nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_each_figure_can_be_measured() -> None:
    """`make bench` prints a line a figure; a peer that is not installed is left out, and the line says so."""
    # Not below a folder that only root may enter: a database server of root's runs as somebody else.
    surroundings = os.environ | {"TMPDIR": os.environ.get("PYTEST_DEBUG_TEMPROOT") or tempfile.gettempdir()}
    command = [sys.executable, "-m", "benchmarks", "--quick"]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    figures = subprocess.run(
        [sys.executable, "-c", "from benchmarks.figures import FIGURES; print(len(FIGURES))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert len(lines) - 1 == int(figures.stdout)
