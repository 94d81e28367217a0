"""Placeholders: `{root.path}` in a request, filled in just before it is sent.

The root is one of input, submit, poll, baseline, key and secret, or batch in a `Batch`; braces around
anything else are literal. A path step names a member, a header (in any case) or the position in
a list. Leading a URL, a placeholder is a URL reference, absolute or relative;
elsewhere in a URL it is percent-encoded, `{input.name:path}` keeping slashes;
alone in a JSON value it keeps its type. Values are inserted once and never
read as templates themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from tarry.core.judgement import copied
from tarry.words import Json

ANSWER_ROOTS = frozenset({"submit", "poll", "baseline"})
"""Roots whose values come from the service, and so deserve no trust."""

_AUTHORITY = re.compile(r"(?:https?://)?[^/?]*", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{(input|submit|poll|baseline|key|secret|batch)(\.[^{}]*?)?(:path)?\}")
_STEP = re.compile(r"[^\s.:/?#]+")
_SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SHORT = 500  # characters of a text that is read once for all polls: all but bodies
_DOTS = re.compile(r"(?<![^/])(?:\.|%2e){1,2}(?![^/])", re.IGNORECASE)
_UNRESERVED = re.compile(r"[\w.~-]*", re.ASCII)


class TemplateError(ValueError):
    """A placeholder that cannot be filled in. The message names it, never its value."""


class MissingValue(TemplateError, LookupError):
    """The value that a placeholder names is not there. `name` is the placeholder's inside."""

    def __init__(self, name: str, problem: str = "has no value") -> None:
        super().__init__(name, problem)
        self.name = name
        self.problem = problem

    def __str__(self) -> str:
        return f"{{{self.name}}} {self.problem}"


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One placeholder as written: its root, the steps after it, and whether it keeps slashes."""

    root: str
    steps: tuple[str, ...]
    keeps_slashes: bool
    start: int
    end: int

    @property
    def name(self) -> str:
        """What stands between the braces, without `:path`."""
        return ".".join((self.root, *self.steps))


def placeholders(text: str) -> tuple[Placeholder, ...]:
    """The placeholders of a text, in order; `TemplateError` for one that is malformed."""
    return _read_once(text) if len(text) <= _SHORT else _read(text)


def roots(text: str) -> frozenset[str]:
    """The roots that a text uses."""
    return frozenset(found.root for found in placeholders(text))


def secret_names(text: str) -> frozenset[str]:
    """The names of the secrets that a text uses."""
    return frozenset(found.steps[0] for found in placeholders(text) if found.root == "secret")


def leading(url: str) -> Placeholder | None:
    """The placeholder that a URL starts with, if it does."""
    found = placeholders(url)
    return found[0] if found and found[0].start == 0 else None


@lru_cache(maxsize=1024)
def authority_roots(url: str) -> tuple[str, ...]:
    """The roots that decide on scheme, host and port of a URL, in order."""
    authority = _AUTHORITY.match(url)
    return tuple(found.root for found in placeholders(url[: authority.end() if authority else 0]))


def finder(url: str, values: Mapping[str, Any]) -> str | None:
    """The URL of the request whose answer decides where this one leads; the submit's where no answer does."""
    root = next((root for root in authority_roots(url) if root in ANSWER_ROOTS), "submit")
    found = values.get(root)
    at = found.get("url") if isinstance(found, Mapping) else None
    return at if isinstance(at, str) and at else None


def is_filled(text: str, root: str, values: Mapping[str, Any]) -> bool:
    """Whether each placeholder of this root has a value that is not null."""
    named = (found for found in placeholders(text) if found.root == root)
    try:
        return all(_look_up(found, values) is not None for found in named)
    except MissingValue:
        return False


@lru_cache(maxsize=1024)
def blanked(text: str) -> str:
    """The text with a harmless digit in place of each placeholder."""
    return _PLACEHOLDER.sub("1", text)


def texts(value: Json) -> Iterator[str]:
    """Every text in a JSON value where a placeholder counts; the names of members are literal."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)


def render_text(template: str, values: Mapping[str, Any]) -> str:
    """The template with each value as text."""
    return _fill(template, lambda found: _as_text(found, values))


def render_header(template: str, values: Mapping[str, Any]) -> str:
    """The template as the value of a header: printable ASCII, without blanks around it."""
    if "{" not in template:
        return template.strip(" ")
    return _fill(template, lambda found: _as_header(found, values)).strip(" ")


def render_url(template: str, values: Mapping[str, Any]) -> str:
    """The template as a URL, or as a URL reference where a placeholder leads it.

    A value never adds a path segment of its own (save with `:path`), never a
    segment of dots, and an empty one is missing while the path is not over.
    """
    read = _url_once(template) if len(template) <= _SHORT else _read_url(template)
    head = _as_text(read.lead, values) if read.lead else ""
    if not read.found:
        return head + read.texts[0]
    parts, may_be_dots = [read.texts[0]], False
    for found, text in zip(read.found, read.texts[1:], strict=True):
        value = _in_url(found, values, in_path=found.start < read.path_end)
        # A segment of dots is made of nothing but these, and so is whatever stands in it.
        may_be_dots = may_be_dots or found.keeps_slashes or not value.strip(".%2eE")
        parts += [value, text]
    tail = "".join(parts)
    if may_be_dots and _dot_segments(tail) > read.dot_segments:
        raise TemplateError("a value would make a path segment of dots, which leads elsewhere")
    return head + tail


def render_json(template: Json, values: Mapping[str, Any]) -> Json:
    """The JSON value with its texts filled in; a placeholder alone in a text keeps its value's type."""
    if isinstance(template, str):
        return _json_text(template, values)
    if isinstance(template, list):
        return [render_json(item, values) for item in template]
    if isinstance(template, dict):
        return {name: render_json(item, values) for name, item in template.items()}
    return template


def _read(text: str) -> tuple[Placeholder, ...]:
    return tuple(_placeholder(match) for match in _PLACEHOLDER.finditer(text))


_read_once = lru_cache(4_096)(_read)


@dataclass(frozen=True, slots=True)
class _Url:
    """A URL's template, read: the placeholder that leads it, the others, and the texts around these."""

    lead: Placeholder | None
    found: tuple[Placeholder, ...]
    texts: tuple[str, ...]
    path_end: int
    dot_segments: int


def _read_url(template: str) -> _Url:
    lead = leading(template)
    start = lead.end if lead else 0
    found = placeholders(template)[1 if lead else 0 :]
    bounds = [start, *(bound for each in found for bound in (each.start, each.end)), len(template)]
    return _Url(
        lead=lead,
        found=found,
        texts=tuple(template[begin:end] for begin, end in zip(bounds[::2], bounds[1::2], strict=True)),
        path_end=start + len(template[start:].partition("?")[0]),
        dot_segments=_dot_segments(template[start:]),
    )


_url_once = lru_cache(1_024)(_read_url)


def _placeholder(match: re.Match[str]) -> Placeholder:
    root, path, modifier = match.groups()
    steps = tuple(path[1:].split(".")) if path else ()
    if not all(_STEP.fullmatch(step) for step in steps):
        raise TemplateError(f"{match.group()} is malformed: write {{root.step.step}}, or {{root.step:path}} in a URL")
    if root == "key" and steps:
        raise TemplateError(f"{match.group()}: the key has no parts; write {{key}}")
    if root == "secret" and not (len(steps) == 1 and _SECRET_NAME.fullmatch(steps[0])):
        raise TemplateError(f"{match.group()}: write {{secret.NAME}}, NAME of letters, digits, _ and -")
    return Placeholder(root, steps, modifier is not None, match.start(), match.end())


def _fill(template: str, value: Callable[[Placeholder], str]) -> str:
    parts, end = [], 0
    for found in placeholders(template):
        parts += [template[end : found.start], value(found)]
        end = found.end
    return "".join([*parts, template[end:]])


def _json_text(template: str, values: Mapping[str, Any]) -> Json:
    found = placeholders(template)
    if len(found) == 1 and (found[0].start, found[0].end) == (0, len(template)):
        # A copy: the callable that gets it may change it, and the values are not its own.
        alone: Json = copied(_look_up(found[0], values))
        return alone
    return render_text(template, values)


def _look_up(found: Placeholder, values: Mapping[str, Any]) -> Any:
    value: Any = values
    for step in (found.root, *found.steps):
        value = _member(value, step, found)
    return value


def _member(value: Any, step: str, found: Placeholder) -> Any:
    # Nearly all are dicts, which are told at a tenth of the cost.
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101  # one by one, for their cost
        if step in value:
            return value[step]
        # Header names have lower case in an observation and any case in a spec.
        if found.steps[:1] == ("headers",) and step.lower() in value:
            return value[step.lower()]
    elif isinstance(value, list | tuple) and step.isascii() and step.isdigit() and int(step[:9]) < len(value):
        return value[int(step[:9])]
    raise MissingValue(found.name)


def _as_text(found: Placeholder, values: Mapping[str, Any]) -> str:
    value = _look_up(found, values)
    if value is None:
        raise MissingValue(found.name, "is null")
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return _number(value, found.name)
    raise TemplateError(f"{{{found.name}}} is a {_kind(value)}; only texts, numbers and booleans can be part of a text")


def _number(value: float, name: str) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        raise TemplateError(f"{{{name}}} is a number that cannot be written out") from None


def _kind(value: object) -> str:
    return "list" if isinstance(value, list | tuple) else "JSON object" if isinstance(value, Mapping) else "stranger"


def _as_header(found: Placeholder, values: Mapping[str, Any]) -> str:
    text = _as_text(found, values)
    if _CONTROL.search(text) or not text.isascii():
        hint = "; a newline at the end of the secret?" if found.root == "secret" else ""
        raise TemplateError(f"{{{found.name}}} has control or non-ASCII characters, no header can hold them{hint}")
    return text


def _in_url(found: Placeholder, values: Mapping[str, Any], *, in_path: bool) -> str:
    text = _as_text(found, values)
    if in_path and not text:
        raise MissingValue(found.name, "is empty")
    if _UNRESERVED.fullmatch(text):
        return text
    try:
        return quote(text, safe="/" if found.keeps_slashes else "")
    except UnicodeEncodeError:
        raise TemplateError(f"{{{found.name}}} is not valid text") from None


def _dot_segments(url: str) -> int:
    return len(_DOTS.findall(url.partition("?")[0]))
