"""The legal moves of a job's life: one table, and the reasons for it.

A job that has a baseline begins as PREPARING, and becomes SUBMITTING once that is
taken. A failure puts the baseline off: it only looks, so it is asked for again.

A job that has a submit and no baseline begins as SUBMITTING: nothing has left yet, or nothing
that counts. Before the request leaves, SENDING is committed. That row is a
promise to whoever reads it later: a submit may be out there, and its answer is
not known. A process that died at this point leaves SENDING behind, and the next
one can tell "never sent" from "perhaps sent", which is all that keeps a second
job from being started by accident.

The answer takes SENDING to WAITING (accepted), back to SUBMITTING (it is safe
to send again: no byte left, the service said "later", or it honours the
idempotency key), or to DONE (refused for good, or nobody can know).

A lost answer leads to PROBING where the spec has a probe: a request that looks for
the job. It is put off until it finds the job, which is then WAITING as if the
submit had been answered, or until it is given up, which leaves the submit unknown.
PROBING never leads back to SUBMITTING: that would be the second submit.

A job without a submit begins as WAITING. From there on there are only polls.
WAITING and BLOCKED differ in what the service said last: BLOCKED is a job that
waits for a person. A poll that says "under way" leads to WAITING, one that says
"blocked" to BLOCKED. A poll that failed, came back as "unchanged" or only moved the
status URL says nothing new, so the job stays where it was.

DONE is the end. It is reached from everywhere, by one move, and left by none:
that is why an outcome is written once.

PREPARING
     │ baseline_taken
     ▼      submit_sent           accepted
SUBMITTING ────────────▶ SENDING ──────────▶ WAITING ◀───────▶ BLOCKED
     ▲    submit_put_off   │ │                ▲ │  poll_pending   │
     └─────────────────────┘ │ submit_lost    │ │  poll_blocked   │
     │                       ▼    accepted    │ │                 │
     │                    PROBING ────────────┘ │                 │
     │                       │                  │                 │
     └───────── end ─────────┴────── end ───────┴────── end ──────┴──▶ DONE

Whatever is not in the table is a bug in the caller, and `IllegalMove` says so.
"""

from __future__ import annotations

from enum import StrEnum

from tarry.words import CallKind, Phase


class Move(StrEnum):
    """What may happen to a job."""

    BASELINE_SENT = "baseline_sent"
    """A request for the baseline is about to leave."""
    BASELINE_PUT_OFF = "baseline_put_off"
    """It has to be made again."""
    BASELINE_TAKEN = "baseline_taken"
    """What was before the submit is known."""
    SUBMIT_SENT = "submit_sent"
    """A submit is about to leave."""
    SUBMIT_PUT_OFF = "submit_put_off"
    """It has to be sent again, and that is safe."""
    SUBMIT_LOST = "submit_lost"
    """Nobody knows whether it arrived, and the spec has a probe to find out."""
    PROBE_SENT = "probe_sent"
    """A probe is about to leave."""
    PROBE_PUT_OFF = "probe_put_off"
    """It did not find the job, or failed, and is made again."""
    ACCEPTED = "accepted"
    """The service took the job."""
    POLL_SENT = "poll_sent"
    """A poll is about to leave."""
    POLL_PENDING = "poll_pending"
    """The job is under way."""
    POLL_BLOCKED = "poll_blocked"
    """The job waits for a person."""
    POLL_MOVED = "poll_moved"
    """The job is to be polled elsewhere."""
    POLL_UNCHANGED = "poll_unchanged"
    """The answer was: as before."""
    POLL_FAILED = "poll_failed"
    """The poll brought no usable answer."""
    END = "end"
    """The outcome is known."""


MOVES: dict[tuple[Phase, Move], Phase] = {
    (Phase.PREPARING, Move.BASELINE_SENT): Phase.PREPARING,
    (Phase.PREPARING, Move.BASELINE_PUT_OFF): Phase.PREPARING,
    (Phase.PREPARING, Move.BASELINE_TAKEN): Phase.SUBMITTING,
    (Phase.PREPARING, Move.END): Phase.DONE,
    (Phase.SUBMITTING, Move.SUBMIT_SENT): Phase.SENDING,
    (Phase.SUBMITTING, Move.END): Phase.DONE,
    (Phase.SENDING, Move.SUBMIT_PUT_OFF): Phase.SUBMITTING,
    (Phase.SENDING, Move.SUBMIT_LOST): Phase.PROBING,
    (Phase.SENDING, Move.ACCEPTED): Phase.WAITING,
    (Phase.SENDING, Move.END): Phase.DONE,
    (Phase.PROBING, Move.PROBE_SENT): Phase.PROBING,
    (Phase.PROBING, Move.PROBE_PUT_OFF): Phase.PROBING,
    (Phase.PROBING, Move.ACCEPTED): Phase.WAITING,
    (Phase.PROBING, Move.END): Phase.DONE,
    (Phase.WAITING, Move.POLL_SENT): Phase.WAITING,
    (Phase.WAITING, Move.POLL_PENDING): Phase.WAITING,
    (Phase.WAITING, Move.POLL_BLOCKED): Phase.BLOCKED,
    (Phase.WAITING, Move.POLL_MOVED): Phase.WAITING,
    (Phase.WAITING, Move.POLL_UNCHANGED): Phase.WAITING,
    (Phase.WAITING, Move.POLL_FAILED): Phase.WAITING,
    (Phase.WAITING, Move.END): Phase.DONE,
    (Phase.BLOCKED, Move.POLL_SENT): Phase.BLOCKED,
    (Phase.BLOCKED, Move.POLL_PENDING): Phase.WAITING,
    (Phase.BLOCKED, Move.POLL_BLOCKED): Phase.BLOCKED,
    (Phase.BLOCKED, Move.POLL_MOVED): Phase.BLOCKED,
    (Phase.BLOCKED, Move.POLL_UNCHANGED): Phase.BLOCKED,
    (Phase.BLOCKED, Move.POLL_FAILED): Phase.BLOCKED,
    (Phase.BLOCKED, Move.END): Phase.DONE,
}

POLLED = frozenset(phase for phase, made in MOVES if made is Move.POLL_SENT)
"""The phases in which a job is polled."""


class IllegalMove(RuntimeError):
    """A move that the table does not have: a bug in what drives the core, never a user's mistake."""

    def __init__(self, phase: Phase, made: Move | CallKind) -> None:
        super().__init__(phase, made)
        self.phase = phase
        self.made = made

    def __str__(self) -> str:
        return f"a job that is {self.phase} cannot make the move {self.made}"


def move(phase: Phase, made: Move) -> Phase:
    """The phase after the move. Raises `IllegalMove`."""
    try:
        return MOVES[phase, made]
    except KeyError:
        raise IllegalMove(phase, made) from None
