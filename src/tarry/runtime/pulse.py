"""The pulse of a process: when its rounds end, and how late they come."""

from __future__ import annotations

from dataclasses import dataclass

from tarry.words import Instant, Micros


@dataclass(slots=True)
class Pulse:
    """`at` is when the last round ended (None before the first), `lag` by how much its begin was late."""

    at: Instant | None = None
    lag: Micros = 0
