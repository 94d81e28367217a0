"""Runs parts, each in a fresh process, round by round, and takes medians."""

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

from benchmarks.figures import OFTEN, ONCE, Figure
from benchmarks.meter import Reading

_LONGEST, _LONGEST_QUICK = 300, 30
"""Seconds that a part may take."""

_RATES = 3
"""Rounds of the parts in `OFTEN` to one of all parts."""

_NOISE = frozenset({"PYTHONDONTWRITEBYTECODE", "PYTHONDEVMODE", "PYTHONASYNCIODEBUG"})


@dataclass(frozen=True, slots=True)
class Found:
    """What came of the parts, round by round, or why there is nothing."""

    rounds: list[dict[str, Reading]] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)

    def value(self, figure: Figure) -> float:
        """The median of what the rounds give: a ratio is of what was measured side by side, in the same minutes."""
        complete = (readings for readings in self.rounds if readings.keys() >= set(figure.parts))
        return median(map(figure.value, complete))

    def reading(self, part: str) -> Reading:
        """The medians of one part."""
        taken = [readings[part] for readings in self.rounds if part in readings]
        return {name: median(reading[name] for reading in taken) for name in taken[0]}


def run(figures: Sequence[Figure], runs: int, *, quick: bool, tell: Callable[[str], object]) -> Found:
    """Each part so many times, the parts taking turns, so that a busy moment of the machine hits all alike."""
    parts = list(dict.fromkeys(part for figure in figures for part in figure.parts))
    found, rates = Found(), 1 if quick else _RATES
    for turn in range(runs * rates):
        readings = {part: found.rounds[0][part] for part in ONCE.intersection(found.rounds[0])} if turn else {}
        wanted = [part for part in parts if part not in found.problems and part not in readings]
        if turn % rates:
            wanted = [part for part in wanted if part in OFTEN]
        with ThreadPoolExecutor(os.cpu_count() if quick else 1) as line:
            for part, reading in zip(wanted, line.map(lambda part: _once(part, quick=quick), wanted), strict=True):
                tell(f"{part}: {_told(reading)}")
                if isinstance(reading, str):
                    found.problems[part] = reading
                else:
                    readings[part] = reading
        found.rounds.append(readings)
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


def _told(reading: Reading | str) -> str:
    return reading if isinstance(reading, str) else "  ".join(f"{name} {value:,.4g}" for name, value in reading.items())
