"""Real services as data: for each a spec, the answers it gives, and what has to come of them.

`examples.json` holds answers, their field names as the services document them and their values invented;
`specs/NAME.json` a spec in data alone, an answer to its submit, and what the first poll then asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tarry import JobSpec, Request, check
from tarry.core import hints
from tarry.core.answers import answer
from tarry.core.check import Checked
from tarry.core.observation import Observation
from tarry.http.prepare import prepare
from tarry.http.secrets import Secrets
from tarry.words import SECOND, CallKind, Instant, Micros, WaitSource

HERE = Path(__file__).parent

# What the examples say of a poll, in our words: a status that could not be read is a failed poll.
_VERDICTS = {"poll_error": "transient"}


@dataclass(frozen=True)
class Vendor:
    """One service. `now` is the instant of its answers, for hints that are dates."""

    id: str
    name: str
    spec: JobSpec
    examples: dict[str, dict[str, Any]]
    submit_answer: dict[str, Any]
    baseline_answer: dict[str, Any] | None
    asks: dict[str, Any]
    hints: dict[str, Micros]
    now: Instant

    def checked(self, example: str) -> Checked:
        """What the spec says to an example, after one answer of a job under way."""
        under_way = next(each for each in self.examples.values() if each["expect"] == "pending")
        answers = [_answer(under_way), _answer(self.examples[example])]
        submit, baseline = self.submit_answer, self.baseline_answer
        return check(self.spec, answers, submit=submit, baseline=baseline, now=self.now)[-1]

    def wrong_verdicts(self) -> Iterator[str]:
        """Each example whose verdict is not the expected one."""
        for name, example in self.examples.items():
            expected = _VERDICTS.get(example["expect"], example["expect"])
            told = self.checked(name)
            if told.verdict != expected:
                yield f"{name}: {told.verdict}, not {expected} ({told.error}, {told.problems})"

    def wrong_hints(self) -> Iterator[str]:
        """Each example whose hint is not read, or does not set the wait."""
        for name, example in self.examples.items():
            found = hints.read(self.spec.hints, self._observation(example))
            expected = self.hints.get(name)
            if (None if found is None else found.span) != expected:
                yield f"{name}: {found}, not {expected}"
            told = self.checked(name)
            if expected is not None and told.wait_source not in {None, WaitSource.HINT}:
                yield f"{name}: the wait is set by the {told.wait_source}"

    def wrong_urls(self) -> Iterator[str]:
        """What the first poll asks for, where it is not what the answer to the submit leads to."""
        assert isinstance(self.spec.submit, Request)
        assert isinstance(self.spec.poll, Request)
        values = {"key": "k", "input": self.spec.input, "submit": None, "poll": None}
        submitted = self._prepared(self.spec.submit, CallKind.SUBMIT, values)
        seen = self._observation(self.submit_answer, CallKind.SUBMIT, submitted.url)
        polled = self._prepared(self.spec.poll, CallKind.POLL, values | {"submit": answer(seen)})
        asked = {"url": polled.url} | ({} if polled.content is None else {"json": json.loads(polled.content)})
        if asked != self.asks:
            yield f"asks {asked}, not {self.asks}"

    def _prepared(self, request: Request, kind: CallKind, values: dict[str, Any]) -> Any:
        return prepare(request, kind=kind, values=values, secrets=Secrets({}), timeout=30 * SECOND)

    def _observation(
        self, given: dict[str, Any], kind: CallKind = CallKind.POLL, url: str | None = None
    ) -> Observation:
        lowered = {name.lower(): text for name, text in given.get("headers", {}).items()}
        body = given.get("text", given.get("body"))
        return Observation(kind, self.now, self.now, given.get("status", 200), lowered, body, is_json=True, url=url)


def vendors() -> list[Vendor]:
    """All of them, by name."""
    examples = json.loads((HERE / "examples.json").read_text(encoding="utf-8"))
    return [_vendor(name, examples[name]) for name in sorted(examples)]


def _vendor(name: str, told: dict[str, Any]) -> Vendor:
    written = json.loads((HERE / "specs" / f"{name}.json").read_text(encoding="utf-8"))
    return Vendor(
        id=name,
        name=told["name"],
        spec=JobSpec.model_validate(written["spec"]),
        examples=told["examples"],
        submit_answer=written["submit_answer"],
        baseline_answer=written.get("baseline_answer"),
        asks=written["asks"],
        hints=written.get("hints", {}),
        now=written.get("at", 0),
    )


def _answer(example: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in example.items() if name != "expect"}
