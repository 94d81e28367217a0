"""Fenced blocks of a Markdown page, and expected output in which `...` stands for anything."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(
    r"^(?:<!-- (?P<mark>[a-z]+) -->\n)?^(?P<fence>```+|:::+)(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: `mark` is the comment on the line above, `line` that of its first line."""

    path: Path
    line: int
    language: str
    mark: str
    body: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def blocks(path: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(path, text.count("\n", 0, m.start("body")) + 1, m["language"].strip(), m["mark"] or "", m["body"])
        for m in _FENCE.finditer(text)
    ]


def agrees(printed: str, expected: str) -> bool:
    """Whether the output is the expected one, `...` standing for anything, however wide the columns are."""
    pattern = ".*?".join(re.escape(part) for part in _trimmed(expected).split("..."))
    return re.fullmatch(pattern, _trimmed(printed), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(re.sub(" {2,}", "  ", line.rstrip()) for line in text.strip().splitlines())
