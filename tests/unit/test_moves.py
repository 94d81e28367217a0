from __future__ import annotations

import pickle
from itertools import product

import pytest

from tarry.core.moves import MOVES, IllegalMove, Move, move
from tarry.words import Phase

P, S, T, L = Phase.PREPARING, Phase.SUBMITTING, Phase.SENDING, Phase.PROBING
W, B, D = Phase.WAITING, Phase.BLOCKED, Phase.DONE

LEGAL = {
    Move.BASELINE_SENT: {P: P},
    Move.BASELINE_PUT_OFF: {P: P},
    Move.BASELINE_TAKEN: {P: S},
    Move.SUBMIT_SENT: {S: T},
    Move.SUBMIT_PUT_OFF: {T: S},
    Move.SUBMIT_LOST: {T: L},
    Move.PROBE_SENT: {L: L},
    Move.PROBE_PUT_OFF: {L: L},
    Move.ACCEPTED: {T: W, L: W},
    Move.POLL_SENT: {W: W, B: B},
    Move.POLL_PENDING: {W: W, B: W},
    Move.POLL_BLOCKED: {W: B, B: B},
    Move.POLL_MOVED: {W: W, B: B},
    Move.POLL_UNCHANGED: {W: W, B: B},
    Move.POLL_FAILED: {W: W, B: B},
    Move.END: {P: D, S: D, T: D, L: D, W: D, B: D},
}


@pytest.mark.parametrize(("phase", "made"), list(product(Phase, Move)))
def test_each_pair_is_legal_or_refused(phase: Phase, made: Move) -> None:
    """The table holds what is written here a second time, and nothing else."""
    if phase in LEGAL[made]:
        assert move(phase, made) is LEGAL[made][phase]
    else:
        with pytest.raises(IllegalMove, match=f"a job that is {phase} cannot make the move {made}"):
            move(phase, made)


def test_no_move_leaves_done() -> None:
    """An outcome is written once: nothing follows it."""
    assert not [made for phase, made in MOVES if phase is Phase.DONE]


def test_every_phase_can_be_reached_and_left() -> None:
    """No phase is a dead end but the last, and from each the end is one move away."""
    assert set(MOVES.values()) == set(Phase)
    assert {phase for phase, made in MOVES if made is Move.END} == set(Phase) - {Phase.DONE}


def test_an_illegal_move_pickles_with_its_facts() -> None:
    """It carries the phase and the move over a process boundary."""
    error = pickle.loads(pickle.dumps(IllegalMove(Phase.DONE, Move.END)))  # our own bytes
    assert (error.phase, error.made) == (Phase.DONE, Move.END)
