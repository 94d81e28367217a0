"""Specs as JSON text: what was set, how two differ, and what makes them the same job."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from tarry.codec.reading import VERSION, versioned
from tarry.core.function import Function
from tarry.core.spec import JobSpec
from tarry.core.texts import as_json_text
from tarry.errors import CheckpointError, SpecError
from tarry.words import Json


def encode_spec(spec: JobSpec) -> str:
    """What was set of the spec, as JSON."""
    return as_json_text({"v": VERSION, "spec": _set_fields(spec)})


@lru_cache(maxsize=1024)  # a round of a worker reads the specs of hundreds of jobs, each twice
def decode_spec(text: str) -> JobSpec:
    """The spec. Raises `CheckpointError` that names what is damaged or newer."""
    fields = versioned(text, "spec")
    try:
        return JobSpec.model_validate(fields.get("spec"))
    except (SpecError, ValidationError) as error:
        raise CheckpointError(f"spec: cannot be read: {error}") from error


def fingerprint(spec: JobSpec) -> str:
    """What makes two specs the same job: a hash over what was set of submit and input.

    Without a submit, of poll and input. A callable counts by its name and `args`,
    a secret by its reference.
    """
    fields = _set_fields(spec)
    call = "poll" if spec.submit is None else "submit"
    names = [call, "input"] + (["args"] if isinstance(getattr(spec, call), Function) else [])
    told = {name: fields[name] for name in names if name in fields}
    return hashlib.sha256(as_json_text(told, sort_keys=True).encode()).hexdigest()


def differences(old: JobSpec, new: JobSpec) -> list[str]:
    """The dotted names of the fields that differ, sorted."""
    return sorted(_differing(_set_fields(old), _set_fields(new), ""))


def _differing(old: Mapping[str, Json], new: Mapping[str, Json], prefix: str) -> list[str]:
    found: list[str] = []
    for name in {*old, *new}:
        one, other = old.get(name, _ABSENT), new.get(name, _ABSENT)
        if isinstance(one, dict) and isinstance(other, dict):
            found += _differing(one, other, f"{prefix}{name}.")
        elif one != other:
            found.append(f"{prefix}{name}")
    return found


def _set_fields(spec: JobSpec) -> dict[str, Any]:
    return spec.model_dump(mode="json", exclude_unset=True)


_ABSENT: Any = object()
