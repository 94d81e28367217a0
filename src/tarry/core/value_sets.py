"""Sets of values, one for each verdict: the heart of `Match` and `Status`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, WithJsonSchema

from tarry.core.judgement import SUCCESSES
from tarry.core.model import Model
from tarry.errors import SpecError
from tarry.words import Verdict

Scalar: TypeAlias = str | int | float | bool
"""A status value that can be named."""

Keys: TypeAlias = Callable[[Iterable[Any]], list[Any]]
"""Makes values comparable."""

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
_FAMILIES = frozenset({"1xx", "2xx", "3xx", "4xx", "5xx"})


def _listed(value: object) -> object:
    """One value as a list of one."""
    return value if isinstance(value, list | tuple) else [value]


def _is_code(value: object) -> object:
    is_code = isinstance(value, int) and 100 <= value <= 599
    if not is_code and not (isinstance(value, str) and value in _FAMILIES):
        raise ValueError('no status; write a code from 100 to 599 or a family such as "2xx"')
    return value


def _one_or_several(item: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [item, {"type": "array", "items": item}]})


Values = Annotated[
    tuple[Scalar, ...],
    BeforeValidator(_listed),
    _one_or_several({"type": ["string", "number", "boolean"]}),
]
"""One value or several."""

Codes = Annotated[
    tuple[Annotated[int | str, BeforeValidator(_is_code)], ...],
    BeforeValidator(_listed),
    _one_or_several({"anyOf": [{"type": "integer", "minimum": 100, "maximum": 599}, {"enum": sorted(_FAMILIES)}]}),
]
"""One HTTP code or family of codes ("2xx"), or several."""


def table(model: Model, keys: Keys) -> dict[object, Verdict]:
    """The verdict of each value that the model names."""
    return {key: verdict for verdict in _SETS for key in keys(getattr(model, verdict))}


def check(model: Model, keys: Keys) -> None:
    """Something can succeed, and each value has one verdict; else `SpecError`."""
    name = type(model).__name__
    owners: dict[object, Verdict] = {}
    for verdict in _SETS:
        for key in keys(getattr(model, verdict)):
            owner = owners.setdefault(key, verdict)
            if owner is not verdict:
                raise SpecError(f"{name}.{verdict}", _told(model, owner, verdict))
    if SUCCESSES.isdisjoint(owners.values()):
        raise SpecError(f"{name}.succeeded", "nothing can succeed; name a value for succeeded, partial or skipped")


def _told(model: Model, owner: Verdict, verdict: Verdict) -> str:
    if verdict in model.model_fields_set:
        return f"a value that {owner} names too; leave it in one of them"
    return f"{owner} names its default; write {verdict}=() or another value"
