"""Conditions: what judges the answer to a poll."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import iscoroutine, iscoroutinefunction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator

from tarry.core.condition import AllOf, AnyOf, Condition, Not, Path
from tarry.core.evaluation import Judging, is_true
from tarry.core.expressions import effort, roots, search
from tarry.core.function import Function, as_function
from tarry.core.judgement import SUCCESSES, InvalidAnswer, Judgement, copied, look, shown, verdict_of
from tarry.core.matching import Match, Status
from tarry.words import Verdict

__all__ = [
    "Acceptors",
    "AllOf",
    "AnyCondition",
    "AnyOf",
    "Condition",
    "Custom",
    "Expression",
    "InvalidAnswer",
    "Judgement",
    "Match",
    "Not",
    "Status",
    "as_condition",
]


class Acceptors(Condition):
    """Pairs of a JMESPath and a verdict, in order: the first whose path selects something true decides.

    False, null, and empty texts, lists and objects are not true; 0 is. When none
    matches, the verdict is unknown. Raises `SpecError` naming the field.
    """

    _positional: ClassVar[tuple[str, ...]] = ("pairs",)

    type: Literal["acceptors"] = "acceptors"
    pairs: Annotated[tuple[tuple[Path, Verdict], ...], Field(min_length=1, max_length=1000)]

    if TYPE_CHECKING:

        def __init__(self, pairs: Sequence[tuple[str, str]]) -> None: ...

    @field_validator("pairs")
    @classmethod
    def _can_succeed(cls, pairs: tuple[tuple[str, Verdict], ...]) -> tuple[tuple[str, Verdict], ...]:
        if not any(verdict in SUCCESSES for _, verdict in pairs):
            raise ValueError("nothing in it can succeed; add a pair with succeeded, partial or skipped")
        return pairs

    @property
    def roots(self) -> frozenset[str]:
        return frozenset().union(*(roots(path) for path, _ in self.pairs))

    @property
    def effort(self) -> int:
        return sum(effort(path) for path, _ in self.pairs)

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        seen = look([path for path, _ in self.pairs], document)
        for path, verdict in self.pairs:
            if is_true(search(path, document, Judging)):
                return Judgement(verdict, shown(seen), seen)
        return Judgement(Verdict.UNKNOWN, shown(seen), seen)


class Expression(Condition):
    """A JMESPath that answers true or 1 (succeeded), false or 0 (pending), or -1 (failed).

    Any other answer, null included, ends the job as invalid.
    """

    _positional: ClassVar[tuple[str, ...]] = ("expression",)

    type: Literal["expression"] = "expression"
    expression: Path

    if TYPE_CHECKING:

        def __init__(self, expression: str) -> None: ...

    @property
    def roots(self) -> frozenset[str]:
        return roots(self.expression)

    @property
    def effort(self) -> int:
        return effort(self.expression)

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        seen = look([self.expression], document)
        return Judgement(verdict_of(search(self.expression, document, Judging)), shown(seen), seen)


class Custom(Condition):
    """A plain callable that gets a copy of the document and answers a verdict, its word, or as `Expression` does."""

    _positional: ClassVar[tuple[str, ...]] = ("by",)

    type: Literal["custom"] = "custom"
    by: Annotated[Function, BeforeValidator(as_function)]

    if TYPE_CHECKING:

        def __init__(self, by: Function | Callable[..., Any]) -> None: ...

    @property
    def functions(self) -> tuple[Function, ...]:
        return (self.by,)

    @property
    def roots(self) -> frozenset[str]:
        return frozenset({"body"})

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        answer = self.by.load()(copied(document))
        if iscoroutine(answer):
            answer.close()
        return Judgement(verdict_of(answer, words=True))


def as_condition(value: object) -> object:
    """A condition for a plain callable; conditions and their JSON unchanged. Raises `ValueError` for anything else."""
    if isinstance(value, Condition | Mapping):
        return value
    function = as_function(value)
    if not isinstance(function, Function):
        raise ValueError('no condition; write one such as Match("body.state", succeeded="DONE"), or a callable')
    if iscoroutinefunction(value) or iscoroutinefunction(type(value).__call__):
        raise ValueError("an async condition; write a plain function, and do what it awaits in the poll")
    return Custom(function)


AnyCondition: TypeAlias = Annotated[
    Annotated[Match | Status | Acceptors | Expression | Custom | AllOf | AnyOf | Not, Field(discriminator="type")],
    BeforeValidator(as_condition),
]
"""Any condition, its JSON, or a plain callable: the type of a field in a spec."""

# The combinators hold any condition, and are conditions themselves: what they hold is known only here.
for _model in (AllOf, AnyOf, Not):
    _model.model_rebuild(_types_namespace={"AnyCondition": AnyCondition})
