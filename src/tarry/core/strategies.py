"""Strategies: how long to wait after the n-th poll."""

from __future__ import annotations

from abc import abstractmethod
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from tarry.core.durations import CENTURY, Duration, DurationLike, PositiveDuration
from tarry.core.function import Function
from tarry.core.model import Model
from tarry.errors import SpecError
from tarry.words import Micros, micros

Jitter: TypeAlias = Literal["none", "half", "full"]
"""Spread of a wait d: none; half, on [d/2, d]; full, on [floor, d]."""

# A result below 100 years in microseconds has 16 digits before the point and, where it is a whole number, needed no
# more than 70 on the way. No traps: what overflows is infinite, and the maximum cuts it.
_EXACT = Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_HALF_EVEN, traps=[])


class Strategy(Model):
    """When to poll again, before hints and the floor."""

    @property
    def functions(self) -> tuple[Function, ...]:
        """The callables inside."""
        return ()


class Simple(Strategy):
    """How long to wait after the n-th poll, by one rule."""

    jitter: Jitter = "none"

    @abstractmethod
    def delay(self, n: int) -> tuple[Micros, bool]:
        """The wait after poll n (n ≥ 1) in microseconds, before jitter, and whether the strategy's maximum cut it.

        Exact to the microsecond, in constant time, never above 100 years. Only that of a callable raises.
        """


class Fixed(Simple):
    """The same wait after each poll."""

    _positional: ClassVar[tuple[str, ...]] = ("interval",)

    type: Literal["fixed"] = "fixed"
    interval: PositiveDuration

    if TYPE_CHECKING:

        def __init__(self, interval: DurationLike, *, jitter: Jitter = "none") -> None: ...

    def delay(self, n: int) -> tuple[Micros, bool]:  # noqa: ARG002  # the same for every poll
        return self._span, False

    @cached_property
    def _span(self) -> Micros:
        return micros(self.interval)


class _Growing(Simple):
    """A strategy that starts somewhere and may be cut at a maximum."""

    initial: PositiveDuration
    maximum: PositiveDuration | None = None

    @model_validator(mode="after")
    def _maximum_is_above(self) -> Self:
        if self.maximum is not None and self.maximum < self.initial:
            raise SpecError(f"{type(self).__name__}.maximum", "shorter than initial; raise it, or start lower")
        return self

    @cached_property
    def _first(self) -> Micros:
        return micros(self.initial)

    @cached_property
    def _most(self) -> Micros | None:
        return None if self.maximum is None else micros(self.maximum)

    def _cut(self, exact: Micros | Decimal) -> tuple[Micros, bool]:
        """The wait with the maximum (or the ceiling of 100 years) applied; what is above is not even rounded."""
        most = self._most
        if most is not None and exact > most:
            return most, True
        return (CENTURY if exact > CENTURY else round(exact)), False


class Linear(_Growing):
    """initial + step·(n-1): a step longer after each poll. The step defaults to `initial`, so the wait is initial·n."""

    _positional: ClassVar[tuple[str, ...]] = ("initial", "step", "maximum")

    type: Literal["linear"] = "linear"
    step: Duration | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            initial: DurationLike,
            step: DurationLike | None = None,
            maximum: DurationLike | None = None,
            *,
            jitter: Jitter = "none",
        ) -> None: ...

    def delay(self, n: int) -> tuple[Micros, bool]:
        return self._cut(self._first + self._further * (n - 1))

    @cached_property
    def _further(self) -> Micros:
        return self._first if self.step is None else micros(self.step)


class Exponential(_Growing):
    """initial·factor^(n-1): `factor` (≥ 1) times longer after each poll, read as the decimal number that was written."""

    _positional: ClassVar[tuple[str, ...]] = ("initial", "factor", "maximum")

    type: Literal["exponential"] = "exponential"
    factor: Annotated[float, Field(strict=True, ge=1)] = 2

    if TYPE_CHECKING:

        def __init__(
            self,
            initial: DurationLike,
            factor: float = 2,
            maximum: DurationLike | None = None,
            *,
            jitter: Jitter = "none",
        ) -> None: ...

    def delay(self, n: int) -> tuple[Micros, bool]:
        return self._cut(_EXACT.multiply(self._first, _EXACT.power(self._growth, n - 1)))

    @cached_property
    def _growth(self) -> Decimal:
        return Decimal(repr(self.factor))


DEFAULT = Exponential("2s", factor=1.5, maximum="1m", jitter="half")
"""The strategy of a spec without one."""


def jittered(jitter: Jitter, d: Micros, floor: Micros, key: str, n: int) -> Micros:
    """The wait d spread by jitter: evenly on [max(floor, d/2), d] (half) or [floor, d] (full).

    Drawn from the job's key and n alone, so a replay draws the same. A wait
    that is not above its lower end comes back unchanged.
    """
    if jitter == "none":
        return d
    lowest = max(floor, (d + 1) // 2) if jitter == "half" else floor
    if lowest >= d:
        return d
    drawn = blake2b(f"{n} {key}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return lowest + int.from_bytes(drawn, "big") % (d - lowest + 1)
