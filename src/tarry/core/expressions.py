"""JMESPath: compiled once, bounded, with one added function, `lower(text)`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from math import prod
from typing import Any, Final, TypeAlias

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.lexer import Lexer

from tarry.core.evaluation import Functions, Reading
from tarry.core.slips import meant

Steps: TypeAlias = tuple[str | int, ...]
"""A plain path: names and list positions."""

DOCUMENT: Final = frozenset({"status", "headers", "body", "input", "submit", "baseline", "polls", "error"})
"""The top-level names of the document that conditions and expressions see."""

_LONGEST = 1000
_DEEPEST = 20
_TALLEST = 100
_WIDEST = 10_000
_NESTING = {"lparen": 1, "lbracket": 1, "lbrace": 1, "filter": 1, "rparen": -1, "rbracket": -1, "rbrace": -1}
_LITERALS = frozenset({"true", "false", "null"})
# A link of a chain reads from what the links before it gave; a projection reads its first child once, the rest
# once for each element.
_CHAINS = frozenset({"subexpression", "index_expression", "pipe"})
_PROJECTIONS = frozenset({"projection", "value_projection", "filter_projection", "flatten"})


@dataclass(frozen=True, slots=True)
class _Compiled:
    """An expression, ready to run. `steps`: it is a plain path; `shares`: it may give the same value many times."""

    tree: Mapping[str, Any]
    steps: Steps | None
    shares: bool


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> _Compiled:
    tree = jmespath.compile(expression).parsed
    return _Compiled(tree, _steps(tree), "multi_select" in str(tree))


def search(expression: str, document: Any, reading: type[Reading] = Reading) -> Any:
    """What the expression selects; None where a name is missing.

    Raises what JMESPath raises on wrong types, and `TooCostly` when it takes too long.
    """
    compiled = _compiled(expression)
    found: Any = document
    if compiled.steps is None:
        run = reading()
        found = run.visit(compiled.tree, document)
        return run.measured(found) if compiled.shares else found
    try:
        for step in compiled.steps:
            if isinstance(step, str):
                found = found.get(step)
            else:
                found = found[step] if isinstance(found, list) and -len(found) <= step < len(found) else None
    except AttributeError:
        return None
    return found


@lru_cache(maxsize=1024)
def checked(expression: str, within: frozenset[str] | None = None) -> str:
    """The expression unchanged, if it can work.

    Raises `ValueError` with the way out: not JMESPath, longer than 1000
    characters, nested deeper than 20, fanning out without bound, an
    unknown function, `!a.b` (which reads as `(!a).b`), or, where the names of a
    document are given as `within`, another top-level name or a header name in capitals.
    """
    if not expression.strip():
        raise ValueError("an empty expression; write a JMESPath such as body.state")
    if len(expression) > _LONGEST:
        raise ValueError(f"an expression of more than {_LONGEST} characters; use a callable")
    try:
        _check_nesting(expression)
        tree = _compiled(expression).tree
        _check_tree(tree)
    except RecursionError:
        raise ValueError(f"nested deeper than {_DEEPEST}; write it flatter or use a callable") from None
    except JMESPathError as error:
        raise ValueError(f"not JMESPath: {_first_line(error)}{meant(expression)}") from None
    if within is not None:
        _check_names(expression, within)
    return expression


def is_path(expression: str) -> bool:
    """Whether it does no more than walk, by names and positions."""
    return _compiled(expression).steps is not None


@lru_cache(maxsize=1024)
def effort(expression: str) -> int:
    """How many times over it may go through an answer: 1 for a plain path, which hardly looks at it."""
    compiled = _compiled(expression)
    if compiled.steps is not None:
        return 1
    nodes = list(_nodes(compiled.tree))
    return len(nodes) * prod(map(_fan_out, nodes))


@lru_cache(maxsize=1024)
def roots(expression: str) -> frozenset[str]:
    """The top-level names that the expression reads; all of `DOCUMENT` when it reads the document as a whole."""
    read = list(_reads(_compiled(expression).tree))
    if any(not steps or isinstance(steps[0], int) for steps in read):
        return DOCUMENT
    return frozenset(str(steps[0]) for steps in read)


@lru_cache(maxsize=1024)
def paths(expression: str) -> tuple[str, ...]:
    """The plain paths that the expression reads from the document, such as `body.state`; each once, in order."""
    return tuple(dict.fromkeys(_written(steps) for steps in _reads(_compiled(expression).tree) if steps))


def _steps(node: Mapping[str, Any]) -> Steps | None:
    """The steps of a plain path; None for anything that does more than walk."""
    match node["type"]:
        case "current" | "identity":
            return ()
        case "field" | "index":
            return (node["value"],)
        case "subexpression" | "index_expression":
            parts = [_steps(child) for child in node["children"]]
            return None if None in parts else tuple(step for part in parts for step in part or ())
        case _:
            return None


def _reads(node: Mapping[str, Any]) -> Iterator[Steps]:
    """The plain paths that a tree reads from the document itself."""
    steps = _steps(node)
    if steps is not None:
        yield steps
    elif node["type"] == "expref":
        return
    elif node["type"] in _CHAINS:
        yield from _chain(node["children"])
    elif node["type"] in _PROJECTIONS:
        yield from _reads(node["children"][0])
    else:
        for child in _children(node):
            yield from _reads(child)


def _chain(links: list[Mapping[str, Any]]) -> Iterator[Steps]:
    whole: Steps = ()
    for link in links:
        steps = _steps(link)
        if steps is None:
            further = [whole + more for more in _reads(link)]
            yield from further or ([whole] if whole else [])
            return
        whole += steps
    yield whole


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in _children(node):
        yield from _nodes(child)


def _children(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    # The children of a slice are its bare numbers.
    return [child for child in node["children"] if isinstance(child, dict)]


def _written(steps: Steps) -> str:
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = step if step.isidentifier() and step.isascii() else json.dumps(step)
            text += f".{name}" if text else name
    return text


def _check_nesting(expression: str) -> None:
    # Brackets are counted before parsing: the parser is recursive, and parentheses leave no trace in the tree.
    depth = 0
    for token in Lexer().tokenize(expression):
        depth += _NESTING.get(token["type"], 0)
        if depth > _DEEPEST:
            raise RecursionError


def _check_tree(tree: Mapping[str, Any]) -> None:
    width, level, height = 1, [tree], 0
    while level:
        height += 1
        if height > _TALLEST:
            raise RecursionError
        for node in level:
            _check_node(node)
            width *= _fan_out(node)
        level = [child for node in level for child in _children(node)]
    if width > _WIDEST:
        raise ValueError("its lists multiply without bound; select less at each step or use a callable")


def _fan_out(node: Mapping[str, Any]) -> int:
    """By how much a list or hash that is built on the way can multiply what it is given."""
    if node["type"] not in {"multi_select_list", "multi_select_dict"}:
        return 1
    return max(1, len([child for child in _children(node) if child["type"] != "literal"]))


def _check_node(node: Mapping[str, Any]) -> None:
    if (
        node["type"] in _CHAINS | _PROJECTIONS
        and node["type"] != "pipe"
        and node["children"][0]["type"] == "not_expression"
    ):
        raise ValueError("a leading ! takes only the first name: !a.b reads as (!a).b; write !(a.b)")
    if node["type"] == "comparator":
        for child in node["children"]:
            if child["type"] == "field" and child["value"] in _LITERALS:
                raise ValueError(
                    f"compares with a member named {child['value']}; the value is written `{child['value']}`"
                )
    if node["type"] == "function_expression":
        _check_function(node["value"], len(node["children"]))


def _check_function(name: str, given: int) -> None:
    known = Functions.FUNCTION_TABLE
    if name not in known:
        near = get_close_matches(name, known, n=1)
        raise ValueError(f"no function {name}()" + (f"; did you mean {near[0]}()?" if near else ""))
    wanted = known[name]["signature"]
    is_variadic = bool(wanted) and bool(wanted[-1].get("variadic"))
    if given < len(wanted) or (given > len(wanted) and not is_variadic):
        raise ValueError(f"{name}() takes {len(wanted)} argument{'s' * (len(wanted) != 1)}, got {given}")


def _check_names(expression: str, within: frozenset[str]) -> None:
    named = {str(steps[0]) for steps in _reads(_compiled(expression).tree) if steps}
    for name in sorted(named - within):
        near = get_close_matches(name, within, n=1)
        instead = meant(expression) or f"; did you mean {' or '.join([*near, f'body.{name}'])}?"
        raise ValueError(f"reads {name}, which is none of {', '.join(sorted(within))}{instead}")
    for path in paths(expression):
        if path.startswith("headers.") and path != path.lower():
            raise ValueError(f"header names are in lower case here; write {path.lower()}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].removesuffix(":").removesuffix(", for expression")
