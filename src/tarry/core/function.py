"""A callable in a spec: stored by its importable name, never by its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import PrivateAttr

from tarry.core.model import Model


class Function(Model):
    """An async or plain callable, named `module:qualname`.

    One that cannot be imported by that name (a lambda, a local function) works
    in the process that wrote it and is `inline`: it cannot travel.
    """

    function: str
    inline: bool = False

    _call: Callable[..., Any] | None = PrivateAttr(default=None)

    @property
    def call(self) -> Callable[..., Any] | None:
        """The callable itself where this process knows it, else None."""
        return self._call


def as_function(value: object) -> object:
    """A `Function` for a plain callable; anything else unchanged."""
    if not callable(value) or isinstance(value, type | Model):
        return value
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    inline = not module or not name or "<" in name or module == "__main__"
    function = Function(function=f"{module or '?'}:{name or type(value).__qualname__}", inline=inline)
    function._call = value  # noqa: SLF001  # the one place that binds a name to its callable
    return function
