"""Slips: what other languages write, and what JMESPath wants instead."""

from __future__ import annotations

import re

_SLIPS = (
    (r"^\s*\$|^\s*(response|output)\b", "the document is the answer itself, write body.state"),
    (r"===|(?<![=!<>])=(?!=)", "equal is =="),
    (r"(==|!=|[<>]=?)\s*-?\d", "a number is written `200`, between backticks"),
    (r"(==|!=)\s*\"", "a text is written 'DONE', between single quotes"),
    (r"\b(true|false|null)\b", "true, false and null are written `true`, between backticks"),
    (r"\b(and|or|not)\b", "and is &&, or is ||, not is !"),
    (r"\bin\s*[\[(]", "one of several is contains(['A', 'B'], body.state)"),
    (r"\[\s*'", 'a member is written body.name, or body."odd name"'),
)
_COMPILED = tuple((re.compile(slip), meant) for slip, meant in _SLIPS)


def meant(expression: str) -> str:
    """What is to be written instead, to be put after what is wrong; nothing where no slip is known."""
    return next((f"; {hint}" for slip, hint in _COMPILED if slip.search(expression)), "")
