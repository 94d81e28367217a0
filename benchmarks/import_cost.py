"""What importing Tarry costs over bare Python: `python benchmarks/import_cost.py [runs]`.

Prints the median and the spread of fresh interpreters, in milliseconds. The
budget is that of `import tarry`; what the names behind it load is shown beside it.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median, quantiles
from time import perf_counter

CASES = {
    "python alone": "pass",
    "import tarry": "import tarry",
    "a spec": "from tarry import JobSpec, Match, Request",
    "the front door": "from tarry import Poller",
}
BUDGET_MS = 150


def milliseconds(code: str) -> float:
    """One fresh interpreter that runs the code."""
    begun = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (perf_counter() - begun) * 1000


def main(runs: int) -> None:
    """Take turns, so that a busy moment of the machine is shared by all cases."""
    samples: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(runs + 1):
        for name, code in CASES.items():
            samples[name].append(milliseconds(code))
    bare = median(samples["python alone"][1:])
    print(f"{'':16}{'median':>9}{'quartiles':>16}{'over bare':>11}   ({runs} runs, budget {BUDGET_MS} ms)")
    for name, taken in samples.items():
        low, middle, high = quantiles(taken[1:], n=4)
        print(f"{name:16}{middle:9.1f}{f'{low:.1f}–{high:.1f}':>16}{middle - bare:11.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
