"""`tarry schema`: what a spec file may hold."""

from __future__ import annotations

import json

from tarry.cli.exits import Exit
from tarry.cli.world import say
from tarry.specs import spec_schema


def schema_command() -> int:
    """Print it, ready to be put into a file."""
    say(json.dumps(spec_schema(), indent=2, ensure_ascii=False))
    return Exit.OK
