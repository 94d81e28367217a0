"""Frozen values made at nearly the price of plain ones, and changed copies of them.

A poll makes some dozens of them. A frozen dataclass is filled field by field through
`object.__setattr__`; here a value is an object of a twin class with the same slots
while it is filled by plain assignments, and becomes the frozen class once it is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, ParamSpec, TypeVar, cast

T = TypeVar("T")
P = ParamSpec("P")


def quick(kind: type[T]) -> type[T]:
    """A frozen dataclass with slots whose values are made up to three times as fast; it cannot be subclassed.

    `__post_init__` is not called.
    """
    all_: tuple[Field[Any], ...] = fields(cast("Any", kind))
    lines = [
        f"def __init__(self, {', '.join(map(_parameter, all_))}):",
        "    __become(self, __twin)",
        *(f"    self.{each.name} = {_argument(each)}" for each in all_),
        "    self.__class__ = __kind",
    ]
    made, written = _function(kind, lines, _scope(all_)), kind.__init__
    made.__qualname__, made.__annotations__ = written.__qualname__, written.__annotations__
    kind.__init__ = made  # type: ignore[method-assign]  # before anyone made a value
    return kind


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


def copier(kind: type[T], *names: str) -> Callable[..., T]:
    """A function that copies a value with others for exactly these fields, by name: `replace` at about half its price.

    For changes that every poll makes; up to 14 fields, since calls with more names are slow. Raises AttributeError for
    what is no field.
    """
    all_ = _fields_with(kind, names)
    lines = [
        f"def copier(__value, *, {', '.join(names)}):",
        "    __copied = __twin()",
        *(f"    __copied.{name} = {name if name in names else f'__value.{name}'}" for name in all_),
        "    __copied.__class__ = __kind",
        "    return __copied",
    ]
    return _function(kind, lines, {})


def maker(kind: Callable[P, T]) -> Callable[P, T]:
    """A function that makes values of the quick class as a call of it does: of many fields at half the price."""
    all_: tuple[Field[Any], ...] = fields(cast("Any", kind))
    lines = [
        f"def maker({', '.join(map(_parameter, all_))}):",
        "    __made = __twin()",
        *(f"    __made.{each.name} = {_argument(each)}" for each in all_),
        "    __made.__class__ = __kind",
        "    return __made",
    ]
    return _function(cast("Any", kind), lines, _scope(all_))


def getter(kind: type[T], *names: str) -> Callable[[T], tuple[Any, ...]]:
    """A function that gives these fields of a value, two or more: `operator.attrgetter` at a quarter of its price.

    Raises AttributeError for what is no field.
    """
    _fields_with(kind, names)
    lines = ["def getter(__value):", f"    return ({', '.join(f'__value.{name}' for name in names)})"]
    return _function(kind, lines, {})


class _Unset:
    def __repr__(self) -> str:
        return "<factory>"  # as dataclasses shows it


_MADE_FOR_EACH = _Unset()
_BECOME = object.__dict__["__class__"].__set__  # as assigning to `__class__` does, also where assigning is refused
_COPIERS: dict[type, Callable[[Any, dict[str, Any]], Any]] = {}


def _parameter(field: Field[Any]) -> str:
    if field.default_factory is not MISSING:
        return f"{field.name}=__made_for_each"
    return field.name if field.default is MISSING else f"{field.name}=__default_{field.name}"


def _argument(field: Field[Any]) -> str:
    name = field.name
    return name if field.default_factory is MISSING else f"__make_{name}() if {name} is __made_for_each else {name}"


def _scope(all_: tuple[Field[Any], ...]) -> dict[str, Any]:
    """What the parameters and arguments name."""
    scope = {f"__default_{each.name}": each.default for each in all_} | {"__made_for_each": _MADE_FOR_EACH}
    return scope | {f"__make_{each.name}": each.default_factory for each in all_}


def _fields_with(kind: type[Any], names: tuple[str, ...]) -> list[str]:
    """The names of all fields, which these are among."""
    all_ = [field.name for field in fields(kind)]
    if unknown := sorted({*names}.difference(all_)):
        raise AttributeError(f"{kind.__name__} has no field {unknown[0]}")
    return all_


def _copier(kind: type[Any]) -> Callable[[Any, dict[str, Any]], Any]:
    """The function that copies values of this class."""
    lines = [
        "def copier(value, changes):",
        "    copied = __twin()",
        *(f"    copied.{field.name} = value.{field.name}" for field in fields(kind)),
        "    for name, changed in changes.items():",
        "        setattr(copied, name, changed)",
        "    copied.__class__ = __kind",
        "    return copied",
    ]
    return _function(kind, lines, {})


def _function(kind: type[Any], lines: list[str], scope: dict[str, Any]) -> Callable[..., Any]:
    """The function that the lines define, written out field by field as dataclasses does it."""
    slots = tuple(field.name for field in fields(kind))
    twin = type(kind.__name__, (), {"__slots__": slots, "__module__": kind.__module__})
    own = {"__become": _BECOME, "__twin": twin, "__kind": kind}
    defined: dict[str, Callable[..., Any]] = {}
    exec("\n".join(lines), own | scope, defined)  # noqa: S102  # the lines hold nothing but names of fields
    (function,) = defined.values()
    return function
