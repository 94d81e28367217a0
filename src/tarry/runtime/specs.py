"""The specs of stored jobs, with what this process knows of their callables."""

from __future__ import annotations

from functools import lru_cache

from tarry.codec import decode_spec, differences
from tarry.core.spec import JobSpec


@lru_cache(256)
def one_text(text: str) -> str:
    """The text of a spec: one object for all the jobs that have the same, for as long as it is in use."""
    return text  # not interned: Python 3.12 would hold it for ever


def with_callables(text: str, given: JobSpec) -> JobSpec:
    """The stored spec, with the callables of the given one, which may have no importable name, wherever both agree.

    Raises `CheckpointError`.
    """
    spec = decode_spec(text)
    if not given.functions:
        return spec
    others = {name.partition(".")[0] for name in differences(spec, given)}
    return spec.model_copy(update={name: getattr(given, name) for name in given.model_fields_set - others})


def unknown_callable(spec: JobSpec) -> LookupError | None:
    """What this process lacks to poll by the spec: a callable that cannot be found; None when it has all."""
    try:
        for function in spec.polling_functions:
            function.load()
    except LookupError as unknown:
        return unknown
    return None
