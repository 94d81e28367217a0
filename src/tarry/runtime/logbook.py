"""What a step of a job says in the log: one line for its end, and no alarm for a poll that failed once."""

from __future__ import annotations

import logging

from tarry.core.state import JobState
from tarry.words import SECOND, Instant, Micros

log = logging.getLogger("tarry.runtime")

SUSTAINED: Micros = 60 * SECOND
"""How long polls have to fail in a row before it is a warning."""


def record(before: JobState, after: JobState, now: Instant) -> None:
    """One line at most: the end, a failed poll (DEBUG), the first after a minute of them (WARNING), or the recovery."""
    failing = after.streak.length
    if after.outcome is not None:
        log.info("job %r: %s after %d polls%s", after.key, after.outcome, after.polls, _why(after))
    elif failing > before.streak.length:
        lasts, lasted = _for(after, now), _for(after, _judged_at(before, now))
        is_news = lasted < SUSTAINED <= lasts
        level = logging.WARNING if is_news else logging.DEBUG
        log.log(
            level, "job %r: %d polls in a row failed, for %d s: %s", after.key, failing, lasts // SECOND, after.error
        )
    elif before.streak.length and not failing:
        lasted = _for(before, _judged_at(before, now))
        level = logging.INFO if lasted >= SUSTAINED else logging.DEBUG
        log.log(level, "job %r: answers again, after %d failed polls", after.key, before.streak.length)


def _for(state: JobState, at: Instant) -> Micros:
    """How long the polls had been failing by then; those that spend no budget are no outage."""
    return 0 if state.streak.since is None else at - state.streak.since


def _judged_at(state: JobState, now: Instant) -> Instant:
    """When the poll before was judged: its wait began then."""
    return now if state.due is None or state.wait is None else state.due - state.wait


def _why(state: JobState) -> str:
    return "" if state.reason is None else f": {state.reason}"
