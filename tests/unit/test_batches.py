"""Many jobs in one status call, through the front door."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tarry import (
    Batch,
    Errors,
    Fixed,
    JobExhausted,
    JobLost,
    JobSpec,
    Limits,
    Outcome,
    Politeness,
    Poller,
    Request,
    WaitTimeout,
)
from tarry.ports import Prepared
from tarry.testing import Answer
from tarry.words import SECOND, ErrorKind
from tests.pollers import World, polled

REQUEST = Request("GET", "https://api.example.com/jobs", params={"ids": "{batch.ids}"})


def ids_of(request: Any) -> list[str]:
    """What a request asks for."""
    return parse_qs(urlsplit(request.url).query)["ids"][0].split(",")


def batched(**changes: Any) -> JobSpec:
    """A job that is polled in company every 2 s."""
    batch = {"items": "body.jobs", "id": "{key}", **changes.pop("batch", {})}
    return polled(poll=Batch(REQUEST, **batch), result="body.rows", **{"limits": Limits(max_polls=20), **changes})


class Service:
    """Answers for all ids it is asked for: each job is over after as many polls as `after` says."""

    def __init__(self, **after: int) -> None:
        self.after = after
        self.polls: dict[str, int] = {}

    def __call__(self, request: Prepared) -> dict[str, Any]:
        items = []
        for name in ids_of(request):
            if name in self.after:
                self.polls[name] = self.polls.get(name, 0) + 1
                state = "SUCCEEDED" if self.polls[name] >= self.after[name] else "RUNNING"
                items.append({"id": name, "state": state, "rows": len(name)})
        return {"jobs": items}


async def awaited(world: World, specs: dict[str, JobSpec], **options: Any) -> dict[str, Any]:
    """All of them at once, errors beside results."""
    async with world.poller(**options) as poller:
        return await awaited_by(poller, specs)


async def awaited_by(poller: Poller, specs: dict[str, JobSpec]) -> dict[str, Any]:
    """The same with this poller."""
    waits = [poller.await_job(key, spec) for key, spec in specs.items()]
    return dict(zip(specs, await asyncio.gather(*waits, return_exceptions=True), strict=True))


def test_a_command_that_comes_during_a_shared_call_leaves_each_its_item() -> None:
    """What a job's item says is judged again, not what the answer says of all; one that has none is not found."""
    world = World([lambda _: Answer(delay=5 * SECOND, body={"jobs": [{"id": "a", "state": "SUCCEEDED", "rows": 1}]})])

    async def main() -> list[Any]:
        async with world.poller() as poller, world.poller() as other:
            specs = {
                "a": batched(limits=Limits(max_polls=1)),
                "missing": batched(batch={"missing": "not_found"}, errors=Errors(max_not_found=1)),
            }
            waiting = asyncio.create_task(awaited_by(poller, specs))
            await world.after(3)
            for key in specs:
                await other.update(key, strategy=Fixed("9s"))
            return [*(await waiting).values()]

    found, lost = world.run(main)
    assert (found.outcome, found.output, found.last.body) == (
        Outcome.SUCCEEDED,
        1,
        {"id": "a", "state": "SUCCEEDED", "rows": 1},
    )
    assert isinstance(lost, JobLost)
    assert lost.last is None or lost.last.body is None


def test_jobs_that_are_due_together_share_a_call() -> None:
    """One request for all, each judged by its own item; one that is over is not asked for again."""
    world = World([Service(a=1, bb=2, ccc=2)])
    ended = world.run(lambda: awaited(world, dict.fromkeys(["a", "bb", "ccc"], batched())))
    assert [sorted(ids_of(seen)) for seen in world.job.requests] == [["a", "bb", "ccc"], ["bb", "ccc"]]
    assert {key: (result.outcome, result.output, result.polls) for key, result in ended.items()} == {
        "a": (Outcome.SUCCEEDED, 1, 1),
        "bb": (Outcome.SUCCEEDED, 2, 2),
        "ccc": (Outcome.SUCCEEDED, 3, 2),
    }


def test_a_chunk_is_not_passed() -> None:
    """More jobs than one call may ask for make more calls; a full one does not wait for its window."""
    names = [f"j{number}" for number in range(7)]
    world = World([Service(**dict.fromkeys(names, 1))])
    specs = dict.fromkeys(names, batched(batch={"chunk": 3, "window": "2s"}))
    ended = world.run(lambda: awaited(world, specs))
    assert {result.outcome for result in ended.values()} == {Outcome.SUCCEEDED}
    assert [len(ids_of(seen)) for seen in world.job.requests] == [3, 3, 1]
    assert world.seconds() == [0, 0, 2]


def test_a_lone_job_is_polled_alone_after_its_window() -> None:
    """And the floor is kept between the moments when calls leave, not when they were due."""
    world = World([Service(a=4)])
    spec = batched(batch={"window": "500ms"}, strategy=Fixed("1ms"), limits=Limits(min_interval="1s"))
    world.run(lambda: awaited(world, {"a": spec}))
    starts = world.seconds()
    assert starts[0] == 0.5
    assert all(later - sooner >= 1 for sooner, later in pairwise(starts))


def test_each_member_counts_a_poll() -> None:
    """`max_polls` holds for each job by itself."""
    world = World([Service(a=9, b=9)])
    specs = {"a": batched(limits=Limits(max_polls=2)), "b": batched(limits=Limits(max_polls=3))}
    ended = world.run(lambda: awaited(world, specs))
    assert all(isinstance(error, JobExhausted) for error in ended.values())
    assert [sorted(ids_of(seen)) for seen in world.job.requests] == [["a", "b"], ["a", "b"], ["b"]]


def test_two_jobs_may_have_one_id() -> None:
    """It is asked for once, and both see the item."""
    world = World([Service(same=1)])
    spec = batched(batch={"id": "{input.id}"}, input={"id": "same"})
    ended = world.run(lambda: awaited(world, {"a": spec, "b": spec}))
    assert {result.outcome for result in ended.values()} == {Outcome.SUCCEEDED}
    assert [ids_of(seen) for seen in world.job.requests] == [["same"]]


def test_a_call_that_fails_is_a_failed_poll_of_each() -> None:
    """Both go on with the next, and what the service asked for holds for both."""
    world = World([Answer(503, headers={"Retry-After": "9"}), ErrorKind.TIMEOUT, Service(a=1, b=1)])
    ended = world.run(lambda: awaited(world, dict.fromkeys("ab", batched())))
    assert {result.outcome for result in ended.values()} == {Outcome.SUCCEEDED}
    assert [result.polls for result in ended.values()] == [3, 3]
    assert world.seconds()[1] >= 9


def test_one_members_trouble_is_its_own() -> None:
    """An id that cannot be asked for, an item that is garbage: the other succeeds at its first poll."""
    world = World([Service(a=1)])
    odd = batched(batch={"id": "{input.id}"}, input={"id": "x,y"}, limits=Limits(max_polls=2))
    lost = batched(errors=Errors(not_found_grace=0))
    ended = world.run(lambda: awaited(world, {"a": batched(), "odd": odd, "gone": lost}))
    assert (ended["a"].outcome, ended["a"].polls) == (Outcome.SUCCEEDED, 1)
    assert isinstance(ended["odd"], JobExhausted)
    assert "has a comma" in str(ended["odd"])
    assert isinstance(ended["gone"], JobLost)
    assert all("x" not in ids_of(seen) for seen in world.job.requests)


def test_a_member_that_leaves_takes_nothing_from_the_others() -> None:
    """Its own time is over, or its caller has gone: the call goes on for who is left, and ends with the last."""
    world = World([Answer(body={"jobs": [{"id": "b", "state": "SUCCEEDED"}]}, delay=10_000_000)])
    specs = {
        "a": batched(limits=Limits(max_polls=1, poll_timeout="4s")),
        "b": batched(limits=Limits(poll_timeout="30s")),
    }
    ended = world.run(lambda: awaited(world, specs))
    assert isinstance(ended["a"], JobExhausted)
    assert "took too long" in str(ended["a"])
    assert (ended["b"].outcome, ended["b"].polls) == (Outcome.SUCCEEDED, 1)
    assert len(world.job.requests) == 1


def test_nobody_left_ends_the_call() -> None:
    """A poller that closes leaves no call behind, in its window or under way."""
    world = World([Answer(delay=60_000_000)])

    async def main() -> None:
        for patience in (0.1, 1):
            async with world.poller() as poller:
                with pytest.raises(WaitTimeout):
                    await poller.await_job("a", batched(), wait_timeout=patience)
        names = {each.get_name() for each in asyncio.all_tasks()}
        assert "tarry batch" not in names

    world.run(main)


def test_a_closing_poll_does_not_wait_past_its_time() -> None:
    """A window takes at most a fourth of a member's time."""
    world = World([Service(a=9)])
    spec = batched(
        batch={"window": "2s"}, limits=Limits(min_interval="10ms", total_duration="10s"), strategy=Fixed("60s")
    )
    ended = world.run(lambda: awaited(world, {"a": spec}))
    assert ended["a"].outcome is Outcome.TIMED_OUT
    assert world.seconds()[-1] < 10


def test_a_broken_transport_reaches_each_member() -> None:
    """What a test's own script raises comes through, and nobody hangs."""

    def broken(_: Prepared) -> Answer:
        raise AssertionError("of the test")

    world = World([broken])
    ended = world.run(lambda: awaited(world, dict.fromkeys("ab", batched())))
    assert [str(error) for error in ended.values()] == ["of the test", "of the test"]


def test_ids_go_into_a_json_body() -> None:
    """As a list, with a secret in a header that is resolved for the call as a whole."""
    request = Request(
        "POST",
        "https://api.example.com/query",
        headers={"Authorization": "Bearer {secret.TOKEN}"},
        json={"ids": "{batch.ids}"},
    )
    world = World([{"a": {"state": "SUCCEEDED"}, "b": {"state": "SUCCEEDED"}}])
    spec = polled(poll=Batch(request, items="body"), result="body.state")
    ended = world.run(lambda: awaited(world, dict.fromkeys("ab", spec), secrets={"TOKEN": "s3cr3t"}))
    assert {result.output for result in ended.values()} == {"SUCCEEDED"}
    (seen,) = world.job.requests
    assert (json.loads(seen.content or b""), seen.headers["authorization"]) == ({"ids": ["a", "b"]}, "Bearer s3cr3t")
    missing = world.run(
        lambda: awaited(world, {"c": polled(poll=Batch(request, items="body"), limits=Limits(max_polls=1))})
    )
    assert "TOKEN" in str(missing["c"])


def test_a_denied_member_has_the_credentials_of_the_call_fetched_afresh() -> None:
    """Once, also when others join it that were not denied; what only checks the request asks for none."""
    asked: list[bool] = []

    def secret(name: str, *, refresh: bool = False) -> str:
        asked.append(refresh)
        return f"{name}-{sum(asked)}"

    request = Request("GET", REQUEST.url, params=REQUEST.params, headers={"Authorization": "{secret.TOKEN}"})
    world = World([401, Service(a=1, b=1)])
    ended = world.run(
        lambda: awaited(world, dict.fromkeys("ab", polled(poll=Batch(request, items="body.jobs"))), secrets=secret)
    )
    assert [result.polls for result in ended.values()] == [2, 2]
    assert [seen.headers["authorization"] for seen in world.job.requests] == ["TOKEN-0", "TOKEN-1"]
    assert asked == [False] * 5 + [True]


def test_a_secret_that_is_gone_meanwhile_is_a_poll_that_was_not_sent() -> None:
    """It was there when the members joined, and is not when the call is made."""
    asked: list[str] = []

    def secret(name: str) -> str:
        asked.append(name)
        if len(asked) > 2:
            raise LookupError(name)
        return "s3cr3t"

    request = Request("GET", REQUEST.url, params=REQUEST.params, headers={"Authorization": "Bearer {secret.TOKEN}"})
    world = World([AssertionError("nothing is sent")])
    spec = polled(poll=Batch(request, items="body"), limits=Limits(max_polls=1))
    ended = world.run(lambda: awaited(world, dict.fromkeys("ab", spec), secrets=secret))
    assert all("TOKEN" in str(error) for error in ended.values())
    assert world.job.requests == []


def test_a_call_takes_one_turn_at_its_host() -> None:
    """However many share it: politeness bounds calls, not jobs; who comes while it waits in line joins it."""
    names = [f"j{number}" for number in range(40)]
    world = World([Service(**dict.fromkeys(names, 2))])
    polite = Politeness(concurrent=1, per_second=0.1)
    ended = world.run(lambda: awaited(world, dict.fromkeys(names, batched()), politeness=polite))
    assert {result.outcome for result in ended.values()} == {Outcome.SUCCEEDED}
    assert [len(ids_of(seen)) for seen in world.job.requests] == [40, 40]
    assert world.seconds()[1] - world.seconds()[0] >= 10


def test_a_turn_that_does_not_come_is_congestion_here() -> None:
    """It spends no error budget; a deadline that is near goes before politeness."""
    world = World([Answer(503, headers={"Retry-After": "50"}), Service(a=1, b=1)])
    told = polled(limits=Limits(max_polls=1), poll=Request("GET", "https://api.example.com/jobs/told"))
    waiting = batched(limits=Limits(max_polls=1, poll_timeout="5s"))
    hurried = batched(batch={"chunk": 7}, limits=Limits(total_duration="20s"))

    async def main() -> tuple[Any, ...]:
        async with world.poller() as poller:
            first = poller.await_job("told", told)
            with pytest.raises(JobExhausted):
                await first
            waits = [poller.await_job(key, spec) for key, spec in (("a", waiting), ("b", hurried))]
            return tuple(await asyncio.gather(*waits, return_exceptions=True))

    late, done = world.run(main)
    assert isinstance(late, JobExhausted)
    assert "no turn" in str(late)
    assert done.outcome is Outcome.SUCCEEDED
    assert 4 < world.seconds()[1] < 20


def test_a_worker_polls_in_batches_too() -> None:
    """Jobs that nobody awaits share calls as well, round by round, and in one step of one job alone."""
    names = [f"j{number}" for number in range(5)]
    world = World([Service(**dict.fromkeys(names, 3))])

    async def main() -> list[Any]:
        async with world.poller() as poller:
            for name in names:
                await poller.add(name, batched())
            await poller.run_once()
            await world.after(2)
            await poller.tick("j0")
            await poller.run(until_idle=True)
            return await poller.jobs()

    jobs = world.run(main)
    assert {(job.outcome, job.polls) for job in jobs} == {(Outcome.SUCCEEDED, 3)}
    asked = [len(ids_of(seen)) for seen in world.job.requests]
    assert (asked[0], asked[1], sum(asked)) == (5, 1, 15)
    assert len(asked) <= 5
