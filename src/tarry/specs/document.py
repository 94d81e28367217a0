"""A document as it was written: its value, and the line of each part of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tarry.errors import SpecError

Way: TypeAlias = tuple[str | int, ...]
"""The names and positions that lead to a part of a document."""

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Document:
    """What a file holds. `lines` is asked only when something is wrong."""

    name: str
    value: Any
    lines: Callable[[], Mapping[Way, int]]

    def located(self, error: SpecError) -> SpecError:
        """The error with the line of what it is about, or of the nearest part around that."""
        way = _way(error.field)
        lines = self.lines()
        while way and way not in lines:
            way = way[:-1]
        return SpecError(error.field, error.problem, where=f"{self.name}:{lines.get(way, 1)}")


def _way(field: str) -> Way:
    """`JobSpec.until.of[1].path` as until, of, 1, path."""
    return tuple(name or int(position) for name, position in _STEP.findall(field))
