"""`python -m tarry.testing.stub`: the stub service as a process.

Prints one JSON line, `{"url": …}`, once it listens; ends on SIGINT or SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tarry.testing.stub.service import StubService


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until told to stop."""
    options = _parser().parse_args(argv)
    StubService(options.host, options.port, step=options.step, log=options.log).run(ready=_announce)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tarry.testing.stub", description="A job service to test against.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--step", type=_step, default="poll", help="poll, or seconds that a job spends in each stage")
    parser.add_argument("--log", type=Path, help="append each request to this file, as a JSON line")
    return parser


def _step(text: str) -> Literal["poll"] | float:
    return "poll" if text == "poll" else float(text)


def _announce(url: str) -> None:
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
