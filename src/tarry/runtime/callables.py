"""How a caller's callable is called: with what it carried, watched, and its answer made plain JSON."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any

from pydantic import BaseModel

from tarry.core.texts import as_json_text
from tarry.ports import Clock
from tarry.words import SECOND, Json, Micros

log = logging.getLogger("tarry.runtime")

CARRY_LIMIT = 4096
"""Bytes of a carried state as JSON."""

_HELD_UP: Micros = SECOND
_STATE = "state"


def place_of_state(function: Callable[..., Any], arguments: Mapping[str, Any]) -> inspect.Parameter | None:
    """The parameter `state` of a callable that carries state from call to call; None for one that does not.

    An argument of that name, which the spec gives, is the caller's own.
    """
    try:
        place = inspect.signature(function).parameters.get(_STATE)
    except (ValueError, TypeError):  # a builtin without a signature
        return None
    by_name = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    return place if place is not None and place.kind in by_name and _STATE not in arguments else None


def with_state(place: inspect.Parameter | None, arguments: dict[str, Any], carried: str | None) -> dict[str, Any]:
    """The arguments with the state that the last call carried; before the first the default stands, or None."""
    if place is None:
        return arguments
    if carried is not None:
        return {**arguments, _STATE: json.loads(carried)}
    return arguments if place.default is not place.empty else {**arguments, _STATE: None}


def unpacked(place: inspect.Parameter | None, answer: object) -> tuple[Json, str | None]:
    """The answer as plain JSON, and the state to carry as JSON text.

    Raises TypeError or ValueError for what is no JSON, or too large a state.
    """
    if place is None:
        return as_json(answer), None
    if not isinstance(answer, tuple) or len(answer) != 2:  # a pair
        raise TypeError("it has a parameter `state`, so it has to return two things: its answer, and the next state")
    body, state = answer
    carried = as_json_text(as_json(state))
    if (size := len(carried.encode("utf-8", "surrogatepass"))) > CARRY_LIMIT:
        raise ValueError(f"it carries {size} bytes of state; at most {CARRY_LIMIT} are kept")
    return as_json(body), carried


def as_json(value: object) -> Json:
    """The value as plain JSON data; raises TypeError or ValueError when it is not."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    plain: Json = json.loads(json.dumps(value, allow_nan=False))
    return plain


class Watched:
    """Awaits for a job, and says so in the log when that holds up the event loop for more than a second."""

    def __init__(self, awaitable: Awaitable[Any], clock: Clock, job: object) -> None:
        self._awaitable = awaitable
        self._clock = clock
        self._job = job

    def __await__(self) -> Generator[Any, Any, Any]:
        steps, thrown = self._awaitable.__await__(), None
        while True:
            began = self._clock.now()
            try:
                step = next(steps) if thrown is None else steps.throw(thrown)
            except StopIteration as end:
                return end.value
            finally:
                self._timed(self._clock.now() - began)
            thrown = None
            try:
                yield step
            except BaseException as error:  # noqa: BLE001  # a cancellation is the callable's to see
                thrown = error

    def _timed(self, spent: Micros) -> None:
        if spent > _HELD_UP:
            log.warning(
                "a callable of job %r held up the event loop for %.1f s; make it a plain function, which runs in a "
                "thread, or await what it waits for",
                self._job,
                spent / SECOND,
            )
