"""The command line, `tarry`. Needs the extra `cli`."""

from __future__ import annotations

import importlib
import sys


def main() -> None:
    """The console entry: run the command and exit with its code; never a traceback for bad input."""
    for package in ("typer", "rich"):
        try:
            importlib.import_module(package)
        except ModuleNotFoundError:
            sys.stderr.write(f"tarry: the command line needs {package}; install tarry[cli]\n")
            raise SystemExit(2) from None
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    world = importlib.import_module("tarry.cli.world")
    raise SystemExit(world.guarded(_carried_out))


def _carried_out() -> int:
    """The command, whose output may meet a full disk before it has begun: its help and its version are written by typer."""
    from tarry.cli.exits import OutputError

    try:
        importlib.import_module("tarry.cli.app").app(prog_name="tarry")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"the output cannot be written: {error.strerror or error}") from error
    return 0
