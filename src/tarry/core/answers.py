"""The answers that travel beside a state: templates and conditions need them whole, and a state stays small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tarry.core.observation import Observation
from tarry.words import Json

Answer: TypeAlias = dict[str, Json]
"""An answer as a document: status, headers, body, url."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What was answered so far, each as `answer` gives it; None for what was not answered yet.

    `submit` is the answer to the submit.
    """

    submit: Answer | None = None

    def values(self, key: str, given: Json) -> dict[str, Json]:
        """What templates can name; `given` is the spec's `input`."""
        return {"input": given, "key": key, "submit": self.submit}


def answer(seen: Observation) -> Answer:
    """The answer as a document: status, headers, body, url."""
    return {"status": seen.status, "headers": dict(seen.headers), "body": seen.body, "url": seen.url}
