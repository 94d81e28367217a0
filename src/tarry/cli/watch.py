"""`tarry watch`: what happens to a job, whoever polls it."""

from __future__ import annotations

import asyncio

from tarry.cli.database import url_of
from tarry.cli.exits import Exit, code_of
from tarry.cli.interrupts import interruptible
from tarry.cli.reporters import Lines
from tarry.cli.show import event_json, headline
from tarry.cli.text import as_json, plain
from tarry.cli.world import World, say


def watch_command(world: World, key: str, db: str, *, as_json_lines: bool) -> int:
    """Tell its events from the first one kept; the exit code of its outcome."""
    return world.run(_watch(world, url_of(db, must_exist=True), key, as_json_lines=as_json_lines))


async def _watch(world: World, url: str, key: str, *, as_json_lines: bool) -> int:
    with interruptible():
        try:
            async with world.poller(url) as poller:
                if as_json_lines:
                    async for event in poller.watch(key):
                        say(as_json(event_json(event)))
                else:
                    await Lines(say).follow(poller, key, (0, 0))
                job = await poller.get(key)
        except asyncio.CancelledError:
            return Exit.INTERRUPTED
    if not as_json_lines:
        say(f"{plain(key)}  {headline(job)}")
    return Exit.OK if job.outcome is None else code_of(job.outcome)
