"""Jobs that are found, moved and compared on the way, through the front door and the store."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from sqlalchemy import text

from tarry import Acceptors, Fixed, Limits, Match, Outcome, Poller, Request, SubmitUnknown, WaitTimeout
from tarry.store import MemoryStore
from tarry.testing import Answer, FakeClock, ScriptedJob
from tarry.words import ErrorKind
from tests.pollers import QUEUED, RUNNING, SUCCEEDED, World, polled, spec_of

API = "https://api.example.com"


def world(answers: list[Any], **scripts: Any) -> World:
    """A world whose service answers so."""
    made = World(answers)
    made.job = ScriptedJob(answers, clock=made.clock, **{"submit": [{"jobId": "j1"}], **scripts})
    return made


def urls(made: World) -> list[str]:
    """What was called, in order."""
    return [f"{seen.kind} {seen.url.removeprefix(API)}" for seen in made.job.requests]


def awaited(made: World, spec: Any, **options: Any) -> Any:
    """The job's result, and its snapshot."""

    async def main() -> Any:
        async with made.poller(**options) as poller:
            ended = await poller.await_job("orders", spec, raises=False)
            return ended, await poller.get("orders")

    return made.run(main)


QUEUE_ITEM = Acceptors(
    [
        ("body.executable.url", "redirect"),
        ("body.cancelled", "cancelled"),
        ("body.result == 'SUCCESS'", "succeeded"),
        ("body.result", "failed"),
        ("`true`", "pending"),
    ]
)


def jenkins() -> Any:
    """A queue item first, then the build that it became."""
    return spec_of(
        submit=Request("POST", f"{API}/job/export/build", headers={"Authorization": "{secret.TOKEN}"}),
        poll=Request("GET", "{submit.headers.location}", headers={"Authorization": "{secret.TOKEN}"}),
        redirect="{poll.body.executable.url}",
        until=QUEUE_ITEM,
        result="body.artifacts",
        progress="body.progress",
        reason=None,
    )


def test_a_queue_item_becomes_a_build() -> None:
    """Two stages, one job: the build is polled as soon as it is known, with the same credentials."""
    made = world(
        [{"why": "waiting for an executor"}, {"executable": {"url": f"{API}/job/export/7/?t=s"}}, {"building": True},
         {"result": "SUCCESS", "artifacts": ["a.csv"]}],
        submit=Answer(201, headers={"Location": "/queue/item/3"}),
    )  # fmt: skip
    ended, job = awaited(made, jenkins(), secrets={"TOKEN": "TOPSECRET"})
    assert urls(made) == [
        "submit /job/export/build",
        "poll /queue/item/3",
        "poll /queue/item/3",
        "poll /job/export/7/?t=s",
        "poll /job/export/7/?t=s",
    ]
    assert made.seconds() == [0, 2, 3, 5]
    assert ended.output == ["a.csv"]
    assert {seen.headers["authorization"] for seen in made.job.requests} == {"TOPSECRET"}
    assert job.status_url == f"{API}/job/export/7/?***"
    assert [tick.verdict for tick in job.timeline] == ["pending", "redirect", "pending", "succeeded"]
    (event,) = [event for event in made.told if event.kind == "status_url_moved"]
    assert event.data == {"to": f"{API}/job/export/7/?***"}


def test_the_status_url_survives_the_process() -> None:
    """Each waits until it has looked; the next one goes on where the last one was led."""
    answers = [Answer(307, headers={"Location": "/moved/1?sig=s"}), RUNNING, SUCCEEDED]
    made = world(answers)

    async def main() -> None:
        for _ in range(3):
            async with made.poller() as poller:
                try:
                    await poller.await_job("orders", polled(strategy=Fixed("40s")), wait_timeout="20s")
                except WaitTimeout:
                    await made.after(25)

    made.run(main)
    assert urls(made) == ["poll /jobs/orders", "poll /moved/1?sig=s", "poll /moved/1?sig=s"]


def test_a_cursor_moves_without_an_event() -> None:
    """Only what can be shown is told: the query is hidden, so nothing changed."""
    made = world(
        [{**QUEUED, "next": "/jobs/j1?cursor=2"}, {**QUEUED, "next": "/jobs/j1?cursor=3"}, SUCCEEDED],
        submit=[{"next": "/jobs/j1?cursor=1"}],
    )
    awaited(made, spec_of(poll=Request("GET", "{poll.body.next}")))
    assert urls(made)[1:] == [f"poll /jobs/j1?cursor={n}" for n in (1, 2, 3)]
    assert made.kinds().count("status_url_moved") == 1


def test_the_last_answer_fills_in_the_next_poll() -> None:
    """A cursor beside the URL; before the first poll it is the submit's."""
    made = world([{**QUEUED, "cursor": "b"}, 503, SUCCEEDED], submit=[{"cursor": "a"}])
    poll = Request("GET", f"{API}/changes", params={"cursor": "{poll.body.cursor}"})
    awaited(made, spec_of(poll=poll))
    assert urls(made)[1:] == [f"poll /changes?cursor={cursor}" for cursor in ("a", "b", "b")]


def test_another_poll_url_in_the_spec_begins_anew() -> None:
    """What the caller writes counts more than where the old one led; other changes keep it."""
    made = world([Answer(307, headers={"Location": "/moved/1"}), RUNNING])

    async def main() -> None:
        async with made.poller() as poller:
            for spec in (
                spec_of(),
                spec_of(until=Match("body.state", succeeded="DONE")),
                spec_of(poll=Request("GET", f"{API}/v2/{{submit.body.jobId}}")),
            ):
                with pytest.raises(WaitTimeout):
                    await poller.await_job("orders", spec, wait_timeout="3s")
            assert (await poller.get("orders")).status_url is None

    made.run(main)
    assert list(dict.fromkeys(urls(made)))[1:] == ["poll /jobs/j1", "poll /moved/1", "poll /v2/j1"]


def test_a_damaged_status_url_is_refused_and_left_alone() -> None:
    """Nothing is sent for a job that cannot be carried on."""
    made = world([Answer(307, headers={"Location": "/moved/1"}), RUNNING])
    store = MemoryStore()

    async def main() -> None:
        async with made.poller(store=store) as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", polled(), wait_timeout="3s")
        with store._database.write() as connection:
            connection.execute(text("UPDATE tarry_job SET status_url = '[1,2,3]'"))
        async with made.poller(store=store) as poller:
            with pytest.raises(Exception, match="status_url: damaged"):
                await poller.await_job("orders", polled())

    made.run(main)


COUNTED = Acceptors([("body.done > baseline.body.done", "succeeded"), ("`true`", "pending")])


def test_the_baseline_is_taken_and_stored_before_the_submit() -> None:
    """In this order, and once, whatever process goes on."""
    made = world([{"done": 3}, {"done": 4}], baseline=[503, {"done": 3}])
    spec = spec_of(baseline=Request("GET", f"{API}/connection"), until=COUNTED, result=None, strategy=Fixed("40s"))

    async def main() -> Any:
        async with made.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", spec, wait_timeout="20s")
        async with made.poller() as poller:
            return await poller.await_job("orders")

    ended = made.run(main)
    assert ended.outcome is Outcome.SUCCEEDED
    assert urls(made) == [
        "baseline /connection",
        "baseline /connection",
        "submit /jobs",
        "poll /jobs/j1",
        "poll /jobs/j1",
    ]
    assert made.kinds()[:5] == ["created", "baseline_failed", "baseline_taken", "submit_sent", "submitted"]


def test_without_a_baseline_the_first_answer_is_stored_as_one() -> None:
    """A process that comes later compares with the same."""
    made = world([{"done": 3}, {"done": 3}, {"done": 4}])
    spec = polled(until=COUNTED, result=None, strategy=Fixed("40s"))

    async def main() -> Any:
        async with made.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", spec, wait_timeout="20s")
        async with made.poller() as poller:
            return await poller.await_job("orders")

    assert made.run(main).polls == 3


def test_a_submit_may_end_the_job() -> None:
    """Without a poll, and with an output."""
    made = world([QUEUED], submit=SUCCEEDED)
    ended, job = awaited(made, spec_of(submitted=Match("body.state", succeeded="SUCCEEDED")))
    assert (ended.outcome, ended.output, ended.polls) == (Outcome.SUCCEEDED, {"rows": 4211}, 0)
    assert ended.last.body == SUCCEEDED
    assert urls(made) == ["submit /jobs"]
    assert job.status == "SUCCEEDED"


def test_a_callable_that_judges_the_submits_answer_runs_aside() -> None:
    """And one that hangs or raises does not lose the answer."""

    def hangs(answer: Any) -> Any:
        raise StopIteration

    made = world([SUCCEEDED])
    ended, _ = awaited(made, spec_of(submitted=hangs))
    assert (ended.outcome, made.job.submits, made.job.polls) == (Outcome.SUCCEEDED, 1, 1)


UNSAFE = Request("POST", f"{API}/jobs")
PROBE = Request("GET", f"{API}/jobs/by-name/{{key}}")


def test_a_probe_finds_the_job_of_a_lost_submit() -> None:
    """Its answer stands in for the submit's; nothing is submitted twice."""
    made = world([SUCCEEDED], submit=ErrorKind.TIMEOUT, probe=[404, {"jobId": "j9"}])
    ended, _ = awaited(made, spec_of(submit=UNSAFE, probe=PROBE))
    assert ended.outcome is Outcome.SUCCEEDED
    assert urls(made) == ["submit /jobs", *["probe /jobs/by-name/orders"] * 2, "poll /jobs/j9"]
    kinds = ["created", "submit_sent", "submit_failed", "probing", "probe_failed", "submitted"]
    assert made.kinds()[:6] == kinds
    assert made.told[5].data == {"by": "probe"}


def test_a_process_that_died_while_it_submitted_is_probed_for() -> None:
    """PC-048 b: the next one finds the intent, asks, and polls what it is told of."""
    made = world([SUCCEEDED], submit=Answer(202, {"jobId": "j9"}, delay=10_000_000), probe={"jobId": "j9"})
    spec = spec_of(submit=UNSAFE, probe=PROBE)

    async def main() -> Any:
        async with made.poller() as poller:  # which is closed while the call is in flight, and cut
            waiting = asyncio.create_task(poller.await_job("orders", spec))
            await made.after(1)
        await asyncio.gather(waiting, return_exceptions=True)
        async with made.poller() as poller:
            return await poller.await_job("orders", spec)

    assert made.run(main).outcome is Outcome.SUCCEEDED
    assert urls(made) == ["submit /jobs", "probe /jobs/by-name/orders", "poll /jobs/j9"]


def test_a_job_that_no_probe_finds_waits_for_a_person() -> None:
    """The message says what was tried."""
    made = world([SUCCEEDED], submit=500, probe=404)

    async def main() -> Any:
        async with made.poller() as poller:
            with pytest.raises(SubmitUnknown, match="the probe finds no job"):
                await poller.await_job("orders", spec_of(submit=UNSAFE, probe=PROBE))

    made.run(main)
    assert made.job.submits == 1
    assert made.job.polls == 0


# Credentials.


def test_a_denied_poll_asks_for_fresh_secrets_once() -> None:
    """PC-069: a provider that takes `refresh` is told; the poll counts, and comes as soon as the floor allows."""
    asked: list[bool] = []

    def secrets(name: str, *, refresh: bool = False) -> str:
        asked.append(refresh)
        return f"{name}-{sum(asked)}"

    made = world([RUNNING, 401, RUNNING, SUCCEEDED])
    spec = polled(poll=Request("GET", f"{API}/jobs/1", headers={"Authorization": "{secret.TOKEN}"}))
    ended, _ = awaited(made, spec, secrets=secrets)
    assert asked == [False, False, True, False]
    assert made.seconds() == [0, 2, 3, 5]
    assert ended.polls == 4
    sent = [seen.headers["authorization"] for seen in made.job.requests]
    assert sent == ["TOKEN-0", "TOKEN-0", "TOKEN-1", "TOKEN-1"]


def test_a_refresh_that_raises_is_a_failed_poll() -> None:
    """PC-069, a variant: the job lives, and the next poll refreshes again."""
    asked: list[bool] = []

    def secrets(name: str, refresh: bool = False) -> str:  # noqa: FBT002  # as a caller may write it
        asked.append(refresh)
        if refresh and asked.count(True) < 3:
            raise ConnectionError(name)
        return "TOPSECRET"

    made = world([401, SUCCEEDED])
    spec = polled(poll=Request("GET", f"{API}/jobs/1", headers={"Authorization": "{secret.TOKEN}"}))
    ended, _ = awaited(made, spec, secrets=secrets)
    assert asked == [False, True, True, True]
    assert ended.outcome is Outcome.SUCCEEDED


def test_a_provider_without_refresh_is_asked_anew_anyway() -> None:
    """As at each call."""
    asked: list[str] = []

    def secrets(name: str) -> str:
        asked.append(name)
        return "TOPSECRET"

    made = world([401, SUCCEEDED])
    spec = polled(poll=Request("GET", f"{API}/jobs/1", headers={"Authorization": "{secret.TOKEN}"}))
    awaited(made, spec, secrets=secrets)
    assert asked == ["TOKEN", "TOKEN"]


def test_a_condition_that_hangs_on_the_submits_answer_does_not_lose_it() -> None:
    """The answer came: the job is polled."""
    release = threading.Event()

    def hangs(answer: Any) -> bool:
        release.wait(60)
        return True

    async def main() -> Any:
        service = ScriptedJob([SUCCEEDED], submit={"jobId": "j1"}, clock=FakeClock())
        async with Poller("sqlite://", transport=service) as poller:
            limits = Limits(poll_timeout="500ms")
            spec = spec_of(submit=UNSAFE, submitted=hangs, limits=limits)
            return await poller.await_job("orders", spec, raises=False)

    ended = asyncio.run(main())
    release.set()
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 1)


def test_a_reset_goes_on_where_the_job_is_polled_now() -> None:
    """The same remote job; one that is submitted anew begins where the spec says."""
    made = world([Answer(307, headers={"Location": "/moved/1"}), {"state": "FAILED"}])

    async def main() -> None:
        async with made.poller() as poller:
            await poller.await_job("orders", spec_of(), raises=False)
            await poller.reset("orders")
            await poller.await_job("orders", raises=False)
            await poller.reset("orders", resubmit=True)
            await poller.await_job("orders", raises=False)

    made.run(main)
    assert urls(made) == [
        "submit /jobs", "poll /jobs/j1", "poll /moved/1", "poll /moved/1", "submit /jobs", "poll /jobs/j1"
    ]  # fmt: skip
