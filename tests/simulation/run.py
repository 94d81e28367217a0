"""Replay seeds and show the whole trace: python tests/simulation/run.py SEED [LAST_SEED] [--mutant NAME]."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.simulation.mutants import MUTANTS
from tests.simulation.world import Report, simulate


def main() -> int:
    """Exit with 1 when a rule was broken."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("seed", type=int)
    options.add_argument("last", type=int, nargs="?")
    options.add_argument("--mutant", choices=sorted(MUTANTS))
    given = options.parse_args()
    mutant = MUTANTS.get(given.mutant)
    if given.last is None:
        report = simulate(given.seed, mutant)
        print("\n".join(report.lines), report, sep="\n")  # the trace is the point
        return int(bool(report.broken))
    return _several([simulate(seed, mutant) for seed in range(given.seed, given.last + 1)])


def _several(reports: list[Report]) -> int:
    seen: Counter[str] = Counter()
    for report in reports:
        seen += report.seen
        for broken in report.broken:
            print(f"seed {report.seed}: {broken.rule}: {broken.detail}")
    print("\n".join(f"{count:8} {what}" for what, count in sorted(seen.items())))
    return int(any(report.broken for report in reports))


if __name__ == "__main__":
    sys.exit(main())
