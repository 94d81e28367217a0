"""The JSON Schema of a spec file, for editors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from tarry.core.spec import JobSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_BULLET = re.compile(r"^- ((?:`\w+`(?:, | and | or )?)+):? ?(.*(?:\n  +\S.*)*)", re.MULTILINE)


def spec_schema() -> dict[str, Any]:
    """What a spec file may hold, as JSON Schema (draft 2020-12).

    What it refuses, `JobSpec` refuses. It says names, types and ranges, and cannot say that a text
    is no JMESPath, no duration or no URL: `load_spec` does.
    """
    schema = JobSpec.model_json_schema()
    for model, found in _objects(schema):
        _describe(model, found)
    schema["properties"]["$schema"] = {"type": "string", "description": "where this schema is; for editors alone."}
    return {"$schema": DIALECT, **schema}


def _objects(schema: dict[str, Any]) -> Iterator[tuple[type[BaseModel] | None, dict[str, Any]]]:
    models = {model.__name__: model for model in _subclasses(BaseModel) if model.__module__.startswith("tarry.core")}
    for name, found in {**schema["$defs"], "JobSpec": schema}.items():
        yield models.get(name), found


def _subclasses(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in model.__subclasses__():
        yield each
        yield from _subclasses(each)


def _describe(model: type[BaseModel] | None, found: dict[str, Any]) -> None:
    """Say what each field is, and that a member of a union needs its tag."""
    properties = found.get("properties", {})
    if "const" in properties.get("type", {}):
        found["required"] = ["type", *found.get("required", [])]
    for name, text in _told(model):
        if name in properties:
            properties[name]["description"] = text
    for each in properties.values():
        each.pop("title", None)
    if model is not None:
        found["description"] = (model.__doc__ or "").partition("\n")[0]


def _told(model: type[BaseModel] | None) -> Iterator[tuple[str, str]]:
    """The fields that the description of a model explains, each with its words."""
    for names, text in _BULLET.findall("" if model is None else _dedented(model)):
        for name in re.findall(r"`(\w+)`", names):
            yield name, " ".join(text.split())


def _dedented(model: type[BaseModel]) -> str:
    return re.sub(r"^    ", "", model.__doc__ or "", flags=re.MULTILINE)
