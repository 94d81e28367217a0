"""A spec from a file."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from functools import partial
from os import PathLike, fspath
from pathlib import Path

from tarry.core.function import Function
from tarry.core.spec import JobSpec
from tarry.core.texts import plain, short
from tarry.errors import SpecError
from tarry.specs import json_text
from tarry.specs.document import Document

MAX_BYTES = 4_000_000
"""Bytes of a spec file."""

_YAML = (".yaml", ".yml")


def load_spec(path: str | PathLike[str], *, allow_callables: bool = False) -> JobSpec:
    """The spec in this file: YAML where its name ends in .yaml or .yml, else JSON.

    A file that names callables is a program: it is refused, and with `allow_callables` their modules
    are imported. Raises `SpecError` that names the file, the line and the field.
    """
    name = fspath(path)
    spec = read_spec(name)
    if not allow_callables:
        for function in spec.functions:
            called = short(function.function, 80)
            raise SpecError(
                plain(name), f"it would call {called}; pass allow_callables=True if you trust this file like a script"
            )
    import_functions(spec.functions, name)
    return spec


def read_spec(path: str, name: str | None = None) -> JobSpec:
    """The spec in this file, `-` being stdin; no callable is looked for. `name` is what errors call the file."""
    name = plain(path if name is None else name)
    document = read_document(path, name)
    if not isinstance(document.value, dict):
        raise SpecError(name, f"a JSON object is needed, this is a {type(document.value).__name__}")
    try:
        return JobSpec.model_validate({part: value for part, value in document.value.items() if part != "$schema"})
    except SpecError as error:
        raise document.located(error) from None
    except RecursionError:
        raise SpecError(name, "too deep") from None


def read_document(path: str, name: str) -> Document:
    """What this file holds, `-` being stdin: YAML or JSON. Raises `SpecError` that calls the file `name`."""
    text = _text(path, name)
    return _yaml(text, name) if _is_yaml(path, text) else _json(text, name)


def import_functions(functions: Iterable[Function], name: str) -> None:
    """Import the module of each callable. Raises `SpecError` where one is not there."""
    for function in functions:
        try:
            importlib.import_module(function.function.partition(":")[0])
            function.load()
        except Exception as error:  # an import runs foreign code, and whatever it raises is told on one line
            problem = short(f"{type(error).__name__}: {error}", 200)
            raise SpecError(plain(name), f"cannot use {short(function.function, 80)}: {problem}") from error


def _is_yaml(path: str, text: str) -> bool:
    """By the name; what comes through a pipe is YAML where it cannot be a JSON object."""
    if path == "-":
        return not text.lstrip().startswith(("{", "[", '"')) and bool(text.strip())
    return path.lower().endswith(_YAML)


def _json(text: str, name: str) -> Document:
    try:
        return Document(name, json_text.read(text), partial(json_text.lines, text))
    except SpecError:
        raise
    except ValueError as error:
        raise SpecError(name, f"not JSON: {error}") from None


def _yaml(text: str, name: str) -> Document:
    try:
        from tarry.specs import yaml_text
    except ImportError:
        raise SpecError(name, "to read YAML, install tarry[yaml]; or write it as JSON") from None
    try:
        value, lines = yaml_text.read(text)
    except yaml_text.YamlError as error:
        raise SpecError(f"{name}:{error.line}", error.problem) from None
    return Document(name, value, lambda: lines)


def _text(path: str, name: str) -> str:
    try:
        raw = _bytes(path, name)
        if len(raw) > MAX_BYTES:
            raise SpecError(name, f"larger than {MAX_BYTES} bytes")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(name, "not UTF-8 text") from None
    except (OSError, ValueError) as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(name, getattr(error, "strerror", None) or "cannot be read") from None


def _bytes(path: str, name: str) -> bytes:
    if path == "-":
        return b"" if sys.stdin is None else sys.stdin.buffer.read(MAX_BYTES + 1)
    if not Path(path).is_file():  # a FIFO or a device would hang, or never end
        raise SpecError(name, "no such file")
    with Path(path).open("rb") as file:
        return file.read(MAX_BYTES + 1)
