"""For your tests: time that jumps, a job that answers from a script, a job service on loopback.

`FakeClock` runs a two-hour wait in a millisecond. `ScriptedJob` stands in for the
HTTP client. `StubService` is a real HTTP server that misbehaves on demand.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tarry.testing.clock import FakeClock, NothingToWaitFor, VirtualLoop
    from tarry.testing.scripted import Answer, ScriptedJob, ScriptExhausted, Seen
    from tarry.testing.stub import Behaviour, StubService

__all__ = [
    "Answer",
    "Behaviour",
    "FakeClock",
    "NothingToWaitFor",
    "ScriptExhausted",
    "ScriptedJob",
    "Seen",
    "StubService",
    "VirtualLoop",
]

_HOMES = {
    "Answer": "scripted",
    "Behaviour": "stub",
    "FakeClock": "clock",
    "NothingToWaitFor": "clock",
    "ScriptExhausted": "scripted",
    "ScriptedJob": "scripted",
    "Seen": "scripted",
    "StubService": "stub",
    "VirtualLoop": "clock",
}


if not TYPE_CHECKING:  # with it in sight, checkers would take every mistyped name for an object

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
