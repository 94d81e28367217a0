"""Changed copies of frozen values, ten times as fast as `dataclasses.replace`.

A poll makes a dozen of them. A frozen dataclass is filled field by field through
`object.__setattr__`; here the copy is an object of a twin class with the same slots,
filled by plain assignments, that becomes the frozen class once it is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def replace(value: T, /, **changes: Any) -> T:
    """A copy with other values for some fields; as `dataclasses.replace`, for frozen classes with slots.

    Raises AttributeError for what is no field. `__post_init__` is not called.
    """
    kind = type(value)
    copier = _COPIERS.get(kind)
    if copier is None:
        copier = _COPIERS[kind] = _copier(kind)
    copied: T = copier(value, changes)
    return copied


_COPIERS: dict[type, Callable[[Any, dict[str, Any]], Any]] = {}


def _copier(kind: type[Any]) -> Callable[[Any, dict[str, Any]], Any]:
    """The function that copies values of this class, written out field by field, as dataclasses writes `__init__`."""
    names = [field.name for field in fields(kind)]
    twin = type(kind.__name__, (), {"__slots__": tuple(names), "__module__": kind.__module__})
    lines = [
        "def copier(value, changes):",
        "    copied = blank(twin)",
        *(f"    copied.{name} = value.{name}" for name in names),
        "    for name, changed in changes.items():",
        "        setattr(copied, name, changed)",
        "    copied.__class__ = kind",
        "    return copied",
    ]
    scope: dict[str, Any] = {"blank": object.__new__, "twin": twin, "kind": kind}
    exec("\n".join(lines), scope)  # noqa: S102  # the lines hold nothing but names of fields
    copier: Callable[[Any, dict[str, Any]], Any] = scope["copier"]
    return copier
