"""An answer that repeats the last one is counted without being read, where it can mean nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarry import Batch, Expression, Fixed, Hints, JobSpec, Match, Request, Status
from tarry.core.answers import Answers
from tarry.core.document import document
from tarry.core.judging import lasting
from tarry.core.machine import start, step
from tarry.core.moves import IllegalMove
from tarry.core.observation import Observation
from tarry.words import SECOND, CallKind, Instant
from tests.pollers import FAILED, RUNNING, SUCCEEDED, polled, spec_of

NOW: Instant = 1_700_000_000 * SECOND
URL = "https://api.example.com/jobs/7"


def seen(body: Any, polls: int = 1, status: int = 200) -> Observation:
    """An answer to the so-manieth poll."""
    at = NOW + polls * SECOND
    return Observation(CallKind.POLL, at, at, status, {}, body, is_json=True, url=URL)


def meaning(spec: JobSpec, body: Any, status: int = 200) -> Any:
    """What the answer lastingly means."""
    answer = seen(body, status=status)
    return lasting(spec, answer, document(spec, 1, answer))


@pytest.mark.parametrize(
    "spec",
    [
        polled(),
        spec_of(),
        polled(until=Expression("body.state == 'SUCCEEDED' && status == `200`")),
        polled(until=Expression("body.state == input.wanted"), input={"wanted": "SUCCEEDED"}),
        polled(until=Status(pending=[200, 202], succeeded=201), reason="body.error"),
        polled(progress="body.progress"),
    ],
)
def test_status_and_body_tell_what_most_answers_mean(spec: JobSpec) -> None:
    """So that the same ones mean the same again, as long as they do not end the job."""
    assert meaning(spec, RUNNING) is not None


@pytest.mark.parametrize(
    "spec",
    [
        polled(until=Expression("polls > `3`")),
        polled(until=Expression("body.state == 'SUCCEEDED' || headers.done")),
        polled(until=Expression("body.rows > baseline.body.rows")),
        polled(until=lambda document: document["body"]["state"] == "SUCCEEDED"),
        polled(strategy=lambda polls: polls),
        polled(progress="polls"),
        polled(hints=Hints(path="body.wait")),
        spec_of(redirect="{poll.body.next}"),
        spec_of(poll=Request("GET", "{poll.body.next}")),
        polled(poll=Request("GET", URL, conditional=True)),
    ],
)
def test_where_there_is_more_to_an_answer_each_is_read(spec: JobSpec) -> None:
    """Poll count, headers, a baseline, a callable, a hint, another address, a validator."""
    assert meaning(spec, RUNNING) is None


def test_what_ends_a_job_or_is_no_answer_is_always_read() -> None:
    """Terminal verdicts and failed polls; a value that nobody has heard of goes on."""
    assert meaning(polled(), SUCCEEDED) is None
    assert meaning(polled(), FAILED) is None
    assert meaning(polled(), RUNNING, status=503) is None
    assert meaning(polled(), {"state": "NEVER HEARD OF"}) is not None


PROGRESS = (None, "body.progress", "body.share || 'waiting'", "to_string(body.progress)", "type(body)", "`0.5`")


@given(
    st.lists(st.sampled_from(["QUEUED", "RUNNING", "WAITING", "HELD"]), min_size=1, max_size=4),
    st.integers(1, 6),
    st.sampled_from(PROGRESS),
)
def test_an_answer_that_is_known_does_what_it_does_when_it_is_read(
    states: list[str], repeats: int, progress: str | None
) -> None:
    """Whatever came before, however often it comes, and whatever its progress is read from."""
    until = Match("body.state", succeeded="SUCCEEDED", pending=["QUEUED", "RUNNING"], blocked="HELD")
    spec = polled(until=until, progress=progress, strategy=Fixed("1s"))
    state, _ = start(spec, "orders", NOW)
    for polls, name in enumerate(states, 1):
        answer = seen({"state": name, "progress": polls * 10}, polls)
        state, _ = step(spec, state, answer, answer.finished_at)
    for polls in range(len(states) + 1, len(states) + 1 + repeats):
        at = NOW + polls * SECOND
        answer = replace(answer, started_at=at, finished_at=at)
        known = lasting(spec, answer, document(spec, polls, answer))
        assert known is not None
        unread = replace(answer, body=None)
        read = step(spec, state, answer, at)
        assert step(spec, state, unread, at, Answers(), known) == read
        state, _ = read


def test_no_answer_is_known_to_a_job_that_awaits_none() -> None:
    """As with one that is read."""
    state, _ = start(spec_of(), "orders", NOW)
    known = meaning(polled(), RUNNING)
    with pytest.raises(IllegalMove):
        step(spec_of(), state, seen(RUNNING), NOW, Answers(), known)


def test_a_batch_is_told_by_its_body_too() -> None:
    """Each job by its own part."""
    batch = Batch(
        Request("GET", "https://api.example.com/jobs", params={"ids": "{batch.ids}"}), id="{key}", items="body"
    )
    assert meaning(polled(poll=batch), RUNNING) is not None
