"""Changed copies of frozen values."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from tarry.core.state import JobState
from tarry.frozen import replace
from tarry.words import Phase

STATE = JobState("orders", Phase.WAITING, 1, None, 2)


def test_a_copy_differs_in_what_was_changed_alone() -> None:
    """It is what `dataclasses.replace` gives, and the original stays as it was."""
    changed = replace(STATE, polls=3, status="RUNNING")
    assert changed == dataclasses.replace(STATE, polls=3, status="RUNNING")
    assert type(changed) is JobState
    assert STATE.polls == 0
    assert hash(changed) != hash(STATE)
    assert pickle.loads(pickle.dumps(changed)) == changed


def test_a_copy_is_frozen() -> None:
    """As the original is."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        replace(STATE, polls=3).polls = 4  # type: ignore[misc]  # what must not work


def test_what_is_no_field_is_refused() -> None:
    """A slip is an error, not a value that nobody reads."""
    with pytest.raises(AttributeError, match="pols"):
        replace(STATE, pols=3)
