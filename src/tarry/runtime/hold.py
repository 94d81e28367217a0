"""A job in this worker's hands: what is known of its row, and the proof that it is held."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from tarry.codec import decode_spec, differences, encode_answer, encode_observation, encode_spec, encode_state, state_of
from tarry.core.decision import Decision, Wait
from tarry.core.document import document
from tarry.core.expressions import search
from tarry.core.observation import Observation
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.ports import Checkpoint, Event, Grip, JobRow, StoredEvent
from tarry.runtime.changes import changes
from tarry.runtime.timeline import extended
from tarry.words import SECOND, CallKind, Instant, Json, Micros, micros

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
        stored = decode_spec(row.spec)
        spec, state = given or stored, state_of(row)
        adopted = tuple(differences(stored, spec))
        if "limits.total_duration" in adopted:
            total = spec.limits.total_duration
            # A poll that was the last before the old deadline is not the last before the new one.
            state = replace(state, deadline=None if total is None else row.created_at + micros(total), closing=False)
        return cls(row, spec, state, row.grip, permit=row.reserved == 1, adopted=adopted)

    @property
    def values(self) -> dict[str, Json]:
        """What templates can name."""
        return {"input": self.spec.input, "key": self.row.key, "submit": self.submit}

    @property
    def submit(self) -> Any:
        """The answer to the submit, as {status, headers, body, url}; None before there was one."""
        return None if self.row.submit is None else json.loads(self.row.submit)

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
        kind = CallKind.POLL if seen is None else seen.kind
        write = self._write(state, now, events=changes(self.state, state, kind, now))
        if seen is not None:
            write = self._with_answer(write, state, seen)
        if isinstance(decision, Wait):
            polls_next = state.submitted_at is not None or self.spec.submit is None
            open_poll = self.row.max_polls is None or state.polls < self.row.max_polls
            span = decision.due - now
            reserve = polls_next and open_poll and span <= RESERVE_WITHIN
            return replace(write, reserved=int(reserve), release=span > RELEASE_BEYOND)
        return write

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
        return [StoredEvent(self.row.key, self.row.run, first + i, event) for i, event in enumerate(events)]

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
            events=[*changed, *events],
        )

    def _with_answer(self, write: Checkpoint, state: JobState, seen: Observation) -> Checkpoint:
        if seen.kind is CallKind.SUBMIT:
            accepted = state.submitted_at is not None
            last = encode_observation(seen, self.spec.keep) if state.outcome else None
            return replace(write, submit=encode_answer(seen) if accepted else None, last=last)
        ring = extended(self.row.timeline, self.state, state)
        write = replace(write, last=encode_observation(seen, self.spec.keep), timeline=ring)
        if state.outcome is not None and state.outcome.is_success:
            return replace(write, output=self._output(state, seen))
        return write

    def _output(self, state: JobState, seen: Observation) -> str:
        seen_as = document(self.spec, state, seen, submit=self.submit)
        output = seen_as["body"] if self.spec.result is None else search(self.spec.result, seen_as)
        return json.dumps(output, allow_nan=False)
