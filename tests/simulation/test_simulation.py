"""Several processes, one database, one service, every fault: the rules hold in each seed.

Replay a failure with `python tests/simulation/run.py SEED`, which shows the whole trace.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.simulation.mutants import NoReservation
from tests.simulation.world import simulate

SEEDS = 500
CHUNK = 25
CHUNKS = [pytest.param(first, marks=pytest.mark.slow if first > CHUNK else ()) for first in range(1, SEEDS + 1, CHUNK)]

# What has to happen somewhere in all seeds, or they prove nothing.
SOMETIMES = frozenset(
    {
        "a call of the last run",
        "command nudge",
        "command pause",
        "command reset",
        "command resume",
        "command update",
        "event written_off",
        "fence refusal",
        "killed in commit",
        "killed in poll",
        "killed in sleep",
        "killed in store checkpoint",
        "killed in submit",
        "late send",
        "lease lost",
        "long pause",
        "lost COMMIT",
        "lost answer",
        "outage",
        "outcome cancelled",
        "outcome exhausted",
        "outcome failed",
        "outcome submit_unknown",
        "outcome succeeded",
        "outcome timed_out",
        "pause",
        "paused during a poll",
        "reset of a held job",
        "spec changed",
        "submitted again with the same key",
        "take-over",
        "wait timeout",
        "work",
        "work broken off",
    }
)


@pytest.mark.parametrize("first", CHUNKS)
def test_no_rule_is_broken(first: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No seed breaks a rule; and over all of them, everything that the rules guard against did happen."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        report = simulate(seed)
        assert not report.broken, str(report)
        seen += report.seen
    total = _gathered(_shared(tmp_path_factory), first, seen)
    assert total is None or not SOMETIMES - total.keys()


def test_the_same_seed_gives_the_same_trace() -> None:
    """A seed decides everything that happens, another one decides otherwise."""
    assert simulate(3).lines == simulate(3).lines
    assert simulate(3).trace != simulate(4).trace


def test_the_trace_is_the_same_in_another_process() -> None:
    """Nothing depends on how Python hashes: a seed from a failed run can be replayed elsewhere."""
    script = Path(__file__).with_name("run.py")
    env = {**os.environ, "PYTHONHASHSEED": "12345"}
    shown = subprocess.run([sys.executable, str(script), "3"], env=env, capture_output=True, text=True)
    assert f"trace {simulate(3).trace}" in shown.stdout, shown.stderr


def test_a_failure_says_how_to_replay_it() -> None:
    """The report of a broken rule names the rule, the seed and the command that shows it again."""
    reports = {seed: str(simulate(seed, NoReservation)) for seed in range(1, 9)}
    seed, report = next((seed, report) for seed, report in reports.items() if "requests ≤" in report)
    assert f"seed {seed} broke the rule: requests ≤ polls + reserved" in report
    assert f"python tests/simulation/run.py {seed}\n" in report


def _shared(factory: pytest.TempPathFactory) -> Path:
    """A folder of this run of pytest, whichever of its workers asks."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "simulation"
    folder.mkdir(exist_ok=True)
    return folder


def _gathered(folder: Path, first: int, seen: Counter[str]) -> Counter[str] | None:
    """What all chunks saw, for the last of them; None while others are still to come, or were not asked for."""
    draft = folder / f"{first}.draft"
    draft.write_text(json.dumps(seen), encoding="utf-8")
    draft.rename(folder / f"{first}.json")
    found = list(folder.glob("*.json"))
    if len(found) < len(CHUNKS):
        return None
    return sum((Counter(json.loads(one.read_text("utf-8"))) for one in found), Counter())
