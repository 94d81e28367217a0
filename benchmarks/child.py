"""One part in a process of its own: `python -m benchmarks.child MODULE.FUNCTION [--quick]` prints what it found."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from importlib import import_module

from benchmarks.meter import Reading, look_less_often
from benchmarks.scale import FULL, TINY, Skipped


def measure(part: str, *, quick: bool) -> Reading | str:
    """The reading, or why there is none."""
    look_less_often()
    module, _, name = part.partition(".")
    try:
        function = getattr(import_module(f"benchmarks.{module}"), name)
        reading: Reading = asyncio.run(function(TINY if quick else FULL))
    except Skipped as why:
        return str(why)
    except ModuleNotFoundError as missing:
        return f"{missing.name} is not installed"
    return reading


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of the peers' libraries
    sys.stdout.write(json.dumps(measure(sys.argv[1], quick="--quick" in sys.argv)) + "\n")
    sys.stdout.flush()
    os._exit(0)  # threads that a peer leaves behind are not waited for
