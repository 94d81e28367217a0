"""Drives one held job: call, judge, commit, rest, until it is over, released or lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from tarry.core import cadence, hints
from tarry.core.batch import Batch
from tarry.core.conditions import Expression
from tarry.core.decision import Call, Decision, Stop
from tarry.core.evaluation import size
from tarry.core.judging import is_request_to_wait
from tarry.core.machine import resume, sending, step
from tarry.core.observation import CallError, Observation, folded, no_earlier, unfolded
from tarry.core.resuming import is_still
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.core.strategies import DEFAULT
from tarry.core.validators import unmarked
from tarry.errors import LeaseLost
from tarry.frozen import replace
from tarry.ports import Checkpoint, Clock, Glance, Store
from tarry.runtime.agenda import NEAR
from tarry.runtime.aside import Aside, Misbehaved
from tarry.runtime.calls import Calls, Ready
from tarry.runtime.followed import Followed
from tarry.runtime.gate import Gate, Place
from tarry.runtime.herald import Herald
from tarry.runtime.hold import Hold, digest_of
from tarry.runtime.hosts import Hosts, Turn
from tarry.runtime.logbook import record
from tarry.runtime.pulse import Pulse
from tarry.runtime.units import Units
from tarry.runtime.worker import Worker
from tarry.runtime.writer import Writer
from tarry.words import SECOND, CallKind, ErrorKind, Instant, Micros

_NEVER = Expression("`false`")
_LIGHT = 10_000
"""Steps of judging that are taken on the event loop: some milliseconds."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the runtime of one process is made of; `token` gives names never used before."""

    store: Store
    units: Units
    clock: Clock
    worker: Worker
    calls: Calls
    hosts: Hosts
    aside: Aside
    token: Callable[[], str]
    herald: Herald
    namespace: str
    writer: Writer


PARK_BEYOND: Micros = SECOND
"""A wait longer than this keeps no task: what is held of a job meanwhile is a quarter of what it takes with one."""

Parked: TypeAlias = tuple[Hold, Instant]
"""A job that is held through a wait, and until when."""


@dataclass(slots=True)
class _Made:
    """A call that was made, as it was by then, what it saw, and the job after it."""

    hold: Hold
    call: Call
    seen: Observation


class _Commanded(Exception):
    """A command came since the row was read; `hold` is the job as the command left it."""

    def __init__(self, hold: Hold) -> None:
        super().__init__()
        self.hold = hold


class Drive:
    """Drives held jobs, one `run` each; `look` is called when one has left something to be delivered.

    `pulse` tells whether this process hears of what others command.
    """

    def __init__(self, parts: Parts, look: Callable[[], None], pulse: Pulse) -> None:
        self._look = look
        self._pulse = pulse
        self._store = parts.store
        self._units = parts.units
        self._writer = parts.writer
        self._clock = parts.clock
        self._worker = parts.worker
        self._calls = parts.calls
        self._hosts = parts.hosts
        self._aside = parts.aside
        self._herald = parts.herald
        self.gate = Gate()

    async def run(self, job: Followed, hold: Hold, *, was_held: bool = False) -> Parked | None:
        """Drive until the job is over, nobody waits any more, or the wait is long; `was_held` after such a wait.

        Of one that is to be held through a wait without a task the hold, and until when; None where it is not held
        any more. Raises `LeaseLost` when another worker took the job; nothing was written then.
        """
        if not was_held:
            await self._herald.catch_up(hold.entry)
        is_ours = self._is_ours(job, hold)
        while is_ours and job.waiters:
            now = self._clock.now()
            state, decision = resume(hold.spec, hold.state, now)
            try:
                if isinstance(decision, Call):
                    after = await self._call(job, hold.resumed(state), decision, now)
                elif isinstance(decision, Stop):
                    write = hold.settlement(state, decision, None, now)
                    after = await self._commit(job, hold, write, state, now)
                else:
                    after = hold = hold.resumed(state)
                    job.looked.set()
                    if decision.due - now > PARK_BEYOND and not job.is_taken and not job.is_roused:
                        return hold, decision.due
                    if await job.rest(decision.due) and job.waiters:
                        await self._check(job, hold)
            except _Commanded as commanded:
                after = commanded.hold
                await self._herald.catch_up(after.entry)
            if after is None:
                return None
            hold = after
            if hold.entry.cmd != job.cmd:
                is_ours = self._is_ours(job, hold)
        await self._writer.release(hold.grip)
        await self._herald.write_down(hold.entry)
        return None

    def _is_ours(self, job: Followed, hold: Hold) -> bool:
        """Whether the job is driven here, as the commands that were heard by now want it."""
        job.cmd = hold.entry.cmd
        return not hold.entry.paused and job.runs_here(hold.spec)

    async def _check(self, job: Followed, hold: Hold) -> None:
        """Read the row again: raises `_Commanded` after a command, `LeaseLost` when another has the job by now."""
        row = await self._writer.row(job.id)
        grip = hold.grip
        if row is not None and (row.fence, row.nonce, row.step) == (grip.fence, grip.nonce, grip.step):
            if row.cmd == grip.cmd:
                return
            raise _Commanded(hold.commanded(row, job.spec_of(row.spec)))
        raise LeaseLost(f"job {job.key!r} was taken by another; what was seen was not written")

    def _is_as_it_was(self, hold: Hold, seen: Glance | None) -> bool:
        if seen is None:
            return False
        return (seen.owner, seen.step, seen.cmd) == (self._worker.id, hold.step, hold.entry.cmd)

    async def _call(self, job: Followed, hold: Hold, call: Call, now: Instant) -> Hold | None:
        """Make the call and commit what it saw; None when the job is no longer held."""
        if not self._worker.may_send(now):
            if await job.rest(now + SECOND) and job.waiters:
                await self._check(job, hold)
            return hold
        if call.kind is CallKind.POLL and not hold.permit:
            # That commit took its time: whether to poll, and for how long, is decided anew.
            return await self._permitted(job, hold)
        if self._pulse.is_silent(now):
            # This process stood still: what it was told meanwhile counts before it sends anything.
            if not self._is_as_it_was(hold, await self._writer.glance(job.id)):
                await self._check(job, hold)
            by_now = self._by_now(job, hold, call)
            if by_now is None:
                return hold
            call = by_now
        place = Place(hold.is_suspect, job.rouse)
        try:
            made = await self._made(job, hold, call, place)
            if made is None:
                return hold
            after = await self._answered(job, made)
        finally:
            self.gate.leave(place)
        if call.kind is CallKind.POLL and after is not None:
            job.looked.set()
        return after

    async def _made(self, job: Followed, hold: Hold, call: Call, place: Place) -> _Made | None:
        """Make the call in its host's turn, past the gate; None if it is not to be made any more."""
        turn = self._turn(job, hold, call)
        try:
            by_now: Call | None = call
            if turn is not None and not turn.granted:
                await self._in_line(job, hold, turn)
                by_now = self._by_now(job, hold, call)
            if by_now is not None:
                self.gate.line_up(place)
                if place.alone or not place.granted:
                    by_now = await self._let_in(job, hold, by_now, place)
            if by_now is None:
                return None
            sent = self._clock.now()
            if by_now.kind is CallKind.POLL:
                # The permit is spent in memory before the first byte leaves.
                hold = hold.polling(self._ready(hold, by_now))
                seen = await (self._sent(hold, by_now) if hold.ready is None else self._calls.send(hold.ready))
            elif by_now.kind is CallKind.SUBMIT:
                hold, seen = await self._submitted(job, hold, by_now)
            else:
                # A baseline or a probe only looks, so nothing is committed before.
                seen = await self._sent(hold, by_now)
            if is_request_to_wait(seen.status):
                self._heed(hold, seen)
            return _Made(hold, by_now, no_earlier(seen, sent))
        finally:
            if turn is not None:
                self._hosts.leave(turn)

    def _turn(self, job: Followed, hold: Hold, call: Call) -> Turn | None:
        """The turn of a call at its host; None where it shares a call with others, which takes one for all."""
        if hold.ready is None and isinstance(hold.spec.target(call.kind), Batch):
            return None
        return self._hosts.line_up(hold.host(call.kind), job.rouse, first=hold.state.closing)

    async def _in_line(self, job: Followed, hold: Hold, turn: Turn) -> None:
        """Until the turn is granted, nobody waits, or the deadline is near: it goes before politeness."""
        latest = cadence.latest(hold.spec, hold.state, self._clock.now())
        while job.waiters and not turn.granted:
            now = self._clock.now()
            if latest is not None and now >= latest:
                self._hosts.go_ahead(turn)
            elif (
                await job.rest(None if latest is None else min(latest, now + NEAR)) and job.waiters and not turn.granted
            ):
                await self._check(job, hold)

    async def _let_in(self, job: Followed, hold: Hold, call: Call, place: Place) -> Call | None:
        """Wait at the gate, to go through alone where the job is a suspect; the call by then, None if it is not to be.

        Where the deadline is near it goes before the care for others.
        """
        latest = cadence.latest(hold.spec, hold.state, self._clock.now())
        while job.waiters and not place.granted:
            if latest is not None and self._clock.now() >= latest:
                self.gate.go_ahead(place)
            elif await job.rest(latest) and job.waiters and not place.granted:
                await self._check(job, hold)
        if place.alone and place.granted and not await self._units.run(self._store.isolate, hold.grip):
            await self._check(job, hold)
            raise LeaseLost(f"job {job.key!r} cannot be called alone here")
        return self._by_now(job, hold, call)

    def _by_now(self, job: Followed, hold: Hold, call: Call) -> Call | None:
        now = self._clock.now()
        if not (job.waiters and self._worker.may_send(now)):
            return None
        if is_still(hold.state, call, now):
            return call
        _, decision = resume(hold.spec, hold.state, now)
        return decision if isinstance(decision, Call) and decision.kind is call.kind else None

    def _heed(self, hold: Hold, seen: Observation) -> None:
        """Spare the host where it asks for less traffic: the jobs beside this one have not heard it."""
        hint = hints.read(hold.spec.hints, seen)
        if hint is not None:
            self._hosts.rest(hold.host(seen.kind), hint.span)

    async def _answered(self, job: Followed, made: _Made) -> Hold | None:
        """Judge and commit what was seen; if a command came meanwhile, judge it on what the command made of the job."""
        while True:
            hold, seen, now = made.hold, made.seen, self._clock.now()
            shown = digest_of(seen)
            known = hold.known_of(seen, shown)
            if known is None:
                seen = hold.whole(seen)
            if known is not None or _is_light(hold.spec, seen):
                state, decision = step(hold.spec, hold.state, seen, now, hold.answers, known)
                known = known or hold.lasting(seen, shown)
            else:
                state, decision = await self._judged_aside(hold, made.call, seen)
                now = self._clock.now()
            write = hold.settlement(state, decision, seen, now)
            # Hundreds may wait for one commit: of the answers only little is kept meanwhile.
            made.seen = folded(seen)
            del seen
            try:
                after = await self._commit(job, hold, write, state, now)
            except _Commanded as commanded:
                made.seen = unfolded(made.seen)
                if commanded.hold.spec.poll != hold.spec.poll:
                    made.seen = unmarked(made.seen)
                made.hold = commanded.hold
            else:
                return after and after.showing(shown, known, made.seen.digest)

    async def _permitted(self, job: Followed, hold: Hold) -> Hold:
        """Commit the right to make one poll."""
        if not await self._writer.reserve(hold.grip):
            await self._check(job, hold)
            raise LeaseLost(f"job {job.key!r}: no poll is permitted here")
        return hold.reserved()

    def _ready(self, hold: Hold, call: Call) -> Ready | None:
        if hold.ready is not None and hold.ready.timeout == call.timeout:
            return hold.ready
        return self._calls.ready(hold.spec, call, hold.entry.key, hold.answers)

    def _sent(self, hold: Hold, call: Call) -> Awaitable[Observation]:
        entry = hold.entry
        return self._calls.make(hold.spec, call, entry.key, hold.answers, entry.token, entry.carried)

    async def _submitted(self, job: Followed, hold: Hold, call: Call) -> tuple[Hold, Observation]:
        """Submit; the intent is committed before the first byte leaves, which may be too late to send at all."""
        now = self._clock.now()
        intent = sending(hold.state, call.kind, now)
        hold = await self._commit(job, hold, hold.intent(intent, now), intent, now) or hold  # it never lets go of a job
        now = self._clock.now()
        if self._worker.may_send(now):
            return hold, no_earlier(await self._sent(hold, call), now)
        error = CallError(ErrorKind.REFUSED, "not sent: the lease ran out while the store was slow", sent=False)
        return hold, Observation(call.kind, now, now, error=error)

    async def _judged_aside(self, hold: Hold, call: Call, seen: Observation) -> tuple[JobState, Decision]:
        """Judge what was seen off the event loop, in the time of a call."""
        spec, state, answers = hold.spec, hold.state, hold.answers
        try:
            async with asyncio.timeout(call.timeout / SECOND):
                judge = partial(step, spec, state, seen, self._clock.now(), answers)
                return await self._aside.run(hold.entry.token, judge)
        except TimeoutError:
            error = CallError(ErrorKind.CONDITION, _slow(spec))
        except Misbehaved as misbehaved:
            error = CallError(ErrorKind.CONDITION, str(misbehaved))
        # Judged without the callables, which would only hang or raise again, here on the loop.
        unjudged = spec.model_copy(update={"until": _NEVER, "submitted": None, "strategy": DEFAULT})
        if call.kind is CallKind.POLL:  # any other answer came, whatever was to be made of it
            seen = replace(seen, error=error)
        return step(unjudged, state, seen, self._clock.now(), answers)

    async def _commit(self, job: Followed, hold: Hold, write: Checkpoint, state: JobState, now: Instant) -> Hold | None:
        """Commit a step; None when the job is no longer held by that."""
        told = self._herald.told(hold.entry)
        if told is not None:
            write = replace(write, told=told)
        if not await self._writer.checkpoint(write):
            await self._check(job, hold)
            raise LeaseLost(f"job {job.key!r}: a checkpoint cannot be stored")
        after = hold.committed(write, state)
        if write.events:
            await self._herald.tell_new(after.entry)
        if write.outcome is not None or write.release:
            await self._herald.write_down(after.entry)
        if write.owed:
            self._look()
        record(hold.state, state, now)
        return None if write.outcome is not None or write.release else after


def _is_light(spec: JobSpec, seen: Observation) -> bool:
    """Whether what was seen is judged on the event loop, since that takes no time to speak of."""
    kind = seen.kind
    return spec.is_walk(kind) or (spec.is_plain(kind) and size(seen.body, _LIGHT) * spec.effort(kind) <= _LIGHT)


def _slow(spec: JobSpec) -> str:
    return f"the condition{' or the strategy' if spec.strategy.functions else ''} took too long"
