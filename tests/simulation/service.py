"""The remote service, and the wire to it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tarry.core.observation import CallError, Observation
from tarry.ports import Prepared
from tarry.words import MILLISECOND, SECOND, CallKind, ErrorKind, Instant, Json, Micros

if TYPE_CHECKING:
    from tests.simulation.processes import Process
    from tests.simulation.world import World

CONNECT_MAX: Micros = 20 * MILLISECOND
"""The longest way from a process to the wire, unless the process is frozen on it."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What will become of a remote job once it is there: how long it takes, and how it ends (None: never)."""

    takes: Micros
    end: str | None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the service."""

    status: int
    body: Json = None
    headers: dict[str, str] = field(default_factory=dict)
    is_json: bool = True


@dataclass(frozen=True, slots=True)
class Remote:
    """One job on the service, made for the caller's `key`."""

    id: str
    key: str
    born: Instant
    fate: Fate

    def state(self, now: Instant) -> str:
        age = now - self.born
        if self.fate.end is not None and age >= self.fate.takes:
            return self.fate.end
        return "QUEUED" if age < self.fate.takes // 3 else "RUNNING"

    def answer(self, now: Instant) -> dict[str, Json]:
        state = self.state(now)
        return {"jobId": self.id, "state": state, "result": f"result of {self.key}" if state == "SUCCEEDED" else None}


class Service:
    """Makes jobs, once for each idempotency key where it honours keys, and tells how they are."""

    def __init__(self, world: World, fates: dict[str, Fate], honours: dict[str, bool]) -> None:
        self._world = world
        self._fates = fates
        self._honours = honours
        self._by_token: dict[str, Remote] = {}
        self.jobs: dict[str, Remote] = {}
        self.made: dict[str, int] = dict.fromkeys(fates, 0)
        self.told_missing: dict[str, int] = dict.fromkeys(fates, 0)
        self.told_to_wait: dict[str, int] = dict.fromkeys(fates, 0)

    def make(self, key: str, token: str) -> Remote:
        if self._honours[key] and token in self._by_token:
            return self._by_token[token]
        self.made[key] += 1
        remote = Remote(f"{key}-{self.made[key]}", key, self._world.clock.now(), self._fates[key])
        self.jobs[remote.id] = remote
        self._by_token[token] = remote
        if self.made[key] > 1:
            self._world.broken("one remote job for each key", f"{key} has {self.made[key]}")
        return remote

    def of(self, key: str) -> Remote | None:
        """The remote job of the caller's key."""
        return next((remote for remote in self.jobs.values() if remote.key == key), None)

    def arrive(self, request: Prepared, answer: asyncio.Future[Reply]) -> None:
        """A request is here: answer it in a while, wrongly, or never."""
        chance, rates = self._world.chance, self._world.rates
        if request.kind is CallKind.CANCEL:
            # The job goes on: what is judged is who asks, and how often.
            reply: Reply | None = Reply(202)
        else:
            reply = self._submit(request) if request.kind is CallKind.SUBMIT else self._poll(request)
        if reply is None:
            return
        span = chance.choice((1, 10, 100)) * MILLISECOND
        if chance.random() < rates.slow:
            span = chance.choice((1, 3, 6)) * SECOND
        self._world.loop.outside(span, _tell, answer, reply)

    def _submit(self, request: Prepared) -> Reply | None:
        chance, rates = self._world.chance, self._world.rates
        key: str = json.loads(request.content or b"null")["name"]
        if chance.random() < rates.busy:
            return self._busy(key)
        fails, silent = chance.random() < rates.broken, chance.random() < rates.silent
        if (fails or silent) and chance.random() < 0.5:
            return Reply(500, {"error": "before"}) if fails else None
        remote = self.make(key, token_of(request))
        if fails or silent:
            return Reply(500, {"error": "after"}) if fails else None
        return Reply(202, {"jobId": remote.id, "state": "QUEUED"})

    def _poll(self, request: Prepared) -> Reply | None:
        chance, rates = self._world.chance, self._world.rates
        remote = self.jobs[key_in_url(request)]
        if chance.random() < rates.silent:
            return None
        if chance.random() < rates.busy:
            return self._busy(remote.key)
        if chance.random() < rates.missing:
            self.told_missing[remote.key] += 1
            return Reply(404, {"error": "not here"})
        if chance.random() < rates.broken:
            return Reply(chance.choice((500, 502, 503)), {"error": "broken"})
        if chance.random() < rates.garbage:
            return Reply(200, "<html>", is_json=False)
        return Reply(200, remote.answer(self._world.clock.now()))

    def _busy(self, key: str) -> Reply:
        self.told_to_wait[key] += 1
        return Reply(429, {"error": "busy"}, {"retry-after": str(self._world.chance.choice((1, 4, 9)))})


class SimTransport:
    """The wire of one process to the service."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    async def send(self, request: Prepared) -> Observation:
        self._process.leave_if_over()
        started = self._world.clock.now()
        key = self._key(request)
        self._world.ledger.started(self._process, request, key)
        with self._process.doing(request.kind.value):
            answer = await self._exchange(request, key, started)
        self._process.leave_if_over()
        finished = self._world.clock.now()
        if isinstance(answer, CallError):
            self._world.note(self._process, f"{request.kind} {key}: {answer.kind}")
            return Observation(request.kind, started, finished, url=request.url, error=answer)
        self._world.ledger.delivered(self._process, request.kind, key, answer)
        return Observation(
            request.kind,
            started,
            finished,
            status=answer.status,
            headers=answer.headers,
            body=answer.body,
            is_json=answer.is_json,
            url=request.url,
        )

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _exchange(self, request: Prepared, key: str, started: Instant) -> Reply | CallError:
        world, process = self._world, self._process
        chance = world.chance
        if process.drowsy or chance.random() < world.rates.call_pause:
            process.drowsy = False
            world.pause(process, chance.choice((2, 14, 14, 30)) * SECOND)
        await world.clock.sleep(chance.choice((0, 1, CONNECT_MAX // MILLISECOND)) * MILLISECOND)
        process.leave_if_over()
        if chance.random() < world.rates.refused:
            return CallError(ErrorKind.CONNECT, "refused", sent=False)
        world.ledger.departed(process, request, key, started)
        answer: asyncio.Future[Reply] = world.loop.create_future()
        world.loop.outside(chance.choice((0, 5, 60)) * MILLISECOND, world.service.arrive, request, answer)
        if process.doomed or chance.random() < world.rates.call_kill:
            world.kill(process)
        try:
            async with asyncio.timeout(request.timeout / SECOND):
                return await answer
        except TimeoutError:
            return CallError(ErrorKind.TIMEOUT, "no answer in time")

    def _key(self, request: Prepared) -> str:
        if request.kind is CallKind.SUBMIT:
            name: Any = json.loads(request.content or b"null")["name"]
            return str(name)
        return self._world.service.jobs[key_in_url(request)].key


def key_in_url(request: Prepared) -> str:
    """The remote job's id."""
    return request.url.removesuffix("/cancel").rpartition("/")[2]


def token_of(request: Prepared) -> str:
    """The idempotency key that the request carries."""
    return {name.lower(): value for name, value in request.headers}.get("idempotency-key", "")


def _tell(answer: asyncio.Future[Reply], reply: Reply) -> None:
    if not answer.done():
        answer.set_result(reply)
