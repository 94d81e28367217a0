"""The job API: one request in, one reply out, everything remembered."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TextIO, get_args

from tarry.core.request import Method
from tarry.errors import SpecError
from tarry.ports import Clock
from tarry.testing.stub.behaviour import Behaviour, CallName, behaviour_of, plan_of, script_of
from tarry.testing.stub.faults import as_json, bend, marked
from tarry.testing.stub.jobs import Document, JobBook, StubJob
from tarry.testing.stub.wire import Manner, Reply, Request
from tarry.words import Instant, Json

_METHODS = frozenset(get_args(Method))
_SILENT = frozenset({Manner.DROP, Manner.GARBAGE, Manner.HANG})


@dataclass(frozen=True, slots=True)
class Served:
    """What was made of one request: for the log, and to be sent."""

    reply: Reply
    kind: str = "other"
    job: str | None = None
    call: int | None = None
    mode: str | None = None

    def bent(self, document: Document, odd: Behaviour | None, now: Instant) -> Served:
        """The same made odd; `document` is what the reply carries."""
        if odd is None:
            return self
        return replace(self, reply=bend(self.reply, document, odd, call=self.call or 1, now=now), mode=odd.mode)


class JobApi:
    """The routes of the stub. Synchronous and without sockets.

    - `seconds`: how long a job takes that does not say so itself; None: a stage a poll.
    - `script`: behaviours of every job, after its own.
    - `new_id`: makes job ids.
    - `keep`: how many requests are remembered; the oldest are forgotten first.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        new_id: Callable[[], str],
        seconds: float | None = None,
        script: Sequence[Behaviour] = (),
        keep: int = 100_000,
    ) -> None:
        self.book = JobBook(new_id)
        self.requests: deque[Document] = deque(maxlen=keep)
        self.log: TextIO | None = None
        self._clock = clock
        self._seconds = seconds
        self._script = tuple(script)

    @property
    def polls(self) -> dict[str, int]:
        """Polls by job."""
        return {job.id: job.polls for job in list(self.book.jobs.values())}

    def respond(self, request: Request) -> Reply:
        """Serve one request and remember it."""
        now = self._clock.now()
        try:
            served = self._serve(request, now)
        except SpecError as error:
            served = Served(_error(HTTPStatus.BAD_REQUEST, str(error)))
        self._remember(request, served, now)
        return served.reply

    def _serve(self, request: Request, now: Instant) -> Served:
        method = "GET" if request.method == "HEAD" else request.method
        if method not in _METHODS:
            return Served(_error(HTTPStatus.NOT_IMPLEMENTED, "this method is not known here"))
        match method, request.parts:
            case "POST", ("jobs",):
                return self._submit(request, now)
            case "GET", ("jobs" | "polls" | "requests" as what,):
                return Served(as_json(200, {what: self._listing(what, now)}))
            case "POST", ("jobs", name, "fail" | "cancel" | "script" as verb) if name:
                return self._command(verb, name, request, now)
            case "GET", ("jobs", name, "result") if name:
                return self._result(name, now)
            case "GET", ("jobs", name, *_) if name:
                return self._poll(name, request, now)
        return Served(_no_route(request.parts))

    def _submit(self, request: Request, now: Instant) -> Served:
        key, plan = request.headers.get("idempotency-key"), plan_of(request.content)
        call = self.book.count_try(key, request.content)
        odd = self._behaviour(request, "submit", plan.script, call)
        known = self.book.known(key)
        if known is not None and known[0] != request.content:
            reply = _error(HTTPStatus.UNPROCESSABLE_ENTITY, "this Idempotency-Key came with another body before")
            return Served(reply, "submit", known[1].id, call)
        job = known[1] if known is not None else None
        if job is None and (odd is None or odd.accepts):
            job = self.book.create(key, request.content, now)
            job.seconds = self._seconds if plan.seconds is None else plan.seconds
            job.script = plan.script
        document: Document = {"jobId": job.id, "state": "QUEUED"} if job else {}
        reply = _accepted(document, job, replayed=known is not None)
        return Served(reply, "submit", job.id if job else None, call).bent(document, odd, now)

    def _poll(self, name: str, request: Request, now: Instant) -> Served:
        job = self.book.jobs.get(name)
        if job is None:
            return Served(_no_such_job(), "poll")
        odd = self._behaviour(request, "poll", job.script, job.polls + 1)
        job.polls += 1
        document = job.look(now) if odd is None or odd.shows_the_job else job.document(now)
        served = Served(as_json(HTTPStatus.OK, document), "poll", name, job.polls).bent(document, odd, now)
        if odd is None or odd.mode != "etag":
            return served
        return replace(served, reply=marked(served.reply, request.headers.get("if-none-match")))

    def _result(self, name: str, now: Instant) -> Served:
        """The result by itself, once the job has succeeded."""
        job = self.book.jobs.get(name)
        if job is None:
            return Served(_no_such_job(), "result")
        result = job.document(now).get("result")
        if not isinstance(result, dict):
            return Served(_error(HTTPStatus.NOT_FOUND, "there is no result yet"), "result", name)
        return Served(as_json(HTTPStatus.OK, result), "result", name)

    def _command(self, verb: str, name: str, request: Request, now: Instant) -> Served:
        job = self.book.jobs.get(name)
        if job is None:
            return Served(_no_such_job(), verb)
        match verb:
            case "fail":
                job.fail()
                reply = as_json(HTTPStatus.OK, {"jobId": name, "willFail": True})
            case "cancel" if job.cancel(now):
                reply = as_json(HTTPStatus.ACCEPTED, {"jobId": name, "state": "CANCELLING"})
            case "cancel":
                reply = as_json(HTTPStatus.CONFLICT, {"error": "the job is over", "state": job.document(now)["state"]})
            case _:
                job.script = script_of(request.content)
                reply = as_json(HTTPStatus.OK, {"jobId": name, "script": len(job.script)})
        return Served(reply, verb, name)

    def _behaviour(self, request: Request, on: CallName, script: tuple[Behaviour, ...], call: int) -> Behaviour | None:
        """The first that is about this call: of the URL, of the job, of every job."""
        asked = behaviour_of(request.query, on)
        candidates = ((asked,) if asked else ()) + script + self._script
        return next((each for each in candidates if each.covers(on, call)), None)

    def _listing(self, what: str, now: Instant) -> Json:
        match what:
            case "polls":
                return dict(self.polls)
            case "requests":
                return list(self.requests)
        return [job.document(now) | {"polls": job.polls} for job in self.book.jobs.values()]

    def _remember(self, request: Request, served: Served, now: Instant) -> None:
        """Keep it, and write it out at once: whoever reads the log knows what came before the answer left."""
        entry: Document = {
            "at": now,
            "method": request.method,
            "path": request.target,
            "kind": served.kind,
            "job": served.job,
            "call": served.call,
            "key": request.headers.get("idempotency-key"),
            "status": None if served.reply.manner in _SILENT else int(served.reply.status),
            "mode": served.mode,
        }
        self.requests.append(entry)
        if self.log is not None:
            self.log.write(json.dumps(entry) + "\n")
            self.log.flush()


def _accepted(document: Document, job: StubJob | None, *, replayed: bool) -> Reply:
    reply = as_json(HTTPStatus.ACCEPTED, document)
    if job is None:
        return reply
    marks = {"Idempotency-Replayed": "true"} if replayed else {}
    return replace(reply, headers={"Location": f"/jobs/{job.id}"} | marks)


def _error(status: HTTPStatus, problem: str) -> Reply:
    return as_json(status, {"error": problem})


def _no_such_job() -> Reply:
    return _error(HTTPStatus.NOT_FOUND, "no such job")


def _no_route(parts: tuple[str, ...]) -> Reply:
    """A path that is served for other methods says which; any other is not found."""
    match parts:
        case ("jobs",):
            allowed = "GET, HEAD, POST"
        case ("polls" | "requests",):
            allowed = "GET, HEAD"
        case ("jobs", name, *rest) if name:
            allowed = "GET, HEAD, POST" if rest in (["fail"], ["cancel"], ["script"]) else "GET, HEAD"
        case _:
            return _error(HTTPStatus.NOT_FOUND, "not found")
    reply = _error(HTTPStatus.METHOD_NOT_ALLOWED, "this path does not take that method")
    return replace(reply, headers={"Allow": allowed})
