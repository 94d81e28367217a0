"""A program that is started again: `python -m benchmarks.restart STORE COUNT`.

Does what is due, for up to so many jobs, and says how long that took since it was started at
BEGUN: the interpreter, imports, opening the store, the polls and their checkpoints.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from time import monotonic

from benchmarks.jobs import BUSY
from benchmarks.meter import Reading
from tarry import Poller


def restarted(store: str, count: int) -> Reading:
    """The same in a process of its own: when the store was open, and when all were written down."""
    command = [sys.executable, "-m", "benchmarks.restart", store, str(count)]
    found: Reading = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


async def _main(store: str, count: int) -> Reading:
    async with Poller(store, client="aiohttp", politeness=BUSY) as poller:
        opened = monotonic()
        done = await poller.run_once(count)
        return {"opened_s": opened, "all_s": monotonic(), "done": done}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_main(sys.argv[1], int(sys.argv[2])))))
