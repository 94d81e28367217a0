"""Texts and keys on their way into the database."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarry.store.rows import clean, cleaned, fits, json_text, label_fragments

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


@given(ANY_TEXT)
def test_a_cleaned_text_can_be_stored(text: str) -> None:
    """Whatever came, what goes in is UTF-8 without NUL; what was fine is unchanged."""
    out = clean(text)
    assert "\x00" not in out
    assert out.encode().decode() == out
    assert clean(out) == out
    if fits(text, 10**9):
        assert out == text


@given(ANY_TEXT)
def test_a_cleaned_json_text_means_the_same(text: str) -> None:
    """Escapes in JSON are JSON's own: the value survives."""
    raw = json.dumps(text, ensure_ascii=False)
    assert json.loads(clean(raw)) == text


TRICKY = st.text('a",:{}\\\x00é', max_size=4)


@given(st.dictionaries(TRICKY, TRICKY, max_size=3), TRICKY, TRICKY)
def test_a_fragment_is_in_labels_exactly_when_the_label_is(labels: dict[str, str], name: str, value: str) -> None:
    """Searching the stored text finds the pair, and nothing that only looks like it."""
    stored = json_text(labels)
    for pair in [(name, value), *labels.items()]:
        inside = any(fragment in stored for fragment in label_fragments(*pair))
        assert inside is (labels.get(pair[0]) == pair[1])


@pytest.mark.parametrize(
    ("text", "most", "fine"), [("é", 2, True), ("é", 1, False), ("a\x00", 9, False), ("", 0, True)]
)
def test_keys_are_measured_in_bytes(text: str, most: int, *, fine: bool) -> None:
    """As databases measure them."""
    assert fits(text, most) is fine


def test_nothing_stays_nothing() -> None:
    """No text is not an empty one."""
    assert (cleaned(None), cleaned("")) == (None, "")
