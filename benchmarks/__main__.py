"""`python -m benchmarks [--only cpu,late] [--runs 3] [--quick] [--write]`: measures, and prints one table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.figures import FIGURES, Figure
from benchmarks.runner import run

_PAGE = Path(__file__).parent.parent / "docs/explanation/benchmarks.md"


def main(argv: Sequence[str] | None = None) -> int:
    """1 when a part failed or a name is not known, else 0: a target that is missed is no error."""
    options = _parser().parse_args(argv)
    names = options.only.split(",") if options.only else [figure.name for figure in FIGURES]
    unknown = set(names) - {figure.name for figure in FIGURES}
    if unknown:
        print(f"no such figure: {', '.join(sorted(unknown))}; there are {', '.join(f.name for f in FIGURES)}")
        return 1
    return _measured([figure for figure in FIGURES if figure.name in names], options)


def _measured(figures: Sequence[Figure], options: argparse.Namespace) -> int:
    runs = 1 if options.quick else options.runs
    found = run(figures, runs, quick=options.quick, tell=lambda line: print(line, file=sys.stderr))
    text = f"{report.conditions(runs, len(found.rounds))}\n\n{report.table(figures, found)}"
    print(text)
    if options.write:
        report.write(_PAGE, text)
    return int(any(problem.startswith("failed") for problem in found.problems.values()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What Tarry costs, beside its peers.")
    parser.add_argument("--only", default="", help="names of figures, with commas between them")
    parser.add_argument("--runs", type=int, default=3, help="of each part, in fresh processes; the median counts")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, once: to see that everything runs")
    parser.add_argument("--write", action="store_true", help="also write the table into docs/explanation/benchmarks.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
