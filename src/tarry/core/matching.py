"""`Match` and `Status`: a value is the verdict, by sets of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tarry.core.condition import Condition, Path
from tarry.core.expressions import roots, search
from tarry.core.judgement import Judgement, key_of, short
from tarry.core.value_sets import Codes, Scalar, Values, check, table
from tarry.words import Verdict


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
