"""A callable in a spec: stored by its importable name, never by its code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from typing import Any, Self

from pydantic import PrivateAttr

from tarry.core.model import Model


class Function(Model):
    """An async or plain callable, named `module:qualname`.

    One that cannot be imported by that name (a lambda, a local function) works
    in the process that wrote it and is `inline`: it cannot travel. Two with the
    same name are equal.
    """

    function: str
    inline: bool = False

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
        """The callable: the one at hand, or imported by its name.

        Raises `LookupError` that says why this process cannot have it.
        """
        if self._call is None:
            self._call = self._imported()
        return self._call

    def _imported(self) -> Callable[..., Any]:
        if self.inline:
            raise LookupError(f"{self.function} works only in the process that wrote it")
        module, _, name = self.function.partition(":")
        try:
            found = _member(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise LookupError(f"{self.function} cannot be imported here: {error}") from error
        if not callable(found):
            raise LookupError(f"{self.function} is not callable")
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
    if not module or not name or module == "__main__" or module not in sys.modules:
        return False
    try:
        return bool(_member(sys.modules[module], name) == value)
    except AttributeError:
        return False


def _member(module: object, name: str) -> Any:
    return reduce(getattr, name.split("."), module)
