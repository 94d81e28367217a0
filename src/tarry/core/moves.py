"""The legal moves of a job's life: one table, and the reasons for it.

A job that has a submit begins as SUBMITTING: nothing has left yet, or nothing
that counts. Before the request leaves, SENDING is committed. That row is a
promise to whoever reads it later: a submit may be out there, and its answer is
not known. A process that died at this point leaves SENDING behind, and the next
one can tell "never sent" from "perhaps sent", which is all that keeps a second
job from being started by accident.

The answer takes SENDING to WAITING (accepted), back to SUBMITTING (it is safe
to send again: no byte left, the service said "later", or it honours the
idempotency key), or to DONE (refused for good, or nobody can know).

A job without a submit begins as WAITING. From there on there are only polls.
WAITING and BLOCKED differ in what the service said last: BLOCKED is a job that
waits for a person. A poll that says "under way" leads to WAITING, one that says
"blocked" to BLOCKED. A poll that failed, or came back as "unchanged", says
nothing new, so the job stays where it was.

DONE is the end. It is reached from everywhere, by one move, and left by none:
that is why an outcome is written once.

            submit_sent           accepted
SUBMITTING ────────────▶ SENDING ──────────▶ WAITING ◀───────▶ BLOCKED
     ▲    submit_put_off    │                   │  poll_pending   │
     └──────────────────────┘                   │  poll_blocked   │
     │                      │                   │                 │
     └──────── end ─────────┴─────── end ───────┴────── end ──────┴──▶ DONE

Whatever is not in the table is a bug in the caller, and `IllegalMove` says so.
"""

from __future__ import annotations

from enum import StrEnum

from tarry.words import Phase


class Move(StrEnum):
    """What may happen to a job."""

    SUBMIT_SENT = "submit_sent"
    """A submit is about to leave."""
    SUBMIT_PUT_OFF = "submit_put_off"
    """It has to be sent again, and that is safe."""
    ACCEPTED = "accepted"
    """The service took the job."""
    POLL_SENT = "poll_sent"
    """A poll is about to leave."""
    POLL_PENDING = "poll_pending"
    """The job is under way."""
    POLL_BLOCKED = "poll_blocked"
    """The job waits for a person."""
    POLL_UNCHANGED = "poll_unchanged"
    """The answer was: as before."""
    POLL_FAILED = "poll_failed"
    """The poll brought no usable answer."""
    END = "end"
    """The outcome is known."""


MOVES: dict[tuple[Phase, Move], Phase] = {
    (Phase.SUBMITTING, Move.SUBMIT_SENT): Phase.SENDING,
    (Phase.SUBMITTING, Move.END): Phase.DONE,
    (Phase.SENDING, Move.SUBMIT_PUT_OFF): Phase.SUBMITTING,
    (Phase.SENDING, Move.ACCEPTED): Phase.WAITING,
    (Phase.SENDING, Move.END): Phase.DONE,
    (Phase.WAITING, Move.POLL_SENT): Phase.WAITING,
    (Phase.WAITING, Move.POLL_PENDING): Phase.WAITING,
    (Phase.WAITING, Move.POLL_BLOCKED): Phase.BLOCKED,
    (Phase.WAITING, Move.POLL_UNCHANGED): Phase.WAITING,
    (Phase.WAITING, Move.POLL_FAILED): Phase.WAITING,
    (Phase.WAITING, Move.END): Phase.DONE,
    (Phase.BLOCKED, Move.POLL_SENT): Phase.BLOCKED,
    (Phase.BLOCKED, Move.POLL_PENDING): Phase.WAITING,
    (Phase.BLOCKED, Move.POLL_BLOCKED): Phase.BLOCKED,
    (Phase.BLOCKED, Move.POLL_UNCHANGED): Phase.BLOCKED,
    (Phase.BLOCKED, Move.POLL_FAILED): Phase.BLOCKED,
    (Phase.BLOCKED, Move.END): Phase.DONE,
}


class IllegalMove(RuntimeError):
    """A move that the table does not have: a bug in what drives the core, never a user's mistake."""

    def __init__(self, phase: Phase, made: Move) -> None:
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
