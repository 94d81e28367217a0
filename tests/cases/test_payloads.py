"""Bodies as services really send them."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from tarry import Acceptors, Fixed, Limits, Outcome
from tarry.core.policies import Errors
from tarry.testing import Answer
from tests.worlds import DONE, RUNNING, MakeScene, Scene, spec_of


def ends(world: Scene, answers: list[Callable[[], httpx.Response]], spec: Any) -> Any:
    """The end of a job whose answers are bytes, read by the real transport."""
    left = list(answers)

    async def main() -> Any:
        async with (
            httpx.AsyncClient(transport=httpx.MockTransport(lambda _: left.pop(0)())) as client,
            world.poller(transport=None, client=client) as poller,
        ):
            ended = await poller.await_job("orders", spec, raises=False)
            return ended, await poller.get("orders")

    return world.run(main)


def body(content: bytes, kind: str = "application/json") -> Callable[[], httpx.Response]:
    """A 200 with these bytes."""
    return lambda: httpx.Response(200, content=content, headers={"content-type": kind})


def test_pc_063_bytes_that_are_no_json_are_failed_polls(scene: MakeScene) -> None:
    """A byte-order mark is fine; NaN and half an object are failed polls, and no exception leaks.

    JSON in another encoding is read with a mark for each character that cannot be: its status can still be told.
    """
    world = scene()
    answers = [
        body(b"\xef\xbb\xbf" + json.dumps(RUNNING).encode()),
        body('{"state": "RUNNING", "wo": "Köln"}'.encode("latin-1")),
        body(b'{"state": "DONE", "progress": NaN}'),
        body(b'{"state": "DO'),
        body(json.dumps(DONE).encode()),
    ]
    ended, job = ends(world, answers, spec_of(errors=Errors(max_consecutive=5, min_outage=0)))
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 5)
    assert [tick.verdict for tick in job.timeline] == ["pending", "pending", "error", "error", "succeeded"]
    assert "bad_body" in world.event("poll_failed")[0]["error"]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("", Outcome.SUCCEEDED),
        (None, Outcome.SUCCEEDED),
        ({}, Outcome.SUCCEEDED),
        ([], Outcome.SUCCEEDED),
        ("boom", Outcome.FAILED),
        ({"code": 7}, Outcome.FAILED),
    ],
    ids=["empty text", "null", "empty object", "empty list", "text", "object"],
)
def test_pc_065_an_empty_error_is_no_error(scene: MakeScene, error: Any, outcome: Outcome) -> None:
    """A pair of `Acceptors` asks for content: the name alone, with nothing in it, is no failure."""
    until = Acceptors([("body.error", "failed"), ("body.status == 'COMPLETED'", "succeeded")])
    assert scene({"status": "COMPLETED", "error": error}).ends(spec_of(until=until)).outcome is outcome


@pytest.mark.parametrize(
    ("path", "outcome"),
    [("body.error != `null`", Outcome.FAILED), ("body.error == 'boom'", Outcome.SUCCEEDED)],
    ids=["present", "equal"],
)
def test_pc_065_presence_and_equality_are_asked_for_by_name(scene: MakeScene, path: str, outcome: Outcome) -> None:
    """That the name is there, and that it has a value, are other questions than whether there is content."""
    until = Acceptors([(path, "failed"), ("body.status == 'COMPLETED'", "succeeded")])
    assert scene({"status": "COMPLETED", "error": ""}).ends(spec_of(until=until)).outcome is outcome


def test_pc_067_the_store_does_not_grow_with_the_polls(scene: MakeScene) -> None:
    """One row a job, bounded events and timeline, a body that is cut: after many polls as after a few."""
    world = scene(*[Answer(200, {"state": "RUNNING", "n": n, "padding": "x" * 200_000}) for n in range(150)], DONE)

    def sizes() -> list[int]:
        counts = "SELECT (SELECT count(*) FROM tarry_job), (SELECT count(*) FROM tarry_event)"
        with world.store._database.read() as connection:
            row = connection.execute(text("SELECT * FROM tarry_job")).one()
            return [*connection.execute(text(counts)).one(), sum(len(str(value)) for value in row)]

    async def main() -> tuple[list[int], list[int]]:
        async with world.poller() as poller:
            spec = spec_of(strategy=Fixed("2s"), limits=Limits(min_interval="0.5s"))
            waiting = asyncio.create_task(poller.await_job("orders", spec))
            await world.at(140)
            early = sizes()
            await world.at(290)
            late = sizes()
            await waiting
            return early, late

    early, late = world.run(main)
    assert early[:2] == late[:2]
    assert late[2] < early[2] * 1.1
    assert late[2] < 100_000


def test_pc_063_a_body_that_unpacks_to_more_than_the_bound_is_a_failed_poll(scene: MakeScene) -> None:
    """A small answer that unpacks to many megabytes is cut while it unpacks."""
    bomb = gzip.compress(b" " * (8 << 20))

    def answer() -> httpx.Response:
        return httpx.Response(200, stream=httpx.ByteStream(bomb), headers={"content-encoding": "gzip"})

    ended, job = ends(scene(), [answer, body(json.dumps(DONE).encode())], spec_of())
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 2)
    assert job.timeline[0].verdict == "error"
