"""`tarry demo`: the claim, shown on a real service, two real processes and a real kill."""

from __future__ import annotations

import tempfile
from importlib.resources import files
from pathlib import Path

from tarry.cli.exits import Exit
from tarry.cli.world import World, complain, say


def demo_command(world: World, *, only_code: bool) -> int:
    """Play the demo, tell what happened, and check it; 1 when a claim did not hold."""
    if only_code:
        say(files("tarry.cli.demo").joinpath("export.py").read_text(encoding="utf-8").rstrip())
        return Exit.OK
    return world.run(_play_and_tell(world))


async def _play_and_tell(world: World) -> int:
    from tarry.cli.demo.play import DemoFailed, play
    from tarry.cli.demo.report import tell

    folder = Path(tempfile.mkdtemp(prefix="tarry-demo-"))
    try:
        story = await play(world, folder, say)
    except DemoFailed as failed:
        complain(f"tarry: the demo did not get to its end: {failed} (everything it left is in {folder})")
        return Exit.FAILED
    return tell(story)
