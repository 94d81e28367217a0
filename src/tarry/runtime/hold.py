"""A job in this worker's hands: what is known of its row, and the proof that it is held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tarry.codec import encode_observation, encode_state, state_of
from tarry.core import judging
from tarry.core.answers import Answers
from tarry.core.decision import Decision, Wait
from tarry.core.deliveries import owed
from tarry.core.document import document
from tarry.core.fetching import is_fetched
from tarry.core.judgement import Judgement
from tarry.core.keeping import kept
from tarry.core.moves import POLLED
from tarry.core.observation import Observation, is_folded, unfolded
from tarry.core.output import output_of
from tarry.core.spec import JobSpec
from tarry.core.state import JobState
from tarry.core.status_url import current
from tarry.core.texts import as_json_text
from tarry.core.validators import is_unchanged
from tarry.frozen import copier, maker, quick, replace
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
    tells the last answer from others without reading its body, if it can be told; `known` is what it meant, if one
    that repeats it means the same. `ready` is the last poll, if the
    next one can go out as it did. `step` and `timeline` are those of the row, which each commit changes.
    """

    entry: Entry
    spec: JobSpec
    state: JobState
    step: int
    permit: bool
    answers: Answers
    timeline: str | None
    shown: int | None = None
    known: Judgement | None = None
    ready: Ready | None = None

    @classmethod
    def of(cls, row: JobRow, spec: JobSpec) -> Self:
        """The hold of a row just claimed; `spec` is what its text says."""
        state, answers = state_of(row), answers_of(row)
        return cls(Entry.of(row), spec, state, row.step, row.reserved == 1, answers, row.timeline)

    def commanded(self, row: JobRow, spec: JobSpec) -> Self:
        """The hold after a command came; a permit that was spent stays spent."""
        return replace(self.of(row, spec), permit=self.permit)

    @property
    def grip(self) -> Grip:
        """The proof that the job is held, for the next write."""
        entry = self.entry
        return Grip(entry.id, entry.fence, entry.nonce, self.step, entry.cmd)

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

    def polling(self, ready: Ready | None = None) -> Hold:
        """The poll is about to leave: its permit is used up, and never comes back."""
        return _polling(self, permit=False, ready=ready)

    def reserved(self) -> Self:
        """One more poll is permitted and committed."""
        return replace(self, permit=True, step=self.step + 1)

    def intent(self, state: JobState, now: Instant) -> Checkpoint:
        """The commit before a submit leaves."""
        return self._write(state, [Event("submit_sent", now, {"try": state.submit_tries})])

    def settlement(self, state: JobState, decision: Decision, seen: Observation | None, now: Instant) -> Checkpoint:
        """The commit after a call, or of an end that needs no call."""
        reserved, release = self._waiting(state, decision.due - now) if isinstance(decision, Wait) else (0, False)
        if seen is None:
            return self._write(state, changes(self.state, state, _POLL, now), reserved=reserved, release=release)
        texts, moved = {}, None
        if state.outcome is not None and state.outcome.is_success and not is_fetched(self.spec, state.outcome):
            selected, problem = output_of(self.spec, document(self.spec, state.polls, seen, self.answers))
            state, texts = replace(state, error=problem), {"output": as_json_text(selected)}
        before, after = self.answers, kept(self.spec, self.state, state, seen, self.answers)
        if after is not before:
            texts |= changed_texts(before, after, seen)
            moved = moved_to(before, after)
        write = self._write(
            state,
            changes(self.state, state, seen.kind, now, moved_to=moved),
            reserved=reserved,
            release=release,
            last=self._last(state, seen),
            timeline=extended(self.timeline, self.state, state) if seen.kind is _POLL else None,
            carried=seen.carried,
        )
        return replace(write, **texts) if texts else write

    def committed(self, write: Checkpoint, state: JobState) -> Hold:
        """The hold after the write was applied."""
        answers = answers_with(self.answers, write)
        return _committed(
            self,
            entry=self.entry.written(write),
            state=state,
            step=self.step + 1,
            permit=write.reserved == 1,
            answers=answers,
            timeline=self.timeline if write.timeline is None else write.timeline,
            ready=self.ready if answers is self.answers else None,
        )

    def known_of(self, seen: Observation, shown: int | None) -> Judgement | None:
        """What an answer without its body means: it repeats the last one. `shown` is its digest."""
        return self.known if shown == self.shown and is_folded(seen) else None

    def whole(self, seen: Observation) -> Observation:
        """The answer with its body, also where our transport left that out."""
        return seen if self.ready is None or self.ready.request.known is None else unfolded(seen)

    def lasting(self, seen: Observation, shown: int | None) -> Judgement | None:
        """What the next answer that repeats this one will mean, once one has; None where that has to be read."""
        if shown is None or shown != self.shown or seen.text is None or self.ready is None or not self.ready.is_spared:
            return None
        return judging.lasting(self.spec, seen, document(self.spec, self.state.polls, seen, self.answers))

    def showing(self, shown: int | None, known: Judgement | None, digest: int | None) -> Self:
        """The hold after an answer was committed: `shown` tells it from others, `known` is what it lastingly means.

        `digest` is that of its body.
        """
        if shown == self.shown and known is self.known:
            return self
        ready = None if self.ready is None else self.ready.knowing(None if known is None else digest)
        return replace(self, shown=shown, known=known, ready=ready)

    def _write(
        self,
        state: JobState,
        events: Sequence[Event],
        *,
        reserved: int = 0,
        release: bool = False,
        last: str | None = None,
        timeline: str | None = None,
        carried: str | None = None,
    ) -> Checkpoint:
        limits = self.spec.limits
        return _checkpoint(
            self.grip,
            encode_state(state),
            state.phase,
            state.polls,
            state.polled_at,
            state.due,
            state.deadline,
            reserved,
            release,
            limits.max_polls,
            limits.floor,
            last=last,
            timeline=timeline,
            carried=carried,
            outcome=state.outcome,
            finished_at=state.finished_at,
            events=events,
            owed=() if state.outcome is None else owed(self.spec, state),
        )

    def _last(self, state: JobState, seen: Observation) -> str | None:
        """The answer as the last one, if it is to be written."""
        is_over = state.outcome is not None
        if not is_over and self.shown is not None and digest_of(seen) == self.shown:
            return None
        # An answer on the way to the job is shown as its last one only where no other will come.
        if (seen.kind is not _POLL and not is_over) or is_unchanged(seen, self.answers):
            return None
        last = encode_observation(unfolded(seen), self.spec.keep)
        # One that says what the last one said is written when the job is over, with its own times.
        return last if is_over or said(last) != self.entry.said else None

    def _waiting(self, state: JobState, wait: Micros) -> tuple[int, bool]:
        """What goes with a wait: the next poll's permit where that is near, the job's release where it is far."""
        most = self.entry.max_polls
        reserve = wait <= RESERVE_WITHIN and state.phase in POLLED and (most is None or state.polls < most)
        return int(reserve), wait > RELEASE_BEYOND


_checkpoint = maker(Checkpoint)
_polling = copier(Hold, "permit", "ready")
_committed = copier(Hold, "entry", "state", "step", "permit", "answers", "timeline", "ready")


def digest_of(seen: Observation) -> int | None:
    """What two polls share that were answered the same."""
    if seen.digest is None or seen.kind is not _POLL or seen.error is not None:
        return None
    return hash((seen.digest, seen.status, seen.url))
