"""The text of a timeline says what a plain list of the last polls would."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarry.codec import decode_timeline, extended_timeline
from tarry.codec.timeline import Mark
from tarry.errors import CheckpointError
from tarry.words import Verdict, WaitSource

MOST = 5

marks: st.SearchStrategy[Mark] = st.tuples(
    st.integers(-(10**12), 10**12),
    st.sampled_from(["pending", "error"]),
    st.sampled_from(["strategy", "backoff", None]),
)
polls = st.lists(st.tuples(marks, st.sampled_from(["strategy", "nudge", None])), max_size=20)


def listed(old: list[Mark], polls: list[tuple[Mark, str | None]]) -> list[Mark]:
    """The marks as a list: each poll says what set the wait before it."""
    for poll, waited in polls:
        old = [*old[:-1], (*old[-1][:2], waited), poll] if old else [poll]
    return old


@given(polls)
def test_a_timeline_keeps_the_last_polls(polls: list[tuple[Mark, str | None]]) -> None:
    """Times, verdicts and sources come back, whatever follows what; never more than the most."""
    stored = None
    for done, (poll, waited) in enumerate(polls, 1):
        stored = extended_timeline(stored, poll, waited, MOST)
        assert decode_timeline(stored) == listed([], polls[:done])[-MOST:]


@given(st.lists(marks, max_size=8), polls)
def test_a_list_of_marks_is_carried_on(old: list[Mark], polls: list[tuple[Mark, str | None]]) -> None:
    """A timeline as it was written once is read, and goes on as if it had been written as it is now."""
    stored = json.dumps(old)
    assert decode_timeline(stored) == old
    for done, (poll, waited) in enumerate(polls, 1):
        stored = extended_timeline(stored, poll, waited, MOST)
        assert decode_timeline(stored) == listed(old, polls[:done])[-MOST:]


def test_a_steady_job_takes_few_bytes() -> None:
    """64 polls, 30 seconds apart, take less than 500 characters."""
    stored = None
    for poll in range(100):
        stored = extended_timeline(stored, (poll * 30_017, "pending", "strategy"), "strategy", 64)
    assert len(stored or "") < 500


@pytest.mark.parametrize(
    "stored",
    [
        '[1,0,"redirect",",hint"]',
        '[1,0,"a\\"b",null]',
        '[1,0,"pending","strategy",["Pending",null,1]]',
        '[[0,"a,b",null]]',
    ],
)
def test_a_word_that_is_none_of_ours_is_damage(stored: str) -> None:
    """It is told at once: a text that is extended must not be cut in the middle of another."""
    with pytest.raises(CheckpointError):
        decode_timeline(stored)


def test_all_our_words_are_words() -> None:
    """Whatever a poll can be said to be."""
    for word in [*Verdict, *WaitSource, "error"]:
        assert decode_timeline(extended_timeline(None, (0, word, word), None, MOST)) == [(0, word, word)]


def test_a_text_with_blanks_is_carried_on() -> None:
    """As somebody may have written it who changed it by hand."""
    stored = json.dumps(
        json.loads(extended_timeline('[1,5,"pending","strategy"]', (7, "error", None), "strategy", MOST))
    )
    assert decode_timeline(extended_timeline(stored, (9, "pending", None), "backoff", MOST)) == [
        (5, "pending", "strategy"),
        (7, "error", "backoff"),
        (9, "pending", None),
    ]
