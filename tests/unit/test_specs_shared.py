"""The specs of many jobs: shared where they are the same, and forgotten where they are not used any more."""

from __future__ import annotations

import tracemalloc

from tarry.codec import decode_spec, encode_spec
from tarry.runtime.specs import one_text
from tests.pollers import polled


def test_jobs_of_one_spec_share_it() -> None:
    """The text and what it says."""
    first, second = encode_spec(polled()), encode_spec(polled())
    assert first is not second
    assert one_text(first) is one_text(second)
    assert decode_spec(first) is decode_spec(second)


def test_texts_are_not_held_for_ever() -> None:
    """A process that goes through many specs does not grow with each."""
    size, many = 10_000, 2_000
    tracemalloc.start()
    try:
        for number in range(many):
            one_text("x" * size + str(number))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < size * many / 4
