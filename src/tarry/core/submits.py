"""Submits: what becomes of a job by the answers that come before its first poll."""

from __future__ import annotations

from tarry.core import cadence
from tarry.core.accepting import Meaning, read_baseline, read_probe, read_submit
from tarry.core.answers import Answers, answer
from tarry.core.document import document, excerpt
from tarry.core.ending import OUTCOMES, Next, end
from tarry.core.judging import Sort, judged
from tarry.core.moves import Move, move
from tarry.core.noting import noted, words_of
from tarry.core.observation import Observation
from tarry.core.resuming import LOST, is_overdue, lost, out_of_time, resume, scheduled
from tarry.core.spec import JobSpec
from tarry.core.state import JobState, Streak
from tarry.core.texts import short
from tarry.frozen import replace
from tarry.words import Instant, Outcome, micros

_ERROR = 160


def prepared(spec: JobSpec, state: JobState, seen: Observation, now: Instant) -> Next:
    """The baseline is taken, to be asked for again, or refused."""
    match read_baseline(spec, seen):
        case Meaning.ACCEPTED:
            phase = move(state.phase, Move.BASELINE_TAKEN)
            return resume(spec, replace(state, phase=phase, due=now, closing=False, streak=Streak(), error=None), now)
        case Meaning.AGAIN:
            return _put_off(spec, _with_error(state, seen), Move.BASELINE_PUT_OFF, seen, now)
        case _:  # refused
            return end(_with_error(state, seen), Outcome.FAILED, now, f"baseline refused: {excerpt(seen)}")


def submitted(spec: JobSpec, state: JobState, seen: Observation, now: Instant, answers: Answers) -> Next:
    """Accepted, to be sent again, lost or refused."""
    match read_submit(spec, state, seen):
        case Meaning.ACCEPTED:
            return _accepted(spec, state, seen, now, answers)
        case Meaning.AGAIN:
            return _put_off(spec, _with_error(state, seen), Move.SUBMIT_PUT_OFF, seen, now)
        case Meaning.LOST:
            state = _with_error(state, seen)
            return lost(spec, state, cadence.at_once(spec, state, seen, now), now)
        case _:  # refused
            return end(_with_error(state, seen), Outcome.FAILED, now, f"submit refused: {excerpt(seen)}")


def probed(spec: JobSpec, state: JobState, seen: Observation, now: Instant, answers: Answers) -> Next:
    """The job of a lost submit is found, or looked for again, or given up: never submitted a second time."""
    meaning = read_probe(spec, state.key, seen, answers)
    if meaning is Meaning.ACCEPTED:
        return _accepted(spec, state, seen, now, answers)
    waited, errors = 0 if state.lost_at is None else now - state.lost_at, spec.errors
    if meaning is Meaning.MISSING:
        state = replace(state, error="probe: found no job")
        if waited >= micros(errors.not_found_grace):
            return end(state, Outcome.SUBMIT_UNKNOWN, now, f"{LOST}, and the probe finds no job")
    else:
        state = _with_error(state, seen)
        if state.streak.length + 1 >= errors.max_consecutive and waited >= micros(errors.min_outage):
            return end(state, Outcome.SUBMIT_UNKNOWN, now, f"{LOST}, and so is the probe's: {state.error}")
    return _put_off(spec, state, Move.PROBE_PUT_OFF, seen, now)


def _accepted(spec: JobSpec, state: JobState, seen: Observation, now: Instant, answers: Answers) -> Next:
    """The job is there: polled from now on, unless the answer says already how it ended."""
    phase = move(state.phase, Move.ACCEPTED)
    state = replace(state, phase=phase, submitted_at=now, lost_at=None, closing=False, streak=Streak(), error=None)
    if spec.submitted is not None:
        shown = document(spec, state.polls, seen, replace(answers, submit=answer(seen)))
        finding = judged(spec.submitted, shown)
        judgement = finding.judgement
        outcome = None if judgement is None else OUTCOMES.get(judgement.verdict)
        if judgement is not None and outcome is not None:
            state = noted(spec, state, judgement, shown)
            return end(state, outcome, now, None if outcome.is_success else words_of(spec, seen, shown))
        if finding.sort is Sort.INVALID and judgement is None:
            return end(state, Outcome.INVALID, now, finding.error)
    if is_overdue(state, now):
        return resume(spec, replace(state, due=now), now)
    return scheduled(spec, state, cadence.first_poll(spec, state, seen, now), now)


def _put_off(spec: JobSpec, state: JobState, made: Move, seen: Observation, now: Instant) -> Next:
    streak = replace(state.streak, length=state.streak.length + 1)
    state = replace(state, phase=move(state.phase, made), streak=streak)
    if state.closing or is_overdue(state, now):
        return out_of_time(state, now)
    return scheduled(spec, state, cadence.next_submit(spec, state, seen, now), now)


def _with_error(state: JobState, seen: Observation) -> JobState:
    error = excerpt(seen) if seen.error is None else f"{seen.error.kind}: {seen.error.detail}"
    return replace(state, error=short(f"{seen.kind}: {error}", _ERROR))
