"""Commands to one stored job: cancel, nudge, pause, resume."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tarry.cli.database import url_of
from tarry.cli.exits import Exit
from tarry.cli.show import headline, job_json
from tarry.cli.text import as_json, plain
from tarry.cli.world import World, say

if TYPE_CHECKING:
    from tarry.api import Poller
    from tarry.core.results import Job

Command = Callable[["Poller"], Awaitable["Job"]]


def control_command(world: World, command: Command, db: str, *, as_json_object: bool) -> int:
    """Give the command, and tell how the job stands then."""
    return world.run(_control(world, url_of(db, must_exist=True), command, as_json_object=as_json_object))


async def _control(world: World, url: str, command: Command, *, as_json_object: bool) -> int:
    async with world.poller(url) as poller:
        job = await command(poller)
    say(as_json(job_json(job), indent=2) if as_json_object else f"{plain(job.key)}  {headline(job)}")
    return Exit.OK
