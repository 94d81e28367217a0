"""Plays the demo: a service, a process that waits, a kill, a second process that goes on."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tarry.cli.demo import service
from tarry.cli.demo.story import Life, Story
from tarry.cli.history import whole_history
from tarry.cli.interrupts import interruptible
from tarry.cli.text import plain
from tarry.cli.world import World
from tarry.errors import JobNotFound
from tarry.words import MILLISECOND, Instant

if TYPE_CHECKING:
    from tarry.api import Poller

KEY = "orders-2026-q2"
PATIENCE = 60.0
"""Seconds for everything together, on a machine that is busy; a sixth of it is usual."""

_LOOK_EVERY = 20 * MILLISECOND

Say = Callable[[str], None]


class DemoFailed(Exception):  # the demo's failure, told as one line
    """The demo could not be played to its end; the text says why."""


async def play(world: World, folder: Path, tell: Say) -> Story:
    """Play it in this folder; every child process is gone when this returns or raises."""
    try:
        async with asyncio.timeout(PATIENCE):
            with interruptible():
                return await _play(world, folder, tell)
    except TimeoutError:
        raise DemoFailed(f"it took longer than {PATIENCE:.0f}s") from None


async def _play(world: World, folder: Path, tell: Say) -> Story:
    database, log = folder / "tarry.db", folder / "requests.jsonl"
    async with _child(*service.arguments(log)) as serving:
        url = service.url_in(await _first_line(serving))
        arguments = ("-m", "tarry.cli.demo.export", url, f"sqlite:///{database}")
        tell(f"A job service listens at {url}; process 1 starts the job and waits for it ...")
        first = await _killed_after_two_polls(world, arguments, database)
        tell("... killed with SIGKILL after its second poll. Process 2 runs the same program ...")
        second = await _finished(world, arguments)
    async with world.poller(f"sqlite:///{database}") as poller:
        job, events = await poller.get(KEY), await whole_history(poller, KEY)
    return Story(folder, database, first, second, service.read_log(log), job, events)


async def _killed_after_two_polls(world: World, arguments: tuple[str, ...], database: Path) -> Life:
    """Kill it in the wait after its second poll, which is when the database has counted two."""
    started = world.clock.now()
    async with _child(*arguments) as child, world.poller(f"sqlite:///{database}") as poller:
        while await _polls(poller) < 2:
            if child.returncode is not None:
                raise DemoFailed(f"process 1 ended early: {await _complaint(child)}")
            await world.clock.sleep(_LOOK_EVERY)
        child.kill()
        return await _life(world, child, started)


async def _polls(poller: Poller) -> int:
    try:
        return (await poller.get(KEY)).polls
    except JobNotFound:
        return 0


async def _finished(world: World, arguments: tuple[str, ...]) -> Life:
    started = world.clock.now()
    async with _child(*arguments) as child:
        life = await _life(world, child, started)
    if life.exit_code:
        raise DemoFailed(f"process 2 ended with exit code {life.exit_code}: {life.printed}")
    return life


async def _life(world: World, child: Process, started: Instant) -> Life:
    output, complaint = await child.communicate()
    printed = (output or complaint).decode(errors="replace").strip()
    last_line = plain(printed.splitlines()[-1]) if printed else ""
    return Life(child.pid, started, world.clock.now(), child.returncode or 0, last_line)


@asynccontextmanager
async def _child(*arguments: str) -> AsyncIterator[Process]:
    """A Python process of its own session, so that Ctrl-C reaches only us; killed on the way out."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def _first_line(child: Process) -> str:
    if child.stdout is None or not (line := await child.stdout.readline()):
        raise DemoFailed(f"the job service did not start: {await _complaint(child)}")
    return line.decode(errors="replace")


async def _complaint(child: Process) -> str:
    _, complaint = await child.communicate()
    lines = complaint.decode(errors="replace").strip().splitlines()
    return plain(lines[-1], 300) if lines else "it said nothing"
