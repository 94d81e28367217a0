"""Each rule of the contract has its test, named after it."""

from __future__ import annotations

import re
from pathlib import Path

RULES = [*(f"s{number:02}" for number in range(1, 32)), "s25b", "s27b"]


def test_each_rule_has_a_test() -> None:
    """S1 to S31, with S25b and S27b; and no test is named after a rule that is none."""
    texts = [path.read_text() for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__)]
    named = {name for text in texts for name in re.findall(r"^def test_(s[0-9]+b?)_", text, re.MULTILINE)}
    assert named == set(RULES)
