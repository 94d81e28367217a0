"""What the commands need from outside: a poller, a clock, the environment, two streams."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tarry.cli.exits import EXPECTED, Exit, OutputError, code_of
from tarry.cli.text import plain, readable
from tarry.clock import SystemClock

if TYPE_CHECKING:  # the help and the version need no poller, and so neither pydantic nor a database library
    from tarry.api import Poller
    from tarry.ports import Clock, Transport


@dataclass(frozen=True, slots=True)
class World:
    """The surroundings of one command; tests bring their own clock, poller and loop."""

    clock: Clock = field(default_factory=SystemClock)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    run: Callable[[Coroutine[Any, Any, int]], int] = asyncio.run
    transport: Transport | None = None

    def poller(self, store: str, **more: Any) -> Poller:
        """A poller on the database with this URL, with more options of its own; secrets come from the environment."""
        from tarry.api import Poller

        return Poller(store, secrets=self.environ, clock=self.clock, transport=self.transport, **more)


def program() -> str:
    """What a person types to start this program again: its name where the shell finds it, else its path."""
    started = Path(sys.argv[0])
    if started.stem != "tarry" or not started.exists():  # `python -m`, or a caller inside Python
        return "tarry"
    found = shutil.which("tarry")
    return "tarry" if found is not None and Path(found).samefile(started) else sys.argv[0]


def say(text: str = "") -> None:
    """One line on stdout, at once: a reader further down the pipe must not wait for a full buffer."""
    _write(sys.stdout, text)


def complain(text: str) -> None:
    """One line on stderr."""
    _write(sys.stderr, text)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sees this stream live."""
    return stream is not None and stream.isatty()


def guarded(command: Callable[[], int]) -> int:
    """Run the command; every expected error becomes one line on stderr and its exit code."""
    try:
        return command()
    except EXPECTED as error:
        if isinstance(error, OutputError):
            _hush()
        with suppress(OutputError, BrokenPipeError):  # where stderr is full too, the code has to say it
            complain(f"tarry: {plain(readable(str(error)))}")
        return code_of(error)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        _hush()
        return Exit.BROKEN_PIPE


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    try:
        stream.write(text + "\n")
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"the output cannot be written: {error.strerror or error}") from error


def _hush() -> None:
    """Let what is still buffered go nowhere: flushing it at exit would end in a traceback."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
