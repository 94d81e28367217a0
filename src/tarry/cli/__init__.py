"""The command line: `tarry demo`, `await`, `list`, `show`, `stub`. Needs the extra `cli`."""

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
    importlib.import_module("tarry.cli.app").app(prog_name="tarry")
