"""A program that is started again: `python -m benchmarks.restart STORE COUNT BEGUN`.

Does what is due, for up to so many jobs, and says how long that took since it was started at
BEGUN: the interpreter, imports, opening the store, the polls and their checkpoints.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from time import monotonic

from benchmarks.jobs import BUSY, Noted
from benchmarks.meter import Reading
from tarry import Poller


def restarted(store: str, count: int) -> Reading:
    """The same in a process of its own: seconds until the first poll, and until all are written down."""
    command = [sys.executable, "-m", "benchmarks.restart", store, str(count), repr(monotonic())]
    found: Reading = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


async def _main(store: str, count: int, begun: float) -> Reading:
    transport = Noted()
    async with Poller(store, transport=transport, politeness=BUSY) as poller:
        opened = monotonic()
        done = await poller.run_once(count)
        written = monotonic()
    spans = {"opened_s": opened, "first_s": transport.first, "all_s": written}
    return {name: at - begun for name, at in spans.items()} | {"done": done}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))))
