"""Jobs whose answers repeat, over real HTTP: with our own transport all is as with one that must see each body."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from tarry import Acceptors, Expression, Fixed, JobSpec, Limits, Match, Poller, Request, StoredEvent
from tarry.clock import SystemClock
from tarry.core.observation import Observation
from tarry.http import body
from tarry.http.transport import HttpTransport
from tarry.ports import Prepared
from tarry.store import MemoryStore
from tests.raw_server import Exchange, RawServer, response, serve

RUNNING, HELD, DONE = ({"state": state} for state in ("RUNNING", "HELD", "DONE"))
Script = list[tuple[Any, str]]
"""Bodies and status lines; the last one again and again."""


class Around:
    """Somebody's transport: it hands on what ours saw, and has looked at it."""

    def __init__(self) -> None:
        self.inner = HttpTransport(clock=SystemClock())
        self.bodies: list[Any] = []

    async def send(self, request: Prepared) -> Observation:
        seen = await self.inner.send(request)
        self.bodies.append(seen.body)
        return seen

    async def aclose(self) -> None:
        await self.inner.aclose()


def ok(*bodies: Any) -> Script:
    return [(body, "200 OK") for body in bodies]


def spec_of(home: RawServer, **changes: Any) -> JobSpec:
    fields: dict[str, Any] = {
        "poll": Request("GET", f"{home.origin}/jobs/{{key}}"),
        "until": Match("body.state", succeeded="DONE", failed="FAILED", pending="RUNNING", blocked="HELD"),
        "progress": "body.progress",
        "strategy": Fixed("1ms"),
        "limits": Limits(min_interval="1ms"),
    }
    return JobSpec(**fields | changes)


async def outcome(
    script: Script,
    changes: dict[str, Any],
    *,
    around: Around | None = None,
    during: Callable[[Poller, int], Any] | None = None,
    client: Any = None,
) -> dict[str, Any]:
    """All that is known of the job in the end, but for times and places."""
    left = list(script)

    async def answer(exchange: Exchange) -> None:
        said, status = left.pop(0) if len(left) > 1 else left[0]
        if during is not None:
            await during(poller, exchange.number)
        await exchange.write(response(json.dumps(said).encode(), status=status))

    async with serve(answer) as home:
        told: list[StoredEvent] = []
        async with Poller(MemoryStore(), on_event=told.append, transport=around, client=client) as poller:
            await poller.await_job("orders", spec_of(home, **changes), raises=False)
            job = await poller.get("orders")
        if around is not None:
            await around.aclose()
    return {
        **{
            name: getattr(job, name) for name in ("outcome", "reason", "status", "progress", "polls", "error", "output")
        },
        "last": job.last and (job.last.status, job.last.body, job.last.is_json),
        "verdicts": [tick.verdict for tick in job.timeline],
        "events": [(event.kind, {name: of for name, of in event.data.items() if name != "wait_us"}) for event in told],
    }


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of the bodies that were read."""
    read: list[str] = []
    inner = body._json  # there is no other place to see it

    def noted(text: str) -> Any:
        read.append(text)
        return inner(text)

    monkeypatch.setattr(body, "_json", noted)
    return read


@pytest.mark.parametrize("client", ["httpx", "httpx2", "aiohttp"])
def test_what_repeats_is_read_twice(client: str, reads: list[str]) -> None:
    """The first time, and to learn what it will mean; then as soon as it is another."""
    found = asyncio.run(outcome(ok(*[RUNNING] * 9, HELD, *[RUNNING] * 5, DONE), {}, client=client))
    assert (found["outcome"], found["polls"], found["output"]) == ("succeeded", 16, DONE)
    assert [json.loads(text)["state"] for text in reads] == ["RUNNING"] * 2 + ["HELD"] + ["RUNNING"] * 2 + ["DONE"]


def test_who_stands_around_our_transport_sees_each_body() -> None:
    """It may look at it, or put another in its place."""
    around = Around()
    asyncio.run(outcome(ok(*[RUNNING] * 5, DONE), {}, around=around))
    assert around.bodies == [*[RUNNING] * 5, DONE]


class Unwrapping(Around):
    """It hands on what is in an envelope, and leaves the rest of the answer as it was."""

    async def send(self, request: Prepared) -> Observation:
        seen = await super().send(request)
        return dataclasses.replace(seen, body=seen.body["data"])


def test_nothing_in_an_envelope_is_nothing() -> None:
    """And not the envelope: only our own transport leaves a body out."""
    until = Acceptors([("body == `null`", "pending"), ("body.state == 'DONE'", "succeeded"), ("body", "failed")])
    found = asyncio.run(outcome(ok(*[{"data": None}] * 4, {"data": DONE}), {"until": until}, around=Unwrapping()))
    assert (found["outcome"], found["polls"]) == ("succeeded", 5)


@pytest.mark.parametrize("state", ["RUNNING", "RUN\\NING", "RUNNÏNG"])
def test_what_can_never_be_left_out_is_judged_once(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An escape in a body may stand for anything, so that it is read each time; that costs what it did."""
    judged: list[object] = []
    inner = Match.judge
    monkeypatch.setattr(Match, "judge", lambda match, shown: judged.append(shown) or inner(match, shown))
    found = asyncio.run(outcome(ok(*[{"state": state}] * 9, DONE), {"until": Match("body.state", succeeded="DONE")}))
    assert found["polls"] == 10
    assert len(judged) == (4 if state == "RUNNING" else 10)


LONG = {"state": "RUNNING", "progress": 40, "rows": list(range(300))}


@pytest.mark.parametrize(
    ("script", "changes"),
    [
        (ok(*[RUNNING] * 4, *[HELD] * 4, *[RUNNING] * 4, DONE), {}),
        (ok(*[{"state": "HUH"}] * 4, RUNNING, *[{"state": "HUH"}] * 4, DONE), {}),
        (ok(*[LONG] * 4, LONG | {"progress": 50}, *[LONG] * 4), {"limits": Limits(min_interval="1ms", max_polls=9)}),
        (ok(*[LONG] * 6), {"limits": Limits(min_interval="1ms", max_polls=6), "keep": "{rows: body.rows}"}),
        (ok(*[LONG] * 3), {"limits": Limits(min_interval="1ms", max_polls=6), "until": Expression("body.rows[999]")}),
        ([*ok(*[RUNNING] * 4), *[(RUNNING, "202 Accepted")] * 4, *ok(RUNNING, DONE)], {}),
        ([*ok(*[RUNNING] * 4), (RUNNING, "503 Away"), *ok(*[RUNNING] * 4), (RUNNING, "410 Gone")], {}),
        (ok(*[RUNNING] * 4, None, None, None, "text", "text", "text", DONE), {}),
        (ok(*[{"state": "RUNNING", "by": "Zoë"}] * 4, DONE), {"confirm": 3}),
        (ok(*[RUNNING] * 9), {"until": Expression("polls > `6`")}),
        (ok(*[LONG] * 6, DONE), {"progress": "body.share || to_string(body.progress)"}),
        (ok(*[LONG] * 6, DONE), {"progress": "body.share || 'waiting'"}),
        (ok(*[RUNNING] * 9, DONE), {"progress": "polls"}),
    ],
)
def test_nothing_else_tells_that_it_was_not_read(script: Script, changes: dict[str, Any]) -> None:
    """Outcome, last answer, events, verdicts: all as where each body is read."""
    spared = asyncio.run(outcome(script, changes))
    assert spared == asyncio.run(outcome(script, changes, around=Around()))


def test_what_a_command_comes_between_is_judged_anew(reads: list[str]) -> None:
    """On what the command made of the job; the answer that was not read is read for that."""

    async def updated(poller: Poller, number: int) -> None:
        if number == 6:
            await poller.update("orders", limits=Limits(min_interval="1ms", max_polls=6))

    found = asyncio.run(outcome(ok(*[RUNNING] * 20, DONE), {}, during=updated))
    assert (found["outcome"], found["polls"]) == ("exhausted", 6)
    assert found["last"] == (200, RUNNING, True)
    assert len(reads) == 2
