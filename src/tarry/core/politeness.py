"""How much traffic one process makes at one host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tarry.core.model import Model


class Politeness(Model):
    """The bounds of the calls that one process makes to one host, over all of its jobs.

    - `concurrent`: calls under way at once (1 to 64; default 16).
    - `per_second`: calls that begin within a second, evenly spaced; 0.5 is one in two
      seconds (above 0, to 1000; None: no bound, the default).

    A callable counts as a host of its own. Raises `SpecError` naming the field.
    """

    concurrent: Annotated[int, Field(strict=True, ge=1, le=64)] = 16
    per_second: Annotated[float, Field(gt=0, le=1000)] | None = None

    if TYPE_CHECKING:

        def __init__(self, *, concurrent: int = 16, per_second: float | None = None) -> None: ...
