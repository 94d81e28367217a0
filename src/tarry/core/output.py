"""The output of a job that ended well: what `result` selects of its last answer."""

from __future__ import annotations

from collections.abc import Mapping

from tarry.core.expressions import search
from tarry.core.spec import JobSpec
from tarry.core.texts import bounded, short
from tarry.words import Json

LIMIT = 1 << 20
"""Bytes of an output as JSON."""

_PROBLEM = 200


def output_of(spec: JobSpec, document: Mapping[str, Json]) -> tuple[Json, str | None]:
    """The output, and what was wrong with it in one line, if anything was.

    Success stays success: an expression that raises, or an output of more than
    1 MiB, gives None and says why.
    """
    try:
        found = document["body"] if spec.result is None else search(spec.result, document)
    except Exception as error:  # noqa: BLE001  # whatever the expression raises, the job has succeeded
        return None, short(f"result: {type(error).__name__}: {error}", _PROBLEM)
    output, is_whole = bounded(found, LIMIT)
    return (output, None) if is_whole else (None, f"result: larger than {LIMIT} bytes")
