"""The checklist tells where each thing is proved, or why it is not here."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/explanation/checklist.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| ([FG][0-9]+) \| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE))
NUMBERS = [*(f"F{number}" for number in range(1, 63)), *(f"G{number}" for number in range(1, 24))]


@cache
def names_in(path: str) -> frozenset[str]:
    """The names of the tests in a file."""
    file = ROOT / path
    return frozenset(
        re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE) if file.is_file() else ()
    )


def test_nothing_is_left_out() -> None:
    """Each number has one row, in order."""
    assert re.findall(r"^\| ([FG][0-9]+) \|", PAGE, re.MULTILINE) == NUMBERS
    assert list(ROWS) == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_each_row_has_its_proof_or_its_reason(number: str) -> None:
    """Tests that exist, by path and name; or "not here" and why."""
    proofs = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", ROWS[number])
    assert [name for path, name in proofs if name not in names_in(path)] == []
    assert proofs or re.match(r"not (here|yet): .{10,}", ROWS[number])
