"""JMESPath, evaluated within bounds: whatever the expression and the answer, it ends soon.

Each node that is visited is a step, and so is each value that a function or a comparison goes through.
An evaluation that takes more than `BUDGET` steps is given up, which is about a second's work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from jmespath import functions
from jmespath.visitor import TreeInterpreter

BUDGET: Final = 1_000_000
"""Steps of one evaluation."""

_CHARACTERS = 16
_BITS = 64
# These go through all that is inside of what they are given; the others look at its elements alone.
_DEEP = frozenset({"contains", "join", "to_string"})
_EQUALITY = frozenset({"eq", "ne"})


class TooCostly(Exception):
    """The expression goes through more of the answer than can be afforded."""

    def __str__(self) -> str:
        return f"the expression takes more than {BUDGET:,} steps with this answer; select less"


def size(value: object, most: int) -> int:
    """How much there is in a value, in steps: one each, and more for long texts and numbers; no count past `most`."""
    total, left = 0, [value]
    while left and total <= most:
        part = left.pop()
        total += 1 + _length(part)
        if isinstance(part, Mapping):
            left.extend(part)
            left.extend(part.values())
        elif isinstance(part, list):
            left.extend(part)
    return total


def _length(scalar: object) -> int:
    if isinstance(scalar, str):
        return len(scalar) // _CHARACTERS
    return scalar.bit_length() // _BITS if isinstance(scalar, int) else 0


class Functions(functions.Functions):
    """The standard functions, `lower` and `trim`."""

    @functions.signature({"types": ["string", "null"]})
    def _func_lower(self, text: str | None) -> str | None:
        return None if text is None else text.lower()

    @functions.signature({"types": ["string", "null"]})
    def _func_trim(self, text: str | None) -> str | None:
        return None if text is None else text.strip()


_FUNCTIONS = Functions()


def is_true(value: object) -> bool:
    """Whether JMESPath takes the value for true."""
    return value is not None and value is not False and value not in ("", [], {})


class Reading(TreeInterpreter):
    """One evaluation by the rules of JMESPath. Raises `TooCostly`, and what JMESPath raises on wrong types."""

    def __init__(self) -> None:
        super().__init__()
        self._left = BUDGET

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        """The value of a node."""
        self._left -= 1
        if self._left < 0:
            raise TooCostly
        return super().visit(node, *args, **kwargs)

    def measured(self, value: Any) -> Any:
        """The value, paid for with all that is inside."""
        self._pay(size(value, self._left))
        return value

    def visit_function_expression(self, node: Any, value: Any) -> Any:
        """The function's answer, its arguments paid for before it runs."""
        given = [self.visit(child, value) for child in node["children"]]
        for argument in given:
            if node["value"] in _DEEP:
                self.measured(argument)
            elif isinstance(argument, list | dict | str):
                self._pay(len(argument) if not isinstance(argument, str) else _length(argument))
        return _FUNCTIONS.call_function(node["value"], given)

    def visit_comparator(self, node: Any, value: Any) -> Any:
        """Equal or not, for all values; an order for numbers and texts, null for others."""
        left, right = (self.visit(child, value) for child in node["children"])
        return self.compared(node, left, right)

    def compared(self, node: Any, left: Any, right: Any) -> Any:
        """What a comparison of two values gives."""
        if isinstance(left, str | list | dict) and type(left) is type(right):
            self.measured(left)
        if node["value"] not in _EQUALITY and not (_has_order(left) and _has_order(right)):
            return None
        return self.COMPARATOR_FUNC[node["value"]](left, right)

    def visit_flatten(self, node: Any, value: Any) -> Any:
        """The list with the lists in it opened."""
        base = self.visit(node["children"][0], value)
        if not isinstance(base, list):
            return None
        opened = [element if isinstance(element, list) else [element] for element in base]
        self._pay(sum(map(len, opened)))
        return [element for elements in opened for element in elements]

    def visit_slice(self, node: Any, value: Any) -> Any:
        """A part of the list."""
        part = super().visit_slice(node, value)
        self._pay(len(part or ()))
        return part

    def _pay(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooCostly


class Judging(Reading):
    """As `Reading`, but a comparison of two missing values makes nothing true.

    `body.done == body.total` of an answer with neither says nothing, where JMESPath
    takes null to be equal to null. A null that is written out is compared as ever.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_negated = False

    def visit_not_expression(self, node: Any, value: Any) -> Any:
        """Not, inside of which a comparison that is true makes nothing true."""
        self._is_negated = not self._is_negated
        try:
            return super().visit_not_expression(node, value)
        finally:
            self._is_negated = not self._is_negated

    def compared(self, node: Any, left: Any, right: Any) -> Any:
        """As in JMESPath where one side is there or written out."""
        if left is None and right is None and all(child["type"] != "literal" for child in node["children"]):
            return self._is_negated
        return super().compared(node, left, right)


class Listing(Reading):
    """As `Reading`, but an element without a value keeps its place in the list, as null."""

    def visit_projection(self, node: Any, value: Any) -> Any:
        """What each element of a list gives."""
        base = self.visit(node["children"][0], value)
        return self._each(node, base) if isinstance(base, list) else None

    def visit_value_projection(self, node: Any, value: Any) -> Any:
        """What each member of an object gives."""
        base = self.visit(node["children"][0], value)
        return self._each(node, base.values()) if isinstance(base, dict) else None

    def visit_filter_projection(self, node: Any, value: Any) -> Any:
        """What each element that passes gives."""
        base = self.visit(node["children"][0], value)
        if not isinstance(base, list):
            return None
        return self._each(node, [each for each in base if is_true(self.visit(node["children"][2], each))])

    def _each(self, node: Any, elements: Iterable[Any]) -> list[Any]:
        return [self.visit(node["children"][1], element) for element in elements]


def _has_order(value: object) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)
