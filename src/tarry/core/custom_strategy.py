"""A strategy that is a callable: a plain function of n, or a wait of tenacity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction, signature
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, model_validator

from tarry.core.durations import CENTURY, parse
from tarry.core.function import Function, as_function
from tarry.core.strategies import Simple
from tarry.words import SECOND, Micros, micros


@dataclass(frozen=True, slots=True)
class RetryState:
    """What a `wait_*` of tenacity asks for: the number of the poll, and that no call has failed."""

    attempt_number: int
    outcome: None = None
    idle_for: float = 0.0
    seconds_since_start: float = 0.0


class CustomStrategy(Simple):
    """A plain callable that gets n and answers with a duration; one whose parameter is `retry_state` gets that.

    A wait above 100 years is cut to that. One that raises, or answers with no duration, leaves the
    wait to the default strategy, and the timeline says so.
    """

    _positional: ClassVar[tuple[str, ...]] = ("by",)

    type: Literal["custom"] = "custom"
    jitter: Literal["none"] = "none"  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen: narrower is safe
    by: Annotated[Function, BeforeValidator(as_function)]

    if TYPE_CHECKING:

        def __init__(self, by: Function | Callable[..., Any]) -> None: ...

    @property
    def functions(self) -> tuple[Function, ...]:
        return (self.by,)

    def delay(self, n: int) -> tuple[Micros, bool]:
        call = self.by.load()
        answer = call(RetryState(n)) if _asks_for_retry_state(call) else call(n)
        is_number = isinstance(answer, int | float) and not isinstance(answer, bool)
        is_endless = is_number and answer * SECOND > CENTURY and answer != float("inf")
        return (CENTURY if is_endless else micros(parse(answer))), False

    @model_validator(mode="after")
    def _can_be_called(self) -> Self:
        call = self.by.call
        if call is None:
            return self
        if iscoroutinefunction(call) or iscoroutinefunction(type(call).__call__):
            raise ValueError("an async strategy; write a plain function of n")
        try:
            signature(call).bind(1)
        except TypeError:
            raise ValueError("no strategy: it has to take one argument, n, the number of the poll") from None
        except ValueError:  # a builtin without a signature
            return self
        return self


def _asks_for_retry_state(call: Callable[..., Any]) -> bool:
    try:
        return next(iter(signature(call).parameters), None) == "retry_state"
    except ValueError:  # a builtin without a signature
        return False
