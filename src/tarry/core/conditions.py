"""Conditions: what judges the answer to a poll."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import iscoroutine, iscoroutinefunction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from tarry.core.expressions import DOCUMENT, checked, paths, roots, search
from tarry.core.function import Function, as_function
from tarry.core.model import Model
from tarry.errors import SpecError
from tarry.words import Verdict

Scalar: TypeAlias = str | int | float | bool
"""A status value that can be named."""

_SETS = (
    Verdict.SUCCEEDED,
    Verdict.FAILED,
    Verdict.PENDING,
    Verdict.CANCELLED,
    Verdict.BLOCKED,
    Verdict.PARTIAL,
    Verdict.EXPIRED,
    Verdict.SKIPPED,
)
_SWAPPED = {Verdict.SUCCEEDED: Verdict.PENDING, Verdict.PENDING: Verdict.SUCCEEDED}
_LONGEST_SHOWN = 60
_LONGEST_NUMBER = 128
_MOST_SEEN = 8
_ANSWERED: Final = frozenset({"status", "headers", "body", "error"})
_SUCCESSES = frozenset({Verdict.SUCCEEDED, Verdict.PARTIAL, Verdict.SKIPPED})
_FAILURES = frozenset({Verdict.FAILED, Verdict.CANCELLED, Verdict.EXPIRED})


_BY_NUMBER = {1: Verdict.SUCCEEDED, 0: Verdict.PENDING, -1: Verdict.FAILED}
_WORDS = frozenset(Verdict)
_NO_SCALARS = frozenset({"missing", "object", "list"})


class InvalidAnswer(Exception):  # noqa: N818  # an answer, not a fault: the job ends as invalid
    """The condition answered something that is no verdict; the text says what."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a condition made of one answer.

    `value` is the status as text, for people. `seen` holds what the condition
    looked at: pairs of a path and the value there, as text of at most 60
    characters ("object", "list" and "missing" stand for those).
    """

    verdict: Verdict
    value: str | None = None
    seen: tuple[tuple[str, str], ...] = ()


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
        return AllOf([*_parts(self, AllOf), *_parts(other, AllOf)])

    def __rand__(self, other: Callable[..., Any]) -> AllOf:
        return AllOf([other, *_parts(self, AllOf)])

    def __or__(self, other: Condition | Callable[..., Any]) -> AnyOf:
        return AnyOf([*_parts(self, AnyOf), *_parts(other, AnyOf)])

    def __ror__(self, other: Callable[..., Any]) -> AnyOf:
        return AnyOf([other, *_parts(self, AnyOf)])

    def __invert__(self) -> Not:
        return Not(self)


Path = Annotated[str, AfterValidator(lambda path: checked(path, within=DOCUMENT))]
"""A JMESPath over the document that conditions see."""


def _listed(value: object) -> object:
    """One value as a list of one."""
    return value if isinstance(value, list | tuple) else [value]


Values = Annotated[tuple[Scalar, ...], BeforeValidator(_listed)]
Code = Annotated[int, Field(strict=True, ge=100, le=599)] | Annotated[str, Field(pattern="^[1-5]xx$")]
Codes = Annotated[tuple[Code, ...], BeforeValidator(_listed)]


class Match(Condition):
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

    @model_validator(mode="after")
    def _sorts(self) -> Self:
        _check_sets(self, self._keys)
        return self

    @cached_property
    def verdicts(self) -> dict[object, Verdict]:
        """The verdict of each named value."""
        return {key: verdict for verdict in _SETS for key in self._keys(getattr(self, verdict))}

    def _keys(self, values: Iterable[object]) -> list[object]:
        return [_key(value, self.case_sensitive) for value in values]

    @property
    def roots(self) -> frozenset[str]:
        return roots(self.path)

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        found = search(self.path, document)
        seen = ((self.path, short(found)),)
        if found is None:
            return Judgement(Verdict.PENDING, None, seen)
        unknown = Verdict.FAILED if self.unknown == "failed" else Verdict.UNKNOWN
        verdict = self.verdicts.get(_key(found, self.case_sensitive), unknown)
        return Judgement(verdict, seen[0][1], seen)


class Status(Condition):
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

    @model_validator(mode="after")
    def _sorts(self) -> Self:
        _check_sets(self, list)
        return self

    @cached_property
    def verdicts(self) -> dict[int | str, Verdict]:
        """The verdict of each named code and family."""
        return {code: verdict for verdict in _SETS for code in getattr(self, verdict)}

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
        if not any(verdict in _SUCCESSES for _, verdict in pairs):
            raise ValueError("nothing in it can succeed; add a pair with succeeded, partial or skipped")
        return pairs

    @cached_property
    def roots(self) -> frozenset[str]:
        return frozenset().union(*(roots(path) for path, _ in self.pairs))

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        seen = _look([path for path, _ in self.pairs], document)
        for path, verdict in self.pairs:
            if _is_true(search(path, document)):
                return Judgement(verdict, _shown(seen), seen)
        return Judgement(Verdict.UNKNOWN, _shown(seen), seen)


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
        seen = _look([self.expression], document)
        return Judgement(_verdict_of(search(self.expression, document)), _shown(seen), seen)


class Custom(Condition):
    """A plain callable that gets a copy of the document and answers a verdict, its word, or as `Expression` does."""

    _positional: ClassVar[tuple[str, ...]] = ("by",)

    type: Literal["custom"] = "custom"
    by: Annotated[Function, BeforeValidator(as_function)]

    if TYPE_CHECKING:

        def __init__(self, by: Callable[..., Any]) -> None: ...

    @field_validator("by")
    @classmethod
    def _answers_at_once(cls, by: Function) -> Function:
        if iscoroutinefunction(by.call) or iscoroutinefunction(getattr(by.call, "__call__", None)):
            raise ValueError("an async condition; write a plain function, and do what it awaits in the poll")
        return by

    @property
    def functions(self) -> tuple[Function, ...]:
        return (self.by,)

    @property
    def roots(self) -> frozenset[str]:
        return frozenset({"body"})

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        answer = self.by.load()(_copy(document))
        if iscoroutine(answer):
            answer.close()
        return Judgement(_verdict_of(answer, words=True))


class _Several(Condition):
    """Conditions that are judged together."""

    _positional: ClassVar[tuple[str, ...]] = ("of",)

    of: Annotated[tuple[AnyCondition, ...], Field(min_length=1, max_length=100)]

    if TYPE_CHECKING:

        def __init__(self, of: Sequence[Condition | Callable[..., Any]]) -> None: ...

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(function for part in self.of for function in part.functions)

    @cached_property
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
        found = list(self._judge_until(document, _FAILURES))
        if found[-1].verdict in _FAILURES:
            return _merged(found[-1].verdict, found)
        if all(each.verdict in _SUCCESSES for each in found):
            # Partial or skipped says more than succeeded does.
            lesser = [each.verdict for each in found if each.verdict is not Verdict.SUCCEEDED]
            return _merged(lesser[0] if lesser else Verdict.SUCCEEDED, found)
        return _merged(Verdict.PENDING, found)


class AnyOf(_Several):
    """`a | b`: the first success, else pending when any is, else what the first says."""

    type: Literal["any_of"] = "any_of"

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        found = list(self._judge_until(document, _SUCCESSES))
        if found[-1].verdict in _SUCCESSES:
            return _merged(found[-1].verdict, found)
        if any(each.verdict is Verdict.PENDING for each in found):
            return _merged(Verdict.PENDING, found)
        return _merged(found[0].verdict, found)


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
    """A condition for a plain callable; anything else unchanged."""
    function = as_function(value)
    return Custom(by=function) if isinstance(function, Function) else value


AnyCondition: TypeAlias = Annotated[
    Annotated[
        Match | Status | Acceptors | Expression | Custom | AllOf | AnyOf | Not,
        Field(discriminator="type"),
    ],
    BeforeValidator(as_condition),
]
"""Any condition, its JSON, or a plain callable: the type of a field in a spec."""

for _model in (_Several, AllOf, AnyOf, Not):
    _model.model_rebuild()


def short(value: object) -> str:
    """The value as one line of at most 60 characters; "object", "list" and "missing" for what is no scalar."""
    match value:
        case None:
            return "missing"
        case bool():
            return "true" if value else "false"
        case str():
            return _one_line(value)
        case int() if value.bit_length() > _LONGEST_NUMBER:
            return "a huge number"
        case int() | float():
            return repr(value)
        case Mapping():
            return "object"
        case list() | tuple():
            return "list"
        case _:
            return _one_line(type(value).__name__)


def _one_line(text: str) -> str:
    cut = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
    return cut if cut.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut)


def _look(expressions: Iterable[str], document: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What the answer holds at the paths that the expressions read."""
    read = dict.fromkeys(path for expression in expressions for path in paths(expression))
    shown = [path for path in read if not _ANSWERED.isdisjoint(roots(path))]
    return tuple((path, short(search(path, document))) for path in shown[:_MOST_SEEN])


def _shown(seen: tuple[tuple[str, str], ...]) -> str | None:
    """The first value that says something."""
    return next((value for _, value in seen if value not in _NO_SCALARS), None)


def _merged(verdict: Verdict, found: Sequence[Judgement]) -> Judgement:
    """One judgement of several: the value of one with this verdict if it has one, and all that was seen."""
    values = [each.value for each in found if each.verdict is verdict] + [each.value for each in found]
    seen = dict.fromkeys(pair for each in found for pair in each.seen)
    return Judgement(verdict, next((value for value in values if value is not None), None), tuple(seen)[:_MOST_SEEN])


def _verdict_of(answer: object, *, words: bool = False) -> Verdict:
    if isinstance(answer, bool | int | float) and answer in _BY_NUMBER:
        return _BY_NUMBER[answer]
    if words and isinstance(answer, str) and answer in _WORDS:
        return Verdict(answer)
    kind = {str: "the text ", int: "the number ", float: "the number "}.get(type(answer), "")
    raise InvalidAnswer(f"{kind}{short(answer)}" if answer is not None else "nothing (null)")


def _is_true(value: object) -> bool:
    """Whether JMESPath takes the value for true."""
    return value is not None and value is not False and value not in ("", [], {})


def _key(value: object, case_sensitive: bool) -> object:
    """What two equal status values have in common: 1 and 1.0 are equal, 1 and true and "1" are not."""
    match value:
        case bool():
            return ("boolean", value)
        case int() | float():
            return ("number", value)
        case str():
            return ("text", value if case_sensitive else value.casefold())
        case _:
            return None


def _check_sets(model: Match | Status, keys: Callable[[Iterable[Any]], list[Any]]) -> None:
    """Something can succeed, and each value has one verdict."""
    name = type(model).__name__
    owners: dict[object, Verdict] = {}
    for verdict in _SETS:
        for key in keys(getattr(model, verdict)):
            if owners.setdefault(key, verdict) is not verdict:
                raise SpecError(f"{name}.{verdict}", f"names a value that {owners[key]} names too; keep it in one of them")
    if not _SUCCESSES.intersection(owners.values()):
        raise SpecError(f"{name}.succeeded", "nothing can succeed; name a value for succeeded, partial or skipped")


def _parts(condition: object, kind: type[_Several]) -> Sequence[Any]:
    return condition.of if isinstance(condition, kind) else [condition]


def _copy(value: Any) -> Any:
    """The same JSON in new lists and objects, for code that may change what it gets."""
    match value:
        case Mapping():
            return {name: _copy(part) for name, part in value.items()}
        case list() | tuple():
            return [_copy(part) for part in value]
        case _:
            return value
