"""A job that answers from a script, in place of an HTTP client."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from tarry.core.observation import CallError, Observation
from tarry.ports import Clock, Prepared
from tarry.words import CallKind, ErrorKind, Instant, Json, Micros, micros

_NEVER_SENT = frozenset({ErrorKind.CONNECT, ErrorKind.POOL, ErrorKind.REFUSED})


@dataclass(frozen=True, slots=True)
class Answer:
    """One scripted answer.

    `status` is the HTTP code, `body` a JSON value (None: an empty body), `text` a
    body that is not JSON, `delay` how long the call takes (microseconds or a
    `timedelta`). With an `error` there is no response: that is what the call ended with.
    """

    status: int = 200
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: Micros | timedelta = 0
    error: CallError | ErrorKind | None = None
    text: str | None = None


Plain: TypeAlias = Answer | dict[str, Json] | int | CallError | ErrorKind | Exception | type[Exception]
"""An `Answer`, or short for one: a dict is the body of a 200, an int a status, the rest an error."""

Scripted: TypeAlias = Plain | Callable[[Prepared], Plain]
"""A plain answer, or a function that makes one of the request."""

_ACCEPTED = Answer(202, {"jobId": "job-1", "state": "QUEUED"})


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it was sent. `headers` has lower-case names."""

    at: Instant
    kind: CallKind
    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None


class ScriptExhausted(AssertionError):
    """The job was asked once more than its script has answers, and `repeat` is off."""


class ScriptedJob:
    """A `Transport` that plays a list of answers and keeps what it was asked.

    - `answers`: for the polls, in order; the last one repeats for ever, unless `repeat=False`.
    - `submit`: one answer or a list of them for the submits; by default 202 and `jobId` "job-1".
    - `baseline`, `probe`, `fetch`: the same for those calls; by default 404.
    - `cancel`: the same for the requests to cancel; by default 202.
    - `clock`: tells when requests came, and waits out delays.

    A call that would take longer than its `timeout` ends there with a timeout error,
    as with a real client. An exception in the script becomes the error that a client would
    report for it; one raised *by* a function of the script is the test's own and comes through.
    """

    def __init__(
        self,
        answers: Sequence[Scripted],
        *,
        submit: Scripted | list[Scripted] | tuple[Scripted, ...] | None = None,
        baseline: Scripted | list[Scripted] | tuple[Scripted, ...] = 404,
        probe: Scripted | list[Scripted] | tuple[Scripted, ...] = 404,
        fetch: Scripted | list[Scripted] | tuple[Scripted, ...] = 404,
        cancel: Scripted | list[Scripted] | tuple[Scripted, ...] = 202,
        clock: Clock,
        repeat: bool = True,
    ) -> None:
        self.requests: list[Seen] = []
        self.closed = False
        self._clock = clock
        self._repeat = repeat
        self._scripts: dict[CallKind, tuple[Scripted, ...]] = {
            CallKind.POLL: tuple(answers),
            CallKind.SUBMIT: _script(_ACCEPTED if submit is None else submit),
            CallKind.BASELINE: _script(baseline),
            CallKind.PROBE: _script(probe),
            CallKind.FETCH: _script(fetch),
            CallKind.CANCEL: _script(cancel),
        }
        for kind, script in self._scripts.items():
            if not script:
                raise ValueError(f"a script needs at least one answer for a {kind}")

    @property
    def polls(self) -> int:
        """How many polls came."""
        return self._count(CallKind.POLL)

    @property
    def submits(self) -> int:
        """How many submits came."""
        return self._count(CallKind.SUBMIT)

    @property
    def fetches(self) -> int:
        """How many requests for a result came."""
        return self._count(CallKind.FETCH)

    @property
    def cancels(self) -> int:
        """How many requests to cancel came."""
        return self._count(CallKind.CANCEL)

    async def send(self, request: Prepared) -> Observation:
        """Answer with the next one of the script; raises `ScriptExhausted`, and what a function of the script raises."""
        started = self._clock.now()
        turn = self._count(request.kind)
        self.requests.append(_seen(request, started))
        answer = _answer(self._next(request.kind, turn), request)
        delay = micros(answer.delay) if isinstance(answer.delay, timedelta) else answer.delay
        if delay > request.timeout:
            answer = Answer(error=CallError(ErrorKind.TIMEOUT, f"no answer within {request.timeout} µs"))
        if delay > 0:
            await self._clock.sleep(min(delay, request.timeout))
        return _observation(request, answer, started, self._clock.now())

    async def aclose(self) -> None:
        """Remember that it was closed."""
        self.closed = True

    def _count(self, kind: CallKind) -> int:
        return sum(seen.kind is kind for seen in self.requests)

    def _next(self, kind: CallKind, turn: int) -> Scripted:
        script = self._scripts[kind]
        if turn >= len(script) and not self._repeat:
            raise ScriptExhausted(f"{kind} {turn + 1} came, but the script has {len(script)} answer(s)")
        return script[min(turn, len(script) - 1)]


def _script(answers: Scripted | list[Scripted] | tuple[Scripted, ...]) -> tuple[Scripted, ...]:
    # Not `Sequence`: an ErrorKind is a string, and so a sequence too.
    return tuple(answers) if isinstance(answers, list | tuple) else (answers,)


def _seen(request: Prepared, at: Instant) -> Seen:
    headers = {name.lower(): value for name, value in request.headers}
    return Seen(at, request.kind, request.method, request.url, headers, request.content)


def _answer(scripted: Scripted, request: Prepared) -> Answer:
    """The scripted thing as a full `Answer`."""
    match scripted:
        case Answer():
            return scripted
        case dict():
            return Answer(body=scripted)
        case bool():
            raise TypeError("a script holds answers, not True or False")
        case int():
            return Answer(status=scripted)
        case ErrorKind() | CallError() | Exception():
            return Answer(error=_as_error(scripted))
        case type():
            return Answer(error=_as_error(scripted()))
    return _answer(scripted(request), request)


def _as_error(error: CallError | ErrorKind | Exception) -> CallError:
    """What an HTTP client's adapter would make of it."""
    if isinstance(error, CallError):
        return error
    if isinstance(error, ErrorKind):
        return CallError(error, f"{error} (scripted)", sent=error not in _NEVER_SENT)
    detail = f"{type(error).__name__}: {error}".removesuffix(": ")
    if isinstance(error, ConnectionRefusedError):
        return CallError(ErrorKind.CONNECT, detail, sent=False)
    return CallError(ErrorKind.TIMEOUT if isinstance(error, TimeoutError) else ErrorKind.PROTOCOL, detail)


def _observation(request: Prepared, answer: Answer, started: Instant, finished: Instant) -> Observation:
    if answer.error is not None:
        return Observation(request.kind, started, finished, url=request.url, error=_as_error(answer.error))
    return Observation(
        request.kind,
        started,
        finished,
        status=answer.status,
        headers={name.lower(): value for name, value in answer.headers.items()},
        # A copy: what a condition does to one answer must not change the next.
        body=copy.deepcopy(answer.body) if answer.text is None else answer.text,
        is_json=answer.text is None and answer.body is not None,
        url=request.url,
        text=_told(answer.body) if answer.text is None else None,
    )


def _told(body: Json) -> str | None:
    """The text that the body might have been read from, if it is one that can be read."""
    try:
        text = json.dumps(body)
    except (TypeError, ValueError):
        return None
    return text if body is not None and json.loads(text) == body else None
