"""What travels beside a state: answers, which templates and conditions need whole, and the status URL.

A state stays small; these are bounded in kilobytes, and stored only when they change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tarry.core.observation import Observation
from tarry.frozen import quick
from tarry.words import Json

Answer: TypeAlias = dict[str, Json]
"""An answer as a document: status, headers, body, url."""


@dataclass(frozen=True, slots=True)
class StatusUrl:
    """A status URL found in an answer: itself, whole, and the URL of the request that found it.

    `found_at` is None where the spec writes its origin out. It counts as long as the
    URL of the spec's `poll` is `instead_of`: another one begins anew.
    """

    url: str
    found_at: str | None
    instead_of: str


@dataclass(frozen=True, slots=True)
class Validators:
    """What the last answer is known by: it holds as long as the service says of these that nothing changed.

    `url` is where it came from, without its query. At least one of the others is there.
    """

    url: str
    etag: str | None = None
    last_modified: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class Answers:
    """What was answered so far, each as `answer` gives it; None for what was not answered yet.

    `submit` is the answer to the submit. `baseline` was taken before the submit, or else is
    the first answer that the condition judged. `poll` is the last answer that it judged. `status_url`
    is where the job is polled since an answer moved it. `validators` are those of the last answer, where a
    conditional poll may send them.
    """

    submit: Answer | None = None
    baseline: Answer | None = None
    poll: Answer | None = None
    status_url: StatusUrl | None = None
    validators: Validators | None = None

    def values(self, key: str, given: Json) -> dict[str, Json]:
        """What templates can name; `given` is the spec's `input`. Before the first poll, `poll` is the submit's answer."""
        poll = self.submit if self.poll is None else self.poll
        return {"input": given, "key": key, "submit": self.submit, "baseline": self.baseline, "poll": poll}


def answer(seen: Observation) -> Answer:
    """The answer as a document: status, headers, body, url."""
    return {"status": seen.status, "headers": dict(seen.headers), "body": seen.body, "url": seen.url}
