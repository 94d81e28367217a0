"""A job in this worker's hands: what is known of its row, and the proof that it is held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from tarry.codec import encode_observation, encode_state, state_of
from tarry.core.answers import Answers
from tarry.core.decision import Decision, Wait
from tarry.core.deliveries import owed
from tarry.core.document import document
from tarry.core.fetching import is_fetched
from tarry.core.keeping import kept
from tarry.core.machine import sending
from tarry.core.observation import Observation
from tarry.core.output import output_of
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.core.status_url import current
from tarry.core.texts import as_json_text
from tarry.core.validators import is_unchanged
from tarry.frozen import quick, replace
from tarry.ports import SUSPECT, Checkpoint, Event, Grip, JobRow
from tarry.runtime.calls import Ready
from tarry.runtime.changes import changes
from tarry.runtime.entry import Entry, said
from tarry.runtime.hosts import host_of
from tarry.runtime.timeline import extended
from tarry.runtime.values import answers_of, answers_with, changed_texts, moved_to
from tarry.words import SECOND, CallKind, Instant, Micros, Phase, WaitSource

RESERVE_WITHIN: Micros = 5 * SECOND
"""A wait up to this long reserves its poll in the same commit; a longer one shortly before it is due."""

RELEASE_BEYOND: Micros = 30 * SECOND
"""A wait longer than this gives the job up until it is due."""

CLAIM_AHEAD: Micros = 2 * SECOND
"""How long before it is due a job that nobody holds is claimed."""

_POLL = CallKind.POLL
_POLLED = frozenset({Phase.WAITING, Phase.BLOCKED})
_NEXT = {
    Phase.PREPARING: CallKind.BASELINE,
    Phase.SUBMITTING: CallKind.SUBMIT,
    Phase.SENDING: CallKind.SUBMIT,
    Phase.PROBING: CallKind.PROBE,
}


@quick
@dataclass(frozen=True, slots=True)
class Hold:
    """A held job between two commits; every commit gives a new one.

    `permit` is true while one poll is reserved and unspent; `answers` is what was answered so far; `shown`
    tells the last answer from others without reading its body, if it can be told. `ready` is the last poll, if the
    next one can go out as it did.
    """

    entry: Entry
    spec: JobSpec
    state: JobState
    grip: Grip
    permit: bool
    answers: Answers
    shown: int | None = None
    ready: Ready | None = None

    @classmethod
    def of(cls, row: JobRow, spec: JobSpec) -> Self:
        """The hold of a row just claimed; `spec` is what its text says."""
        return cls(Entry.of(row), spec, state_of(row), row.grip, permit=row.reserved == 1, answers=answers_of(row))

    def commanded(self, row: JobRow, spec: JobSpec) -> Self:
        """The hold after a command came; a permit that was spent stays spent."""
        return replace(self.of(row, spec), permit=self.permit)

    @property
    def next_kind(self) -> CallKind:
        """What the next call of the job is."""
        return _NEXT.get(self.state.phase, CallKind.POLL)

    @property
    def is_suspect(self) -> bool:
        """Whether the job is called alone, since processes ended in which it may have been called."""
        return self.entry.strikes >= SUSPECT

    def host(self, kind: CallKind) -> str:
        """The host that a call of this kind goes to."""
        if self.ready is not None and kind is _POLL:
            return self.ready.host
        answers = self.answers
        values = answers.values(self.entry.key, self.spec.input)
        return host_of(self.spec.target(kind), values, current(self.spec, answers) if kind is CallKind.POLL else None)

    def staggered(self, start: Instant | None, now: Instant) -> Self:
        """The hold of an overdue job that is not polled before `start`, so that not all are polled at once."""
        if start is None or start <= now:
            return self
        state = replace(self.state, due=start, wait=start - now, wait_source=WaitSource.STAGGER)
        return replace(self, state=state)

    def resumed(self, state: JobState) -> Self:
        """The hold with the state that the job is resumed with: mostly its own."""
        return self if state is self.state else replace(self, state=state)

    def parked(self) -> Self:
        """The hold through a wait without a task: all that can be had again is let go."""
        return self if self.ready is None else replace(self, ready=None)

    def polling(self, now: Instant, ready: Ready | None = None) -> Self:
        """The poll is about to leave: its permit is used up, and never comes back."""
        return replace(self, permit=False, state=sending(self.state, CallKind.POLL, now), ready=ready)

    def reserved(self) -> Self:
        """One more poll is permitted and committed."""
        return replace(self, permit=True, grip=replace(self.grip, step=self.grip.step + 1))

    def intent(self, state: JobState, now: Instant) -> Checkpoint:
        """The commit before a submit leaves."""
        return self._write(state, [Event("submit_sent", now, {"try": state.submit_tries})])

    def settlement(self, state: JobState, decision: Decision, seen: Observation | None, now: Instant) -> Checkpoint:
        """The commit after a call, or of an end that needs no call."""
        more = self._waiting(state, decision.due - now) if isinstance(decision, Wait) else {}
        if seen is None:
            return self._write(state, changes(self.state, state, _POLL, now), **more)
        if state.outcome is not None and state.outcome.is_success and not is_fetched(self.spec, state.outcome):
            selected, problem = output_of(self.spec, document(self.spec, state.polls, seen, self.answers))
            state, more = replace(state, error=problem), {"output": as_json_text(selected)}
        before, after = self.answers, kept(self.spec, self.state, state, seen, self.answers)
        texts = changed_texts(before, after, seen)
        last = self._last(state, seen)
        if last is not None:
            texts["last"] = last
        if seen.kind is _POLL:
            texts["timeline"] = extended(self.entry.timeline, self.state, state)
        events = changes(self.state, state, seen.kind, now, moved_to=moved_to(before, after))
        return self._write(state, events, carried=seen.carried, **texts, **more)

    def committed(self, write: Checkpoint, state: JobState) -> Self:
        """The hold after the write was applied."""
        grip = replace(self.grip, step=self.grip.step + 1)
        answers = answers_with(self.answers, write)
        return replace(
            self,
            entry=self.entry.written(write),
            state=state,
            grip=grip,
            permit=write.reserved == 1,
            answers=answers,
            ready=self.ready if answers is self.answers else None,
        )

    def showing(self, seen: Observation) -> Self:
        """The hold after what was seen was committed."""
        shown = _digest_of(seen)
        return self if shown == self.shown else replace(self, shown=shown)

    def _write(self, state: JobState, events: Sequence[Event], **more: Any) -> Checkpoint:
        limits = self.spec.limits
        return Checkpoint(
            grip=self.grip,
            state=encode_state(state),
            phase=state.phase,
            polls=state.polls,
            polled_at=state.polled_at,
            due=state.due,
            deadline=state.deadline,
            floor=limits.floor,
            max_polls=limits.max_polls,
            outcome=state.outcome,
            finished_at=state.finished_at,
            owed=owed(self.spec, state),
            events=events,
            **more,
        )

    def _last(self, state: JobState, seen: Observation) -> str | None:
        """The answer as the last one, if it is to be written."""
        # An answer on the way to the job is shown as its last one only where no other will come.
        if (seen.kind is not _POLL and state.outcome is None) or is_unchanged(seen, self.answers):
            return None
        if state.outcome is None and self.shown is not None and _digest_of(seen) == self.shown:
            return None
        last = encode_observation(seen, self.spec.keep)
        # One that says what the last one said is written when the job is over, with its own times.
        return None if state.outcome is None and said(last) == self.entry.said else last

    def _waiting(self, state: JobState, wait: Micros) -> dict[str, Any]:
        """What goes with a wait: the next poll's permit where that is near, the job's release where it is far."""
        polls_next = state.phase in _POLLED
        is_open = self.entry.max_polls is None or state.polls < self.entry.max_polls
        reserve = polls_next and is_open and wait <= RESERVE_WITHIN
        return {"reserved": int(reserve), "release": wait > RELEASE_BEYOND}


def _digest_of(seen: Observation) -> int | None:
    """What two polls share that were answered the same."""
    if seen.digest is None or seen.kind is not _POLL or seen.error is not None:
        return None
    return hash((seen.digest, seen.status, seen.url))
