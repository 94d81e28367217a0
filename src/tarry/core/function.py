"""A callable in a spec: stored by its importable name, never by its code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from typing import Annotated, Any, Self

from pydantic import Field, PrivateAttr

from tarry.core.model import Model


class Function(Model):
    """An async or plain callable, named `module:qualname`.

    One that cannot be imported by that name (a lambda, a local function) works
    in the process that wrote it and is `inline`: it cannot travel. Two with the
    same name are equal.
    """

    function: str
    inline: Annotated[bool, Field(strict=True)] = False

    _call: Callable[..., Any] | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, call: Callable[..., Any]) -> Self:
        """The callable, bound to its name."""
        module, name = getattr(call, "__module__", None), getattr(call, "__qualname__", None)
        named = f"{module or '?'}:{name or type(call).__qualname__}"
        function = cls(function=named, inline=not _is_importable(call, module, name))
        function._call = call
        return function

    @property
    def call(self) -> Callable[..., Any] | None:
        """The callable itself where this process knows it, else None."""
        return self._call

    def load(self) -> Callable[..., Any]:
        """The callable: the one at hand, or the one of that name in a module that is already imported.

        A name never imports anything by itself: it may come from a store. Raises
        `LookupError` that says why this process cannot have the callable.
        """
        if self._call is None:
            self._call = self._found()
        return self._call

    def _found(self) -> Callable[..., Any]:
        if self.inline:
            raise LookupError(f"{self.function} works only in the process that wrote it")
        module, _, name = self.function.partition(":")
        found = _member(sys.modules.get(module), name)
        if not callable(found):
            raise LookupError(f"{self.function} is not known here; import {module}, or pass the spec with the callable")
        return found  # type: ignore[no-any-return]  # callable() narrows Any to a callable that returns Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Function):
            return NotImplemented
        return (self.function, self.inline) == (other.function, other.inline)

    def __hash__(self) -> int:
        return hash((self.function, self.inline))


def as_function(value: object) -> object:
    """A `Function` for a plain callable; anything else unchanged."""
    if not callable(value) or isinstance(value, type | Model):
        return value
    return Function.of(value)


def _is_importable(value: object, module: str | None, name: str | None) -> bool:
    """Whether its name leads back to this very callable (a bound method's or a local function's does not)."""
    if not module or not name or module == "__main__":
        return False
    return bool(_member(sys.modules.get(module), name) == value)


def _member(module: object, name: str) -> Any:
    """What the dotted name leads to, None where it ends on the way."""
    return reduce(lambda found, part: getattr(found, part, None), name.split("."), module)
