"""What comes next, as a value; the driver acts on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tarry.frozen import quick
from tarry.words import CallKind, Instant, Micros, Outcome, WaitSource


@quick
@dataclass(frozen=True, slots=True)
class Call:
    """Make this call now and cut it after `timeout` microseconds.

    `refresh`: the last one was denied, so credentials are to be fetched afresh.
    """

    kind: CallKind
    timeout: Micros
    refresh: bool = False


@quick
@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing until `due`; `source` says what set it."""

    due: Instant
    source: WaitSource


@quick
@dataclass(frozen=True, slots=True)
class Stop:
    """The job is over."""

    outcome: Outcome


Decision: TypeAlias = Call | Wait | Stop
