"""`Phases`: one strategy after another, and where in them a job stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, field_validator, model_validator

from tarry.core.custom_strategy import CustomStrategy
from tarry.core.durations import DurationLike, PositiveDuration
from tarry.core.function import Function, as_function
from tarry.core.model import Model
from tarry.core.policies import Count
from tarry.core.state import JobState, Stage
from tarry.core.strategies import Exponential, Fixed, Linear, Simple, Strategy
from tarry.frozen import replace
from tarry.words import Instant, micros

if TYPE_CHECKING:
    from collections.abc import Callable

    Wait: TypeAlias = Strategy | Callable[[int], DurationLike]


def _strategic(value: object) -> object:
    if isinstance(value, Strategy | Mapping):
        return value
    function = as_function(value)
    if isinstance(function, Function):
        return CustomStrategy(function)
    raise ValueError(
        'no strategy; write one such as Fixed("5s") or Exponential("2s", maximum="1m"), or a callable of n'
    )


_One: TypeAlias = Annotated[
    Annotated[Fixed | Linear | Exponential | CustomStrategy, Field(discriminator="type")], BeforeValidator(_strategic)
]


class Part(Model):
    """One phase: its strategy, and for how many polls or how long; with neither it is the last."""

    strategy: _One
    polls: Count | None = None
    duration: PositiveDuration | None = None

    if TYPE_CHECKING:

        def __init__(
            self, *, strategy: Simple, polls: int | None = None, duration: DurationLike | None = None
        ) -> None: ...

    @model_validator(mode="after")
    def _ends_one_way(self) -> Self:
        if self.polls is not None and self.duration is not None:
            raise ValueError("ends by polls or by duration, not by both; write two phases")
        return self

    def is_over(self, polls: int, spent: int) -> bool:
        """Whether it ended before this poll, the n-th in it, answered so many microseconds after it began."""
        if self.polls is not None:
            return polls > self.polls
        return self.duration is not None and spent >= micros(self.duration)


class Phases(Strategy):
    """One strategy after another: pairs of a strategy and how long it holds.

    A whole number counts polls, a text or `timedelta` is a duration. The last
    pair holds for ever: it is written as a strategy alone, or with None.
    Within a phase n starts again at 1. The first phase begins with the answer
    to the first poll, each other with the first answer after the end of the one
    before it. Raises `SpecError` naming the field.
    """

    _positional: ClassVar[tuple[str, ...]] = ("parts",)

    type: Literal["phases"] = "phases"
    parts: Annotated[tuple[Part, ...], Field(min_length=1, max_length=100)]

    if TYPE_CHECKING:

        def __init__(self, parts: Sequence[Wait | tuple[Wait, int | str | timedelta | None]]) -> None: ...

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(function for part in self.parts for function in part.strategy.functions)

    @field_validator("parts", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        return [_as_part(one) for one in value] if isinstance(value, list | tuple) else value

    @field_validator("parts")
    @classmethod
    def _last_is_open(cls, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        ends = [part.polls is not None or part.duration is not None for part in parts]
        if ends[-1]:
            raise ValueError("the last phase has to hold for ever: add a strategy alone at the end")
        if not all(ends[:-1]):
            raise ValueError("a phase before the last never ends; say for how many polls or how long")
        return parts


def _as_part(value: object) -> object:
    """The arguments of a `Part` for a pair or a strategy alone; JSON of a part as it is."""
    if isinstance(value, Part) or (isinstance(value, Mapping) and "strategy" in value):
        return value
    if not isinstance(value, list | tuple):
        return {"strategy": value}
    if len(value) != 2:  # a pair
        raise ValueError("a phase is a pair of a strategy and how long it holds")
    strategy, holds = value
    if isinstance(holds, float):
        raise ValueError('a whole number counts polls, and a duration is text such as "10m"')
    name = "polls" if isinstance(holds, int) else "duration"
    return {"strategy": strategy} if holds is None else {"strategy": strategy, name: holds}


AnyStrategy: TypeAlias = Annotated[
    Annotated[Fixed | Linear | Exponential | CustomStrategy | Phases, Field(discriminator="type")],
    BeforeValidator(_strategic),
]
"""Any strategy, its JSON, or a plain callable: the type of a field in a spec."""


def parts_of(strategy: AnyStrategy) -> tuple[Part, ...]:
    """The phases of a strategy; a simple one is one that never ends."""
    return strategy.parts if isinstance(strategy, Phases) else (Part(strategy=strategy),)


def entered(strategy: AnyStrategy, state: JobState, now: Instant) -> JobState:
    """The state with the phase that sets the wait after the poll just counted, answered at `now`."""
    if strategy.type != "phases":  # far quicker to tell than its class
        return state if state.stage is None else replace(state, stage=None)
    stage = state.stage or Stage(0, state.polls - 1, now)
    index = min(stage.index, len(strategy.parts) - 1)
    if strategy.parts[index].is_over(state.polls - stage.polls, now - stage.since):
        stage = Stage(index + 1, state.polls - 1, now)
    return replace(state, stage=stage)


def in_force(strategy: AnyStrategy, state: JobState) -> tuple[Simple, int]:
    """The strategy that sets the next wait, and the number of the last poll as it counts them."""
    if strategy.type != "phases":
        return strategy, state.polls or 1
    stage = state.stage or Stage(0, 0, state.created_at)
    part = strategy.parts[min(stage.index, len(strategy.parts) - 1)]
    return part.strategy, max(1, state.polls - stage.polls)
