"""`tarry prune`: forget what has been over for long."""

from __future__ import annotations

from tarry.cli.database import url_of
from tarry.cli.exits import Exit, UsageError
from tarry.cli.flags import seconds_or_text
from tarry.cli.text import as_json, count
from tarry.cli.world import World, say
from tarry.errors import SpecError


def prune_command(world: World, older_than: str, db: str, *, as_json_object: bool) -> int:
    """Delete them, and say how many they were."""
    return world.run(_prune(world, url_of(db, must_exist=True), older_than, as_json_object=as_json_object))


async def _prune(world: World, url: str, older_than: str, *, as_json_object: bool) -> int:
    async with world.poller(url) as poller:
        try:
            pruned = await poller.prune(seconds_or_text(older_than))
        except SpecError as error:
            raise UsageError(f"--older-than: {error.problem}") from None
    say(as_json({"pruned": pruned}) if as_json_object else f"{count(pruned, 'job')} forgotten")
    return Exit.OK
