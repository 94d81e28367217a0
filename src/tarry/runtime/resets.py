"""New runs of a job: asked for by `reset`, or by a caller who wants a job that is over to begin again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tarry.codec import decode_spec, encode_answer, encode_spec, encode_state, fingerprint, state_of
from tarry.core.observation import Observation
from tarry.core.request import plain_json
from tarry.core.restarting import followed_anew, submitted_anew
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.errors import SpecError, StoreError
from tarry.frozen import replace
from tarry.ports import Event, JobRow, Restart
from tarry.runtime.drive import Parts
from tarry.runtime.jobs import Jobs
from tarry.words import CallKind, Instant, Json, micros

_TRIES = 20
_NEWS = 20
"""How many events at most are told of what came between a look and a write."""
_ANSWER = frozenset({"status", "headers", "body", "url"})


class Resets:
    """Begins new runs; `rouse` looks at a job that is followed here. What the last run's holder writes is refused."""

    def __init__(self, parts: Parts, jobs: Jobs, rouse: Callable[[int], None]) -> None:
        self._store = parts.store
        self._units = parts.units
        self._clock = parts.clock
        self._token = parts.token
        self._herald = parts.herald
        self._jobs = jobs
        self._rouse = rouse

    async def reset(self, key: str, *, resubmit: bool, answer: Any) -> JobRow:
        """Follow the same remote job anew; or submit anew, or as if the submit had been answered like that."""
        if resubmit and answer is not None:
            raise SpecError("submit_answer", "give it or resubmit=True, not both")
        for _ in range(_TRIES):
            row = await self._jobs.found(key)
            spec = decode_spec(row.spec)
            if spec.submit is None and (resubmit or answer is not None):
                raise SpecError("resubmit" if resubmit else "submit_answer", "the job has no submit")
            now = self._clock.now()
            if resubmit:
                restart = self._anew(row, spec, now)
            elif answer is None:
                restart = _same(row, spec, now)
            else:
                restart = _answered(row, spec, answer, now)
            if await self._written(row, restart):
                return await self._jobs.found(key)
        raise StoreError(f"job {key!r} moves on faster than it can be reset; try again")

    async def again(self, row: JobRow, spec: JobSpec, *, resubmit: bool) -> bool:
        """A new run of a job that is over, under this spec; False when it is as it was no longer."""
        now = self._clock.now()
        return await self._written(row, self._anew(row, spec, now) if resubmit else _same(row, spec, now))

    async def _written(self, row: JobRow, restart: Restart) -> bool:
        if not await self._units.ask(self._store.restart, restart):
            return False
        self._rouse(row.id)
        # What others added in between counts: how the events are numbered, the store knows.
        self._herald.tell(row.id, await self._jobs.events(row.key, (row.run, row.event_seq), _NEWS))
        return True

    def _anew(self, row: JobRow, spec: JobSpec, now: Instant) -> Restart:
        state = submitted_anew(spec, _known(row, now), now)
        return replace(_restart(row, spec, state, now, "submit" if spec.submit else "poll"), token=self._token())


def _same(row: JobRow, spec: JobSpec, now: Instant) -> Restart:
    state = followed_anew(spec, _known(row, now), now)
    if state is None:
        raise StoreError(
            f"job {row.key!r}: nobody knows of a remote job that could be polled, since its submit was lost or refused; "
            "look there, then reset it with submit_answer=… (it is there) or resubmit=True (it is not)"
        )
    return replace(_following(row, spec, state, now, "poll"), submit=row.submit, carried=row.carried)


def _answered(row: JobRow, spec: JobSpec, answer: Any, now: Instant) -> Restart:
    known = _known(row, now)
    if known.submitted_at is not None:
        raise StoreError(f"job {row.key!r}: its submit was answered already; reset it without submit_answer")
    state = followed_anew(spec, known, now, accepted=True)
    assert state is not None  # noqa: S101  # an accepted job is there
    return replace(_following(row, spec, state, now, "answer"), submit=encode_answer(_observation(answer, now)))


def _known(row: JobRow, now: Instant) -> JobState:
    """The last run's state; a poll that was permitted may leave as late as it was due."""
    state = state_of(row)
    return replace(state, polled_at=max(now, row.due or now)) if row.reserved else state


def _restart(row: JobRow, spec: JobSpec, state: JobState, now: Instant, how: str) -> Restart:
    told: dict[str, Json] = {"by": how, "outcome": row.outcome and row.outcome.value, "polls": row.polls + row.reserved}
    text = encode_spec(spec)
    return Restart(
        job=row.id,
        step=row.step,
        cmd=row.cmd,
        token=row.token,
        fingerprint=fingerprint(spec),
        spec=text,
        labels=dict(spec.labels),
        state=encode_state(state),
        phase=state.phase,
        created_at=now,
        polled_at=state.polled_at,
        due=now if state.due is None else state.due,
        deadline=state.deadline,
        max_polls=spec.limits.max_polls,
        floor=micros(spec.limits.min_interval),
        submit=None,
        events=[Event("reset", now, told)],
    )


def _following(row: JobRow, spec: JobSpec, state: JobState, now: Instant, how: str) -> Restart:
    """The run that goes on with the same remote job: what its answers told stays known."""
    anew = _restart(row, spec, state, now, how)
    return replace(anew, baseline=row.baseline, poll=row.poll, status_url=row.status_url)


def _observation(answer: Any, now: Instant) -> Observation:
    """The answer that a person gives for the submit's: a body, or all of it by its parts."""
    if not isinstance(answer, Mapping):
        raise SpecError(
            "submit_answer", f"expected a mapping, the body or the whole answer; got {type(answer).__name__}"
        )
    is_whole = "body" in answer and set(answer) <= _ANSWER
    parts: dict[str, Any] = dict(answer) if is_whole else {"body": dict(answer)}
    try:
        body, headers = plain_json(parts["body"]), dict(parts.get("headers") or {})
    except ValueError as error:
        raise SpecError("submit_answer", str(error)) from None
    lower = {str(name).lower(): str(value) for name, value in headers.items()}
    status, url = parts.get("status"), parts.get("url")
    return Observation(CallKind.SUBMIT, now, now, status=status, headers=lower, body=body, is_json=True, url=url)
