"""Conditions: what judges the answer to a poll."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from inspect import iscoroutine, iscoroutinefunction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from tarry.core.expressions import DOCUMENT, checked, roots, search
from tarry.core.function import Function, as_function
from tarry.core.judgement import (
    FAILURES,
    SUCCESSES,
    InvalidAnswer,
    Judgement,
    all_of,
    any_of,
    copied,
    is_true,
    key_of,
    look,
    short,
    shown,
    verdict_of,
)
from tarry.core.model import Model
from tarry.core.value_sets import Codes, Scalar, Values, check, table
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


Path = Annotated[str, AfterValidator(lambda path: checked(path, within=DOCUMENT))]
"""A JMESPath over the document that conditions see."""


class _Sorting(Condition):
    """Judges by sets of values, one set for each verdict."""

    @model_validator(mode="after")
    def _sorts(self) -> Self:
        check(self, self._keys)
        return self

    @cached_property
    def verdicts(self) -> dict[object, Verdict]:
        """The verdict of each named value."""
        return table(self, self._keys)

    def _keys(self, values: Iterable[object]) -> list[object]:
        return list(values)


class Match(_Sorting):
    """The value at a path is the verdict: each keyword names the values that mean it.

    - `path`: JMESPath, such as `body.state`.
    - `succeeded`, `failed`, …: one value or a list of texts, numbers or booleans; each value once.
      Texts are compared without regard to case unless `case_sensitive`.
    - `unknown`: a value that no set names goes on waiting ("pending", with verdict unknown) or fails ("failed").

    A missing or null value is pending. Raises `SpecError` naming the field.
    """

    _positional: ClassVar[tuple[str, ...]] = ("path",)

    type: Literal["match"] = "match"
    path: Path
    succeeded: Values = ()
    failed: Values = ()
    pending: Values = ()
    cancelled: Values = ()
    blocked: Values = ()
    partial: Values = ()
    expired: Values = ()
    skipped: Values = ()
    case_sensitive: bool = Field(default=False, strict=True)
    unknown: Literal["pending", "failed"] = "pending"

    if TYPE_CHECKING:

        def __init__(
            self,
            path: str,
            *,
            succeeded: Scalar | Sequence[Scalar] = (),
            failed: Scalar | Sequence[Scalar] = (),
            pending: Scalar | Sequence[Scalar] = (),
            cancelled: Scalar | Sequence[Scalar] = (),
            blocked: Scalar | Sequence[Scalar] = (),
            partial: Scalar | Sequence[Scalar] = (),
            expired: Scalar | Sequence[Scalar] = (),
            skipped: Scalar | Sequence[Scalar] = (),
            case_sensitive: bool = False,
            unknown: Literal["pending", "failed"] = "pending",
        ) -> None: ...

    def _keys(self, values: Iterable[object]) -> list[object]:
        return [key_of(value, case_sensitive=self.case_sensitive) for value in values]

    @property
    def roots(self) -> frozenset[str]:
        return roots(self.path)

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        found = search(self.path, document)
        seen = ((self.path, short(found)),)
        if found is None:
            return Judgement(Verdict.PENDING, None, seen)
        unknown = Verdict.FAILED if self.unknown == "failed" else Verdict.UNKNOWN
        verdict = self.verdicts.get(key_of(found, case_sensitive=self.case_sensitive), unknown)
        return Judgement(verdict, seen[0][1], seen)


class Status(_Sorting):
    """The HTTP code is the verdict: each keyword names codes or families such as "2xx".

    A code wins over its family. A code that nothing names is unknown, which
    for anything but a 2xx means: not judged. Raises `SpecError` naming the field.
    """

    type: Literal["status"] = "status"
    succeeded: Codes = (200,)
    failed: Codes = ()
    pending: Codes = (202,)
    cancelled: Codes = ()
    blocked: Codes = ()
    partial: Codes = ()
    expired: Codes = ()
    skipped: Codes = ()

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            succeeded: int | str | Sequence[int | str] = (200,),
            failed: int | str | Sequence[int | str] = (),
            pending: int | str | Sequence[int | str] = (202,),
            cancelled: int | str | Sequence[int | str] = (),
            blocked: int | str | Sequence[int | str] = (),
            partial: int | str | Sequence[int | str] = (),
            expired: int | str | Sequence[int | str] = (),
            skipped: int | str | Sequence[int | str] = (),
        ) -> None: ...

    @property
    def roots(self) -> frozenset[str]:
        return frozenset({"status"})

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        code = document.get("status")
        seen = (("status", short(code)),)
        if not isinstance(code, int):
            return Judgement(Verdict.PENDING, None, seen)
        family = self.verdicts.get(f"{code // 100}xx", Verdict.UNKNOWN)
        return Judgement(self.verdicts.get(code, family), str(code), seen)


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

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        seen = look([path for path, _ in self.pairs], document)
        for path, verdict in self.pairs:
            if is_true(search(path, document)):
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

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        seen = look([self.expression], document)
        return Judgement(verdict_of(search(self.expression, document)), shown(seen), seen)


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

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        found = self.of.judge(document)
        return replace(found, verdict=_SWAPPED.get(found.verdict, found.verdict))


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

for _model in (_Several, AllOf, AnyOf, Not):
    _model.model_rebuild()


def _parts(condition: object, kind: type[_Several]) -> tuple[Any, ...]:
    return condition.of if isinstance(condition, kind) else (condition,)
