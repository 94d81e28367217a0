"""The core: from a job's state and what a call saw to the next state and what to do.

`start` makes a job. `sending` gives the state to commit before a call leaves,
`step` judges what the call saw, `resume` says what comes next for a stored
state. All are pure: the same arguments give the same answer, so a step that is
repeated after a crash decides as it did before.

Whoever drives this commits the state of `sending` before a submit leaves, and
the state of `step` before it sleeps. One that keeps no checkpoints may leave
`sending` out. Nor does a poll need it, where what it saw is known to tell truly when it started.
"""

from __future__ import annotations

from tarry.core import cadence
from tarry.core.answers import Answers
from tarry.core.ending import Next, end
from tarry.core.judgement import Judgement
from tarry.core.moves import IllegalMove, Move, move
from tarry.core.observation import Observation
from tarry.core.polls import polled, repeated
from tarry.core.resuming import resume, scheduled
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.core.submits import prepared, probed, submitted
from tarry.frozen import replace
from tarry.words import CallKind, Instant, Outcome, Phase, micros

__all__ = ["cancelled", "resume", "sending", "start", "step"]

_NONE = Answers()
_POLL = CallKind.POLL
_SENT = {
    CallKind.BASELINE: Move.BASELINE_SENT,
    CallKind.SUBMIT: Move.SUBMIT_SENT,
    CallKind.PROBE: Move.PROBE_SENT,
    CallKind.POLL: Move.POLL_SENT,
}


def start(spec: JobSpec, key: str, now: Instant) -> Next:
    """A new job, created at `now`, and its first decision."""
    total = spec.limits.total_duration
    state = JobState(
        key=key,
        phase=_first_phase(spec),
        created_at=now,
        deadline=None if total is None else now + micros(total),
        due=now,
    )
    if spec.submit is None:
        return scheduled(spec, state, cadence.first_poll(spec, state, None, now), now)
    return resume(spec, state, now)


def _first_phase(spec: JobSpec) -> Phase:
    if spec.submit is None:
        return Phase.WAITING
    return Phase.SUBMITTING if spec.baseline is None else Phase.PREPARING


def cancelled(state: JobState, now: Instant) -> JobState:
    """The state of a job that its owner cancels here. Raises `IllegalMove` when it is over."""
    ended, _ = end(state, Outcome.CANCELLED, now, "cancelled here")
    return ended


def sending(state: JobState, kind: CallKind, now: Instant) -> JobState:
    """The state to commit before a call leaves at `now`. Raises `IllegalMove`."""
    if kind not in _SENT:
        raise IllegalMove(state.phase, kind)
    phase = move(state.phase, _SENT[kind])
    if kind is _POLL:
        return replace(state, phase=phase, polled_at=now)
    tries = state.submit_tries + (kind is CallKind.SUBMIT)
    return replace(state, phase=phase, submit_tries=tries)


def step(
    spec: JobSpec,
    state: JobState,
    seen: Observation,
    now: Instant,
    answers: Answers = _NONE,
    known: Judgement | None = None,
) -> Next:
    """Judge what a call saw; the new state and what comes next.

    `answers` holds what was answered before, `known` is what `judging.lasting` said of the last answer, where this one
    repeats it: it is not read again. A poll is counted here. Raises `IllegalMove` when the state awaits no such call.
    """
    if seen.kind is _POLL:
        return polled(spec, state, seen, now, answers) if known is None else repeated(spec, state, known, seen, now)
    match seen.kind:
        case CallKind.SUBMIT:
            sent = sending(state, CallKind.SUBMIT, now) if state.phase is Phase.SUBMITTING else state
            return submitted(spec, sent, seen, now, answers)
        case CallKind.BASELINE:
            return prepared(spec, sending(state, CallKind.BASELINE, now), seen, now)
        case kind:  # a probe; any other call is illegal here
            return probed(spec, sending(state, kind, now), seen, now, answers)
