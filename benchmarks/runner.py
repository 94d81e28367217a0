"""Runs parts, each in a fresh process, and takes medians."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import median

from benchmarks.figures import ONCE, Figure
from benchmarks.meter import Reading

_LONGEST, _LONGEST_QUICK = 300, 30
"""Seconds that a part may take."""

_NOISE = frozenset({"PYTHONDONTWRITEBYTECODE", "PYTHONDEVMODE", "PYTHONASYNCIODEBUG"})


@dataclass(frozen=True, slots=True)
class Found:
    """What came of the parts: their medians, or why there are none."""

    readings: dict[str, Reading] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def run(figures: Sequence[Figure], runs: int, *, quick: bool, tell: Callable[[str], object]) -> Found:
    """Each part so many times, the parts taking turns, so that a busy moment of the machine hits all alike."""
    parts = list(dict.fromkeys(part for figure in figures for part in figure.parts))
    samples: dict[str, list[Reading]] = {part: [] for part in parts}
    found = Found()
    for turn in range(runs):
        wanted = [part for part in parts if part not in found.problems and not (turn and part in ONCE)]
        with ThreadPoolExecutor(os.cpu_count() if quick else 1) as line:
            for part, reading in zip(wanted, line.map(lambda part: _once(part, quick=quick), wanted), strict=True):
                tell(f"{part}: {_told(reading)}")
                if isinstance(reading, str):
                    found.problems[part] = reading
                else:
                    samples[part].append(reading)
    found.readings.update({part: _medians(taken) for part, taken in samples.items() if taken})
    return found


def _once(part: str, *, quick: bool) -> Reading | str:
    """One run in a process of its own, with all that it starts in one group."""
    command = [sys.executable, "-m", "benchmarks.child", part, *(["--quick"] if quick else [])]
    surroundings = {name: value for name, value in os.environ.items() if name not in _NOISE}
    longest = _LONGEST_QUICK if quick else _LONGEST
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surroundings, start_new_session=True
    ) as child:
        try:
            out, err = child.communicate(timeout=longest)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return f"not over after {longest} s"
    if child.returncode:
        return f"failed: {(err.strip() or 'without a word').splitlines()[-1]}"
    answer: Reading | str = json.loads(out.splitlines()[-1])
    return answer


def _medians(taken: Sequence[Reading]) -> Reading:
    return {name: median(reading[name] for reading in taken) for name in taken[0]}


def _told(reading: Reading | str) -> str:
    return reading if isinstance(reading, str) else "  ".join(f"{name} {value:,.4g}" for name, value in reading.items())
