"""What a row of the store holds, checked as a whole."""

from __future__ import annotations

from tarry.codec.answers import decode_answer, decode_status_url, decode_validators
from tarry.codec.reading import parsed
from tarry.codec.states import decode_state
from tarry.codec.timeline import decode_timeline
from tarry.core.state import JobState
from tarry.errors import CheckpointError
from tarry.frozen import replace
from tarry.ports import JobRow


def state_of(row: JobRow) -> JobState:
    """The state of a stored job: what the row's columns repeat, they have right.

    Raises `CheckpointError` when the row contradicts its own state, and for what the runtime reads
    later: nothing is claimed or sent for a job that cannot be carried on.
    """
    try:
        state = decode_state(row.state)
        decode_timeline(row.timeline)
        decode_answer(row.submit, "submit")
        decode_answer(row.baseline, "baseline")
        decode_answer(row.poll, "poll")
        decode_status_url(row.status_url)
        decode_validators(row.validators)
        if row.carried is not None:
            parsed(row.carried, "carried")
    except CheckpointError as error:
        raise CheckpointError(f"job {row.key!r}: {error}") from error
    for name, stored, held in (
        ("key", row.key, state.key),
        ("phase", row.phase, state.phase),
        ("outcome", row.outcome, state.outcome),
    ):
        if stored != held:
            raise CheckpointError(f"job {row.key!r}: its row has {name} {stored}, its state {held}")
    return replace(state, polls=row.polls, polled_at=row.polled_at, due=row.due, deadline=row.deadline)
