"""A job in this worker's hands: what is known of its row, and the proof that it is held."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from tarry.codec import decode_spec, differences, encode_answer, encode_observation, encode_spec, encode_state, state_of
from tarry.core.answers import Answers
from tarry.core.decision import Decision, Wait
from tarry.core.deliveries import owed
from tarry.core.document import document
from tarry.core.fetching import is_fetched
from tarry.core.observation import Observation
from tarry.core.output import output_of
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.core.texts import as_json_text
from tarry.ports import Checkpoint, Event, Grip, JobRow, StoredEvent
from tarry.runtime.changes import changes
from tarry.runtime.timeline import extended
from tarry.words import SECOND, CallKind, Instant, Json, Micros, Phase, micros

RESERVE_WITHIN: Micros = 5 * SECOND
"""A wait up to this long reserves its poll in the same commit; a longer one shortly before it is due."""

RELEASE_BEYOND: Micros = 30 * SECOND
"""A wait longer than this gives the job up until it is due."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A held job between two commits; every commit gives a new one.

    `permit` is true while one poll is reserved and unspent. `adopted` names
    the fields of a spec that was changed and not yet committed.
    """

    row: JobRow
    spec: JobSpec
    state: JobState
    grip: Grip
    permit: bool
    adopted: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: JobRow, given: JobSpec | None) -> Self:
        """The hold of a row just claimed, with the spec that the caller gave, if any."""
        return cls(row, decode_spec(row.spec), state_of(row), row.grip, permit=row.reserved == 1).adopting(given)

    def adopting(self, given: JobSpec | None) -> Self:
        """The hold with the spec that a caller gave last; what differs is committed with the next write."""
        if given is None or given is self.spec:
            return self
        state, adopted = self.state, tuple(differences(decode_spec(self.row.spec), given))
        if given.limits.total_duration != self.spec.limits.total_duration:
            total = given.limits.total_duration
            deadline = None if total is None else self.row.created_at + micros(total)
            # A poll that was the last before the old deadline is not the last before the new one.
            state = replace(state, deadline=deadline, closing=False)
        if given.strategy != self.spec.strategy:
            state = replace(state, stage=None)  # its phases, if it has any, begin with the next poll
        return replace(self, spec=given, state=state, adopted=adopted)

    @property
    def values(self) -> dict[str, Json]:
        """What templates can name."""
        return self.answers.values(self.row.key, self.spec.input)

    @property
    def answers(self) -> Answers:
        """What was answered so far."""
        return Answers(submit=None if self.row.submit is None else json.loads(self.row.submit))

    @property
    def next_kind(self) -> CallKind:
        """What the next call of the job is."""
        return CallKind.SUBMIT if self.state.phase in {Phase.SUBMITTING, Phase.SENDING} else CallKind.POLL

    def spent(self) -> Self:
        """The permit is used up, from before the first byte leaves; it never comes back."""
        return replace(self, permit=False)

    def reserved(self) -> Self:
        """One more poll is permitted and committed."""
        return replace(self, permit=True, grip=replace(self.grip, step=self.grip.step + 1))

    def intent(self, state: JobState, now: Instant) -> Checkpoint:
        """The commit before a submit leaves."""
        return self._write(state, now, events=[Event("submit_sent", now, {"try": state.submit_tries})])

    def adoption(self, now: Instant) -> Checkpoint:
        """The commit of a changed spec that also permits one poll."""
        return replace(self._write(self.state, now, events=[]), reserved=1)

    def settlement(self, state: JobState, decision: Decision, seen: Observation | None, now: Instant) -> Checkpoint:
        """The commit after a call, or of an end that needs no call."""
        kind, output = CallKind.POLL if seen is None else seen.kind, None
        is_success = state.outcome is not None and state.outcome.is_success
        if seen is not None and is_success and not is_fetched(self.spec, state.outcome):
            selected, problem = output_of(self.spec, document(self.spec, state, seen, self.answers))
            state, output = replace(state, error=problem), as_json_text(selected)
        write = replace(self._write(state, now, events=changes(self.state, state, kind, now)), output=output)
        if seen is not None:
            write = self._with_answer(write, state, seen)
        return self._with_wait(write, state, decision.due - now) if isinstance(decision, Wait) else write

    def committed(self, write: Checkpoint, state: JobState) -> Self:
        """The hold after the write was applied."""
        row = replace(
            self.row,
            spec=write.spec or self.row.spec,
            last=write.last or self.row.last,
            submit=write.submit or self.row.submit,
            timeline=write.timeline or self.row.timeline,
            max_polls=write.max_polls,
            event_seq=self.row.event_seq + len(write.events),
        )
        grip = replace(self.grip, step=self.grip.step + 1)
        return replace(self, row=row, state=state, grip=grip, permit=write.reserved == 1, adopted=())

    def stored(self, events: Sequence[Event]) -> list[StoredEvent]:
        """The events of the next commit with the cursors they will have."""
        first = self.row.event_seq + 1
        return [StoredEvent.of(self.row.key, self.row.run, first + i, event) for i, event in enumerate(events)]

    def _write(self, state: JobState, now: Instant, events: Sequence[Event]) -> Checkpoint:
        changed = [Event("spec_changed", now, {"fields": list(self.adopted)})] if self.adopted else []
        return Checkpoint(
            grip=self.grip,
            state=encode_state(state),
            phase=state.phase,
            polls=state.polls,
            polled_at=state.polled_at,
            due=state.due,
            deadline=state.deadline,
            floor=micros(self.spec.limits.min_interval),
            max_polls=self.spec.limits.max_polls,
            spec=encode_spec(self.spec) if self.adopted else None,
            outcome=state.outcome,
            finished_at=state.finished_at,
            owed=owed(self.spec, state),
            events=[*changed, *events],
        )

    def _with_answer(self, write: Checkpoint, state: JobState, seen: Observation) -> Checkpoint:
        if seen.kind is CallKind.SUBMIT:
            accepted = state.submitted_at is not None
            last = encode_observation(seen, self.spec.keep) if state.outcome else None
            return replace(write, submit=encode_answer(seen) if accepted else None, last=last)
        ring = extended(self.row.timeline, self.state, state)
        return replace(write, last=encode_observation(seen, self.spec.keep), timeline=ring)

    def _with_wait(self, write: Checkpoint, state: JobState, wait: Micros) -> Checkpoint:
        polls_next = state.submitted_at is not None or self.spec.submit is None
        is_open = self.row.max_polls is None or state.polls < self.row.max_polls
        reserve = polls_next and is_open and wait <= RESERVE_WITHIN
        return replace(write, reserved=int(reserve), release=wait > RELEASE_BEYOND)
