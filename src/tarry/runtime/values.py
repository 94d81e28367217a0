"""What the requests after a job's end can know of it: its stored row has the answers."""

from __future__ import annotations

import json

from tarry.codec import decode_observation
from tarry.core.answers import Answers, answer
from tarry.core.spec import JobSpec
from tarry.ports import JobRow
from tarry.words import Json


def answers_of(row: JobRow) -> Answers:
    """What was answered so far."""
    return Answers(submit=None if row.submit is None else json.loads(row.submit))


def values_of(spec: JobSpec, row: JobRow) -> dict[str, Json]:
    """What templates can name; `poll` is the last answer as stored."""
    last = None if row.last is None else answer(decode_observation(row.last))
    return {**answers_of(row).values(row.key, spec.input), "poll": last}
