"""The program under the fleet tests: a worker until SIGTERM, that prints its number and, at its end, how it did, as JSON.

worker.py DATABASE LEASE
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import suppress

from tarry import Politeness, Poller


async def main(database: str, lease: str) -> None:
    """Poll what is due until told to stop."""
    async with Poller(database, lease=lease, politeness=Politeness(concurrent=64)) as poller:
        running = asyncio.create_task(poller.run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
        while (worker := (await poller.health()).worker) is None:  # noqa: ASYNC110  # no bell is rung for it
            await asyncio.sleep(0.05)
        print(json.dumps({"worker": worker}), flush=True)
        with suppress(asyncio.CancelledError):
            await running
        print(json.dumps({"refused": (await poller.health()).refused}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
