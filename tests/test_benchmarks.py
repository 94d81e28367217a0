"""The benchmarks still run: at tiny sizes, whose figures mean nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks.figures import AIOHTTP, BARE, FIGURES
from benchmarks.runner import Found

ROOT = Path(__file__).parent.parent


def test_a_ratio_is_of_one_round_and_the_figure_the_median_of_rounds() -> None:
    """What is divided was measured in the same minutes: a machine that gets slower moves both."""
    rounds = [(80, 100), (7, 10), (6, 10)]
    found = Found([{AIOHTTP: {"polls_s": ours}, BARE: {"polls_s": bare}} for ours, bare in rounds])
    assert found.value(FIGURES[0]) == 0.7
    assert found.reading(BARE) == {"polls_s": 10}


def test_a_round_that_lacks_a_part_counts_for_the_others() -> None:
    """Some parts are measured more often than others; a figure is made of the rounds that have all of it."""
    found = Found([{AIOHTTP: {"polls_s": 8}, BARE: {"polls_s": 10}}, {AIOHTTP: {"polls_s": 6}}])
    assert found.value(FIGURES[0]) == 0.8
    assert found.reading(AIOHTTP) == {"polls_s": 7}


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
