"""YAML text, as far as it says the same as JSON.

Values are those of YAML 1.2's core schema: `true` and `false` are booleans, `no`, `on` and `2026-01-01` are
texts. No tags, no merge keys; each name once; aliases only as long as what they stand for stays small.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from tarry.core.request import MAX_DEPTH
from tarry.specs.document import Way

MAX_TEXT = 256 * 1024
"""Characters of a YAML text; reading more would take seconds."""

MAX_VALUES = 100_000
"""Values of a document, those that aliases repeat included."""

_CORE = "tag:yaml.org,2002:"
_PLAIN = (
    ("null", r"|~|null|Null|NULL"),
    ("bool", r"true|True|TRUE|false|False|FALSE"),
    ("int", r"[-+]?[0-9]{1,1000}"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"),
)


class YamlError(ValueError):
    """What is wrong with a text, and in which line."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(line, problem)
        self.line = line
        self.problem = problem


def read(text: str) -> tuple[Any, Mapping[Way, int]]:
    """The value, and the line of each part of it. Raises `YamlError`."""
    if len(text) > MAX_TEXT:
        raise YamlError(1, f"larger than {MAX_TEXT} characters; write it as JSON")
    try:
        node = _Loader(text).get_single_node()
        reading = _Reading()
        return reading.value(node, ()), reading.lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(1 if mark is None else mark.line + 1, f"not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise YamlError(1, f"not YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise YamlError(1, "too deep") from None


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """Composes nodes; nothing in it makes an object."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """The next node; a tag is refused."""
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]  # untyped in the library
        if getattr(event, "tag", None) is not None:
            raise YamlError(_line(event), "has a tag (!…); write the plain value")
        return super().compose_node(parent, index)


for _kind, _pattern in _PLAIN:
    _Loader.add_implicit_resolver(f"{_CORE}{_kind}", re.compile(f"(?:{_pattern})\\Z"), None)


class _Reading:
    """Nodes to values."""

    def __init__(self) -> None:
        self.lines: dict[Way, int] = {}
        self._values = 0

    def value(self, node: Node | None, way: Way) -> Any:
        """The value of a node, as JSON has it."""
        if node is None:
            return None
        line = _line(node)
        self.lines.setdefault(way, line)
        self._values += 1
        if self._values > MAX_VALUES:
            raise YamlError(line, f"more than {MAX_VALUES} values; aliases repeat what they stand for")
        if len(way) > MAX_DEPTH:
            raise YamlError(line, f"nested deeper than {MAX_DEPTH}, or in itself")
        if isinstance(node, MappingNode):
            return self._mapping(node, way)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*way, position)) for position, item in enumerate(node.value)]
        return _scalar(node)

    def _mapping(self, node: MappingNode, way: Way) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in node.value:
            line = _line(key)
            if not isinstance(key, ScalarNode) or key.tag != f"{_CORE}str":
                raise YamlError(line, "a name is no text; put it in quotes")
            if key.value in found:
                raise YamlError(line, f"{key.value[:80]!r} is given twice")
            self.lines[*way, key.value] = line
            found[key.value] = self.value(item, (*way, key.value))
        return found


def _line(part: yaml.Event | Node) -> int:
    return 1 if part.start_mark is None else part.start_mark.line + 1


def _scalar(node: Node) -> Any:
    text = node.value
    match node.tag.removeprefix(_CORE):
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return int(text)
        case "float":
            return float(text)
    return text
