"""What to make of failed polls and of waits that the server asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, field_validator

from tarry.core.durations import Duration, DurationLike, PositiveDuration
from tarry.core.expressions import checked
from tarry.core.model import Model

Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]


class Errors(Model):
    """When failed polls end a job.

    - `max_consecutive` and `min_outage`: unreachable once that many polls in a
      row failed *and* the first of them is that long ago (10; 15 min).
    - `max_denied`: 401 or 403 answers in a row that end the job (3).
    - `not_found_grace`: a 404 this soon after the submit, and before the job was
      ever seen, only means "not yet" (30 s).
    - `max_not_found`: later 404 answers in a row that mean lost (3).
    """

    max_consecutive: Count = 10
    min_outage: Duration = Field(default="15m", validate_default=True)
    max_denied: Count = 3
    not_found_grace: Duration = Field(default="30s", validate_default=True)
    max_not_found: Count = 3

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            max_consecutive: int = 10,
            min_outage: DurationLike = "15m",
            max_denied: int = 3,
            not_found_grace: DurationLike = "30s",
            max_not_found: int = 3,
        ) -> None: ...


READABLE = frozenset({"status", "headers", "body"})
"""The top-level names that `Hints.path` may read."""

HintUnit = Literal["s", "ms", "epoch", "timestamp"]


class Hints(Model):
    """How to treat the waits that a server asks for.

    - `maximum`: no hint makes a wait longer than this (1 h).
    - `on_excess`: a longer one is cut to the maximum ("cap") or ends the wait ("fail").
    - `path`: JMESPath of a hint in the response document, such as
      `body.pollIntervalMs`; `unit` says what it holds: "s" or "ms" to wait,
      "epoch" seconds or an ISO 8601 "timestamp" to wait for.
    """

    maximum: PositiveDuration = Field(default="1h", validate_default=True)
    on_excess: Literal["cap", "fail"] = "cap"
    path: str | None = None
    unit: HintUnit = "s"

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            maximum: DurationLike = "1h",
            on_excess: Literal["cap", "fail"] = "cap",
            path: str | None = None,
            unit: HintUnit = "s",
        ) -> None: ...

    @field_validator("path")
    @classmethod
    def _compiles(cls, path: str | None) -> str | None:
        return None if path is None else checked(path, within=READABLE)
