"""The last request for a result: after the success is committed, with a budget of its own."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace
from typing import Any

import pytest

from tarry import (
    Fixed,
    Hints,
    JobFailed,
    JobSpec,
    Limits,
    Match,
    Outcome,
    Poller,
    Request,
    ResultUnavailable,
    SpecError,
    Status,
    WaitTimeout,
)
from tarry.core.fetching import TRIES, FetchAgain, Fetched, NoResult, read_fetch
from tarry.core.observation import CallError, Observation
from tarry.testing import Answer, ScriptedJob
from tarry.words import SECOND, CallKind, ErrorKind
from tests.pollers import FAILED, RUNNING, World, polled, spec_of

RESULT = Request("GET", "https://api.example.com/jobs/{submit.body.jobId}/result")
DONE = {"state": "SUCCEEDED"}
ROWS = {"result": {"rows": 3}}


class Fetches(World):
    """A world whose job has a result to fetch."""

    def __init__(self, answers: list[Any], fetch: Any) -> None:
        super().__init__(answers)
        self.job = ScriptedJob(answers, submit=[{"jobId": "j1"}], fetch=fetch, clock=self.clock)

    def fetched_at(self) -> list[float]:
        """When each request for the result was made, in seconds from the beginning."""
        return [(seen.at - self.began) / SECOND for seen in self.job.requests if seen.kind == "fetch"]


def awaited(world: World, spec: JobSpec, **options: Any) -> Any:
    """What awaiting the job in a poller of its own gives."""

    async def main() -> Any:
        async with world.poller() as poller:
            return await poller.await_job("orders", spec, **options)

    return world.run(main)


def test_the_result_is_fetched_after_the_success() -> None:
    """Committed first, then fetched once, not counted as a poll; `result` reads the fetch's answer."""
    world = Fetches([RUNNING, DONE], [ROWS])
    ended = awaited(world, spec_of(fetch=RESULT))
    assert (ended.outcome, ended.output, ended.polls, ended.last.body) == ("succeeded", {"rows": 3}, 2, DONE)
    assert world.kinds()[-2:] == ["finished", "fetched"]
    assert world.job.requests[-1].url == "https://api.example.com/jobs/j1/result"
    assert awaited(world, spec_of(fetch=RESULT)) == ended
    assert world.job.fetches == 1


def test_without_a_result_path_the_output_is_the_body() -> None:
    """A body that is no JSON too: it is the text."""
    assert awaited(Fetches([DONE], [ROWS]), spec_of(fetch=RESULT, result=None)).output == ROWS
    assert (
        awaited(Fetches([DONE], [Answer(text="a,b\n1,2\n")]), spec_of(fetch=RESULT, result=None)).output == "a,b\n1,2\n"
    )


def test_a_result_that_lags_behind_is_asked_for_again() -> None:
    """404 and a server error mean "not yet"; the waits double, and a Retry-After is a lower bound."""
    late = Answer(503, headers={"Retry-After": "7"})
    world = Fetches([DONE], [404, late, ErrorKind.TIMEOUT, ROWS])
    assert awaited(world, spec_of(fetch=RESULT)).output == {"rows": 3}
    assert world.fetched_at() == [0, 1, 8, 12]


def test_a_result_that_cannot_be_had_is_no_failed_job() -> None:
    """The error says that the job succeeded; the next wait fetches again, and nothing is polled for it."""
    world = Fetches([DONE], [*[404] * TRIES, ROWS])
    with pytest.raises(
        ResultUnavailable, match="orders: succeeded, but its result is not available: HTTP 404"
    ) as caught:
        awaited(world, spec_of(fetch=RESULT))
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.key, error.outcome, error.job.output, error.last.body) == ("orders", Outcome.SUCCEEDED, None, DONE)
    assert world.fetched_at() == [0, 1, 3, 7, 15]
    assert world.kinds()[-2:] == ["finished", "fetch_failed"]
    assert awaited(world, spec_of(fetch=RESULT)).output == {"rows": 3}
    assert (world.job.polls, world.job.fetches) == (1, TRIES + 1)


def test_without_raising_the_output_is_none() -> None:
    """The outcome is told as it is."""
    ended = awaited(Fetches([DONE], 410), spec_of(fetch=RESULT), raises=False)
    assert (ended.outcome, ended.output) == ("succeeded", None)


@pytest.mark.parametrize("answer", [410, 403, 302, ErrorKind.TOO_LARGE], ids=str)
def test_what_will_not_change_ends_the_fetch_at_once(answer: Any) -> None:
    """A refusal is final, and a redirect is not followed."""
    world = Fetches([DONE], answer)
    with pytest.raises(ResultUnavailable):
        awaited(world, spec_of(fetch=RESULT))
    assert world.job.fetches == 1


def test_a_failed_job_is_not_fetched() -> None:
    """No request follows a terminal failure."""
    world = Fetches([FAILED], [ROWS])
    with pytest.raises(JobFailed):
        awaited(world, spec_of(fetch=RESULT))
    assert world.job.fetches == 0


def test_a_skipped_job_has_no_result_to_fetch() -> None:
    """Its output is read from the last poll."""
    world = Fetches([{"state": "NOOP", "result": 1}], [ROWS])
    spec = spec_of(fetch=RESULT, until=Match("body.state", skipped="NOOP"))
    assert (awaited(world, spec).output, world.job.fetches) == (1, 0)


def test_ten_waiters_fetch_once() -> None:
    """They share the wait, as they share the polls."""
    world = Fetches([DONE], [404, ROWS])

    async def main() -> list[Any]:
        async with world.poller() as poller:
            return await asyncio.gather(*(poller.await_job("orders", spec_of(fetch=RESULT)) for _ in range(10)))

    assert {ended.output["rows"] for ended in world.run(main)} == {3}
    assert world.job.fetches == 2


def test_patience_ends_a_wait_for_a_result_too() -> None:
    """The job stays over, the next wait goes on fetching; no patience asks once."""
    world = Fetches([DONE], [404, 404, ROWS])

    async def main() -> tuple[Any, Any]:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", spec_of(fetch=RESULT), wait_timeout=0)
            await world.after(60)
            between = await poller.get("orders")
            return between, await poller.await_job("orders")

    between, ended = world.run(main)
    assert (between.outcome, between.output, ended.output) == (Outcome.SUCCEEDED, None, {"rows": 3})


def test_the_result_that_another_process_fetched_is_taken() -> None:
    """Its output is written once; the slower one finds it there."""
    world = Fetches([DONE], [404, Answer(404, delay=20 * SECOND), ROWS, {"result": "second"}])

    async def main() -> list[Any]:
        async with world.poller() as one, world.poller() as other:
            return await asyncio.gather(*(p.await_job("orders", spec_of(fetch=RESULT)) for p in (one, other)))

    first, second = world.run(main)
    assert first == second
    assert world.kinds().count("fetched") == 1


def test_a_url_found_in_the_last_answer_keeps_to_its_origin() -> None:
    """`{poll…}` is the last poll's answer; elsewhere it leads only where `allowed_hosts` says so."""
    spec = polled(fetch=Request("GET", "{poll.headers.location}"), until=Status(succeeded=303), result="body.rows")
    near = Fetches([Answer(303, headers={"Location": "/result/1"})], [{"rows": 3}])
    assert (awaited(near, spec).output, near.job.requests[-1].url) == (3, "https://api.example.com/result/1")
    far = Fetches([Answer(303, headers={"Location": "https://files.example.com/1?sig=x"})], [{"rows": 3}])
    with pytest.raises(ResultUnavailable, match=r"leads to https://files\.example\.com") as caught:
        awaited(far, spec)
    assert "sig" not in str(caught.value)
    assert far.job.fetches == 0
    assert awaited(far, spec.model_copy(update={"allowed_hosts": ("files.example.com",)})).output == 3


def test_a_callable_can_fetch() -> None:
    """What it returns is the body; what it raises is tried again."""
    calls: list[str] = []

    def fetch(name: str) -> dict[str, Any]:
        calls.append(name)
        if len(calls) == 1:
            raise ConnectionError("away")
        return {"result": 7}

    world = World([DONE])
    assert awaited(world, polled(fetch=fetch, args={"name": "{key}"})).output == 7
    assert calls == ["orders", "orders"]


def test_a_result_that_cannot_be_read_says_so() -> None:
    """The job has succeeded; the output is None and the error says why."""
    world = Fetches([DONE], [{"result": "x"}])

    async def main() -> tuple[Any, Any]:
        async with world.poller() as poller:
            ended = await poller.await_job("orders", spec_of(fetch=RESULT, result="sum(body.result)"))
            return ended, await poller.get("orders")

    ended, job = world.run(main)
    assert ended.output is None
    assert job.error.startswith("result:")


def test_placeholders_that_nothing_fills_are_refused() -> None:
    """The answers to polls are known, the submit's only where there is one."""
    assert polled(fetch=Request("GET", "https://api.example.com/{poll.body.id}/{baseline.body.id}"))
    with pytest.raises(SpecError, match=r"fetch: \{submit…\} needs a submit"):
        polled(fetch=RESULT)
    with pytest.raises(SpecError, match="cannot be imported"):
        asyncio.run(_added(polled(fetch=lambda: 1)))


async def _added(spec: JobSpec) -> None:
    async with Poller("sqlite://") as poller:
        await poller.add("orders", spec)


SEEN = Observation(CallKind.FETCH, 0, 0)


@pytest.mark.parametrize(
    ("seen", "tries", "read"),
    [
        (replace(SEEN, status=200), 1, Fetched()),
        (replace(SEEN, body={}), 1, Fetched()),
        (replace(SEEN, status=429), 4, FetchAgain(8 * SECOND, "HTTP 429")),
        (replace(SEEN, status=404, body="gone"), 5, NoResult("HTTP 404: gone (5 tries)")),
        (replace(SEEN, error=CallError(ErrorKind.REFUSED, "no", sent=False)), 1, NoResult("refused: no")),
        (replace(SEEN, status=503, headers={"retry-after": "9999"}), 1, FetchAgain(3600 * SECOND, "HTTP 503")),
    ],
    ids=["2xx", "a callable's return", "429", "the last try", "refused here", "a long hint"],
)
def test_what_an_answer_means(seen: Observation, tries: int, read: Any) -> None:
    """The answer, the number of tries and the hint decide."""
    assert read_fetch(spec_of(fetch=RESULT), seen, tries) == read


def test_a_hint_above_the_bound_can_end_the_fetch() -> None:
    """By the same choice as for polls; and other statuses count as answers where the request accepts them."""
    spec = spec_of(fetch=RESULT, hints=Hints(maximum="5s", on_excess="fail"), limits=Limits(), strategy=Fixed(1))
    seen = replace(SEEN, status=503, headers={"retry-after": "60"})
    assert read_fetch(spec, seen, 1) == NoResult("HTTP 503 (asked to wait longer than hints.maximum)")
    accepting = spec_of(fetch=Request("GET", "https://api.example.com/r", accepted=[404]))
    assert read_fetch(accepting, replace(SEEN, status=404), 1) == Fetched()
    assert read_fetch(polled(fetch=_added), replace(SEEN, status=404), 1) == FetchAgain(SECOND, "HTTP 404")
