"""`tarry submit`: store a job for whoever polls it."""

from __future__ import annotations

from tarry.cli.database import url_of
from tarry.cli.endings import met
from tarry.cli.exits import Exit, UsageError
from tarry.cli.flags import Flags, key_of, spec_of
from tarry.cli.show import job_json
from tarry.cli.text import as_json, plain
from tarry.cli.world import World, say
from tarry.core.spec import JobSpec
from tarry.errors import JobNotFound


def submit_command(world: World, flags: Flags, db: str, *, as_json_object: bool) -> int:
    """Store the job that the flags describe, or find it."""
    key, spec = key_of(flags), spec_of(flags)
    if spec is None:
        raise UsageError("say what to poll: a URL with --until and --succeeded, or --spec")
    return world.run(_submit(world, url_of(db), key, spec, as_json_object=as_json_object))


async def _submit(world: World, url: str, key: str, spec: JobSpec, *, as_json_object: bool) -> int:
    async with world.poller(url) as poller:
        try:
            told = met(await poller.get(key))
        except JobNotFound:
            told = f"{plain(key)}: stored; `tarry run` polls it"
        job = await poller.add(key, spec)
    say(as_json(job_json(job), indent=2) if as_json_object else told)
    return Exit.OK
