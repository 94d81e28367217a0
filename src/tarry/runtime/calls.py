"""Makes one call of a job, an HTTP request or a callable, and says what it saw."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass

from tarry.core.answers import Answers
from tarry.core.batch import Batch, Id
from tarry.core.decision import Call
from tarry.core.function import Function
from tarry.core.observation import CallError, Observation
from tarry.core.request import Request
from tarry.core.spec import JobSpec
from tarry.core.status_url import current, home_of
from tarry.core.templates import TemplateError, render_json
from tarry.frozen import quick, replace
from tarry.http.prepare import CallRefused, prepare
from tarry.http.secrets import Secrets
from tarry.http.transport import HttpTransport
from tarry.ports import Clock, Prepared, Transport
from tarry.runtime.aside import Aside
from tarry.runtime.batches import Batches, Member
from tarry.runtime.callables import Watched, place_of_state, unpacked, with_state
from tarry.runtime.hosts import Hosts, host_of
from tarry.words import SECOND, CallKind, ErrorKind, Json, Micros, micros


@quick
@dataclass(frozen=True, slots=True)
class Ready:
    """A poll that goes out the same each time, as long as the job's spec and answers stay what they are.

    `host` is where it goes to, `timeout` (microseconds) that of the call it was made for. `is_spared` says that the
    transport is ours, which leaves the body out of an answer that is known.
    """

    request: Prepared
    host: str
    timeout: Micros
    is_spared: bool = False

    def knowing(self, digest: int | None) -> Ready:
        """The poll of somebody who knows what an answer with this digest means."""
        return self if digest == self.request.known else replace(self, request=replace(self.request, known=digest))


class Calls:
    """Where requests and callables meet the world; failures come back as observations."""

    def __init__(self, transport: Transport, secrets: Secrets, clock: Clock, aside: Aside, hosts: Hosts) -> None:
        self._aside = aside
        self._transport = transport
        self._is_spared = type(transport) is HttpTransport  # one around it may look at each body
        self._secrets = secrets
        self._clock = clock
        self._batches = Batches(self._asked, hosts, clock)

    async def make(
        self, spec: JobSpec, call: Call, key: str, answers: Answers, token: str, carried: str | None = None
    ) -> Observation:
        """One call of the job `key`, cut after its timeout.

        `token` is the idempotency key of a submit, `carried` the state that a callable carried so far.
        """
        target = spec.target(call.kind)
        values = answers.values(key, spec.input)
        if isinstance(target, Function):
            return await self._function(spec, target, call, values, token, carried)
        if isinstance(target, Batch):
            return await self._batched(spec, target, call, values)
        return await self._request(spec, target, call, values, answers, token)

    def ready(self, spec: JobSpec, call: Call, key: str, answers: Answers) -> Ready | None:
        """The poll, where the next one can go out as it does: a request without secrets, which are asked for anew."""
        request = spec.poll
        if not isinstance(request, Request) or request.secret_names:
            return None
        values = answers.values(key, spec.input)
        try:
            prepared = self._filled(spec, request, call, values, answers)
        except CallRefused:  # as it will be when it is made
            return None
        return Ready(prepared, host_of(request, values, current(spec, answers)), call.timeout, self._is_spared)

    def send(self, ready: Ready) -> Awaitable[Observation]:
        """The poll that is ready, made."""
        return self._transport.send(ready.request)

    async def _request(
        self, spec: JobSpec, request: Request, call: Call, values: Mapping[str, Json], answers: Answers, token: str
    ) -> Observation:
        try:
            prepared = self._filled(spec, request, call, values, answers, token)
        except CallRefused as refused:
            return self._failed(call.kind, CallError(ErrorKind.REFUSED, str(refused), sent=False))
        return await self._transport.send(prepared)

    def _filled(
        self,
        spec: JobSpec,
        request: Request,
        call: Call,
        values: Mapping[str, Json],
        answers: Answers,
        token: str | None = None,
    ) -> Prepared:
        return prepare(
            request,
            kind=call.kind,
            values=values,
            secrets=self._secrets,
            timeout=call.timeout,
            home=home_of(spec, request, answers),
            status_url=current(spec, answers) if call.kind is CallKind.POLL else None,
            validators=answers.validators if call.kind is CallKind.POLL else None,
            allowed_hosts=spec.allowed_hosts,
            refresh=call.refresh,
            idempotency_key=token if call.kind is CallKind.SUBMIT else None,
        )

    async def _batched(self, spec: JobSpec, batch: Batch, call: Call, values: Mapping[str, Json]) -> Observation:
        """A poll in the company of others, unless what it asks for is refused: that must cost them nothing."""
        try:
            whole = min(spec.limits.poll_timeout, batch.request.total_timeout or spec.limits.poll_timeout)
            member = Member(
                id=batch.id_of(values), timeout=call.timeout, is_cut=call.timeout < micros(whole), refresh=call.refresh
            )
            self._prepared(batch, [member.id], call.timeout)
        except (CallRefused, TemplateError) as refused:
            return self._failed(call.kind, CallError(ErrorKind.REFUSED, str(refused), sent=False))
        return await self._batches.poll(batch, member)

    async def _asked(self, batch: Batch, ids: Sequence[Id], bound: Micros, *, refresh: bool) -> Observation:
        try:
            return await self._transport.send(self._prepared(batch, ids, bound, refresh=refresh))
        except CallRefused as refused:
            return self._failed(CallKind.POLL, CallError(ErrorKind.REFUSED, str(refused), sent=False))

    def _prepared(self, batch: Batch, ids: Sequence[Id], bound: Micros, *, refresh: bool = False) -> Prepared:
        return prepare(
            batch.asking(len(ids)),
            kind=CallKind.POLL,
            values={"batch": {"ids": list(ids)}},
            secrets=self._secrets,
            timeout=bound,
            refresh=refresh,
        )

    async def _function(
        self,
        spec: JobSpec,
        function: Function,
        call: Call,
        values: Mapping[str, Json],
        token: str,
        carried: str | None,
    ) -> Observation:
        started = self._clock.now()
        bound = asyncio.timeout(call.timeout / SECOND)
        try:
            arguments = {name: render_json(value, values) for name, value in spec.args.items()}
            place = place_of_state(function.load(), arguments)
            async with bound:
                called = self._aside.call(token, function.load(), **with_state(place, arguments, carried))
                answer, carried = unpacked(place, await Watched(called, self._clock, values["key"]))
        except TemplateError as error:
            return self._failed(call.kind, CallError(ErrorKind.REFUSED, str(error), sent=False), started)
        except Exception as error:  # noqa: BLE001  # whatever user code raises is one failed call of one job
            return self._failed(call.kind, _fault(error, cut=bound.expired()), started)
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            return self._failed(call.kind, _fault(error, cut=False), started)
        return Observation(call.kind, started, self._clock.now(), body=answer, is_json=True, carried=carried)

    def _failed(self, kind: CallKind, error: CallError, started: int | None = None) -> Observation:
        now = self._clock.now()
        return Observation(kind, now if started is None else started, now, error=error)


def is_cancelled() -> bool:
    """Whether the cancellation that was just caught is ours, and not one that user code raised."""
    current = asyncio.current_task()
    return current is None or current.cancelling() > 0


def _fault(error: BaseException, *, cut: bool) -> CallError:
    if cut:
        return CallError(ErrorKind.TIMEOUT, "the callable took too long")
    return CallError(ErrorKind.CALLABLE, f"{type(error).__name__}: {error}")
