"""How often, how long and how many times a job may be polled."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from tarry.core.durations import Duration, DurationLike, PositiveDuration
from tarry.core.model import Model
from tarry.words import Micros, micros


class Limits(Model):
    """The bounds of one job, kept over restarts.

    - `min_interval`: the floor; no two polls of the job start closer (above 0; default 1 s).
    - `max_polls`: status calls over the life of the job (1 to 10⁹; None: unlimited, the default).
    - `total_duration`: from the job's creation, in wall-clock time, downtime
      included (above 0; default 24 h; None: unlimited).
    - `poll_timeout`: bounds one whole call, connecting and the body included (above 0; default 30 s).
    - `initial_delay`: moves the first poll (default 0: at once).

    A wait without any limit has to be asked for: write both `max_polls=None`
    and `total_duration=None`. Raises `SpecError` naming the field.
    """

    min_interval: PositiveDuration = Field(default="1s", validate_default=True)
    max_polls: Annotated[int, Field(strict=True, ge=1, le=1_000_000_000)] | None = None
    total_duration: PositiveDuration | None = Field(default="24h", validate_default=True)
    poll_timeout: PositiveDuration = Field(default="30s", validate_default=True)
    initial_delay: Duration = Field(default=0, validate_default=True)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            min_interval: DurationLike = "1s",
            max_polls: int | None = None,
            total_duration: DurationLike | None = "24h",
            poll_timeout: DurationLike = "30s",
            initial_delay: DurationLike = 0,
        ) -> None: ...

    @cached_property
    def floor(self) -> Micros:
        """`min_interval`, as it is reckoned with."""
        return micros(self.min_interval)

    @model_validator(mode="after")
    def _limited_or_said_so(self) -> Limits:
        if self.total_duration is None and self.max_polls is None and "max_polls" not in self.model_fields_set:
            raise ValueError("a wait without any limit: set max_polls or total_duration, or write both as None")
        return self
