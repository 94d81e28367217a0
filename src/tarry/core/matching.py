"""`Match` and `Status`: a value is the verdict, by sets of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tarry.core.condition import Condition, Path
from tarry.core.evaluation import Listing
from tarry.core.expressions import effort, is_path, roots, search
from tarry.core.judgement import MOST_SEEN, Judgement, key_of, of_all, of_any, short
from tarry.core.value_sets import Codes, Scalar, Values, check, table
from tarry.words import Verdict

_MOST_LOOKED_AT = 100


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
      Texts are compared without regard to case unless `case_sensitive`; with `ignore_separators`
      also without regard to `_`, `-` and blanks.
    - `over`: the path selects a list, and "all" or "any" of its elements have to be good. All: the first
      failure, else the wait goes on until each element is good. Any: the first success; a failure when all failed.
    - `unknown`: a value that no set names goes on waiting ("pending", with verdict unknown) or fails ("failed").

    A missing or null value, and with `over` an empty list, is pending. Raises `SpecError` naming the field.
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
    ignore_separators: bool = Field(default=False, strict=True)
    over: Literal["all", "any"] | None = None
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
            ignore_separators: bool = False,
            over: Literal["all", "any"] | None = None,
            unknown: Literal["pending", "failed"] = "pending",
        ) -> None: ...

    def _keys(self, values: Iterable[object]) -> list[object]:
        return [self._key(value) for value in values]

    def _key(self, value: object) -> object:
        return key_of(value, case_sensitive=self.case_sensitive, ignore_separators=self.ignore_separators)

    @property
    def roots(self) -> frozenset[str]:
        return roots(self.path)

    @property
    def effort(self) -> int:
        return effort(self.path)

    @property
    def is_walk(self) -> bool:
        return self.over is None and is_path(self.path)

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        if self.over is not None:
            return self._judge_over(search(self.path, document, Listing))
        found = search(self.path, document)
        known = self._as_named.get(found) if type(found) is str else None
        return self._judged(found, self._verdict(found)) if known is None else known

    def _judge_over(self, found: object) -> Judgement:
        if not isinstance(found, list):
            return self._judged(found, Verdict.PENDING if found is None else self._otherwise)
        if not found:
            return Judgement(Verdict.PENDING, None, ((self.path, "empty"),))
        verdicts = [self._verdict(element) for element in found]
        verdict = of_all(verdicts) if self.over == "all" else of_any(verdicts)
        decisive = found[verdicts.index(verdict)]
        texts = dict.fromkeys(short(element) for element in found[:_MOST_LOOKED_AT])
        seen = tuple((self.path, text) for text in texts)[:MOST_SEEN]
        return Judgement(verdict, None if decisive is None else short(decisive), seen)

    def _judged(self, found: object, verdict: Verdict) -> Judgement:
        text = short(found)
        return Judgement(verdict, None if found is None else text, ((self.path, text),))

    @cached_property
    def _as_named(self) -> dict[object, Judgement]:
        """What becomes of each text that is named, as it is named: most answers have it just so."""
        verdicts = table(self, lambda values: [value for value in values if isinstance(value, str)])
        return {text: self._judged(text, verdict) for text, verdict in verdicts.items()}

    def _verdict(self, value: object) -> Verdict:
        if value is None:
            return Verdict.PENDING
        known = self._as_named.get(value) if type(value) is str else None
        if known is not None:
            return known.verdict
        return self.verdicts.get(self._key(value)) or self._otherwise

    @property
    def _otherwise(self) -> Verdict:
        return Verdict.FAILED if self.unknown == "failed" else Verdict.UNKNOWN


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

    @property
    def is_walk(self) -> bool:
        return True

    def judge(self, document: Mapping[str, Any]) -> Judgement:
        code = document.get("status")
        seen = (("status", short(code)),)
        if not isinstance(code, int):
            return Judgement(Verdict.PENDING, None, seen)
        family = self.verdicts.get(f"{code // 100}xx", Verdict.UNKNOWN)
        return Judgement(self.verdicts.get(code, family), str(code), seen)
