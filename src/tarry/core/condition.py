"""A condition, and how several combine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from tarry.core.expressions import DOCUMENT, checked
from tarry.core.function import Function
from tarry.core.judgement import FAILURES, SUCCESSES, Judgement, all_of, any_of
from tarry.core.model import Model
from tarry.frozen import replace
from tarry.words import Verdict

if TYPE_CHECKING:
    from tarry.core.conditions import AnyCondition  # noqa: TC004  # handed over by name once all conditions are known

_SWAPPED = {Verdict.SUCCEEDED: Verdict.PENDING, Verdict.PENDING: Verdict.SUCCEEDED}


class Condition(Model):
    """Judges the answer to a poll. Conditions combine with `&`, `|` and `~`."""

    @abstractmethod
    def judge(self, document: Mapping[str, Any]) -> Judgement:
        """The verdict on a document with the keys of `expressions.DOCUMENT`.

        Raises `InvalidAnswer` when the answer is no verdict; anything else
        that is raised means that the condition could not judge.
        """

    @property
    @abstractmethod
    def roots(self) -> frozenset[str]:
        """The top-level names of the document that it reads."""

    @property
    def functions(self) -> tuple[Function, ...]:
        """The callables inside."""
        return ()

    @property
    def effort(self) -> int:
        """How many times over it may go through an answer."""
        return 1

    @property
    def is_walk(self) -> bool:
        """Whether it does no more with an answer than follow a path."""
        return False

    @property
    def is_plain(self) -> bool:
        """Whether it is data alone, without a callable inside."""
        return not self.functions

    def __and__(self, other: Condition | Callable[..., Any]) -> AllOf:
        return AllOf(of=(*_parts(self, AllOf), *_parts(other, AllOf)))

    def __rand__(self, other: Callable[..., Any]) -> AllOf:
        return AllOf(of=(*_parts(other, AllOf), *_parts(self, AllOf)))

    def __or__(self, other: Condition | Callable[..., Any]) -> AnyOf:
        return AnyOf(of=(*_parts(self, AnyOf), *_parts(other, AnyOf)))

    def __ror__(self, other: Callable[..., Any]) -> AnyOf:
        return AnyOf(of=(*_parts(other, AnyOf), *_parts(self, AnyOf)))

    def __invert__(self) -> Not:
        return Not(self)


class _Several(Condition):
    """Conditions that are judged together."""

    _positional: ClassVar[tuple[str, ...]] = ("of",)

    of: Annotated[tuple[AnyCondition, ...], Field(min_length=1, max_length=100)]

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(function for part in self.of for function in part.functions)

    @property
    def roots(self) -> frozenset[str]:
        return frozenset().union(*(part.roots for part in self.of))

    @property
    def effort(self) -> int:
        return sum(part.effort for part in self.of)

    def _judge_until(self, document: Mapping[str, Any], decisive: frozenset[Verdict]) -> Iterator[Judgement]:
        """What the parts say, in order, up to the first that decides."""
        for part in self.of:
            judgement = part.judge(document)
            yield judgement
            if judgement.verdict in decisive:
                return


class AllOf(_Several):
    """`a & b`: the first terminal failure, else success when all succeeded, else pending."""

    type: Literal["all_of"] = "all_of"

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        return all_of(list(self._judge_until(document, FAILURES)))


class AnyOf(_Several):
    """`a | b`: the first success, else pending when any is, else what the first says."""

    type: Literal["any_of"] = "any_of"

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        return any_of(list(self._judge_until(document, SUCCESSES)))


class Not(Condition):
    """`~a`: succeeded and pending swapped, anything else as it is."""

    _positional: ClassVar[tuple[str, ...]] = ("of",)

    type: Literal["not"] = "not"
    of: AnyCondition

    if TYPE_CHECKING:

        def __init__(self, of: Condition | Callable[..., Any]) -> None: ...

    @property
    def functions(self) -> tuple[Function, ...]:
        return self.of.functions

    @property
    def roots(self) -> frozenset[str]:
        return self.of.roots

    @property
    def effort(self) -> int:
        return self.of.effort

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        found = self.of.judge(document)
        return replace(found, verdict=_SWAPPED.get(found.verdict, found.verdict))


def _parts(condition: object, kind: type[_Several]) -> tuple[Any, ...]:
    return condition.of if isinstance(condition, kind) else (condition,)


Path = Annotated[str, AfterValidator(lambda path: checked(path, within=DOCUMENT))]
"""A JMESPath over the document that conditions see."""
