"""What the commands need from outside: a poller, a clock, the environment, two streams."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from tarry.cli.exits import EXPECTED, Exit, code_of
from tarry.cli.text import plain
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

    def poller(self, store: str) -> Poller:
        """A poller on the database with this URL; secrets come from the environment."""
        from tarry.api import Poller

        return Poller(store, secrets=self.environ, clock=self.clock, transport=self.transport)


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
        complain(f"tarry: {plain(error)}")
        return code_of(error)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        _hush()
        return Exit.BROKEN_PIPE


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        stream.write(text + "\n")
        stream.flush()


def _hush() -> None:
    """Let what is still buffered go nowhere: flushing it at exit would end in a traceback."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
