"""The pure core, for tools that own the clock and the state themselves.

`start` makes a job's state and the first decision, `step` judges what a call
saw and `kept` what of it travels on beside the state; `resume` says what comes
next for a stored state, and `sending` gives the state to commit before a call leaves.
`nudged` and `respecified` are what a person's command makes of a state. A decision is
`Call`, `Wait` or `Stop`.
Nothing here does I/O, reads a clock or draws a random number; instants are
microseconds since 1970 UTC.
"""

from __future__ import annotations

from tarry.core.answers import Answers, answer
from tarry.core.commands import nudged, respecified
from tarry.core.decision import Call, Decision, Stop, Wait
from tarry.core.keeping import kept
from tarry.core.machine import cancelled, resume, sending, start, step
from tarry.core.moves import IllegalMove
from tarry.core.observation import CallError, Observation
from tarry.core.state import JobState

__all__ = [
    "Answers",
    "Call",
    "CallError",
    "Decision",
    "IllegalMove",
    "JobState",
    "Observation",
    "Stop",
    "Wait",
    "answer",
    "cancelled",
    "kept",
    "nudged",
    "respecified",
    "resume",
    "sending",
    "start",
    "step",
]
