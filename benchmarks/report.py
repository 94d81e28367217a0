"""The table, and the page that holds the last one."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure
from benchmarks.runner import Found

_BEGIN, _END = "<!-- measured -->", "<!-- /measured -->"


def table(figures: Sequence[Figure], found: Found) -> str:
    """One line a figure, as a Markdown table."""
    head = ["| figure | measured | target | met | made of |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(_line(figure, found) for figure in figures)])


def _line(figure: Figure, found: Found) -> str:
    bound = _bound(figure)
    problems = [f"`{part}`: {found.problems[part]}" for part in figure.parts if part in found.problems]
    if problems:
        return f"| {figure.title} | – | {bound} | – | {'; '.join(problems)} |"
    value = found.value(figure)
    made = "; ".join(f"`{part}` {_reading(found, part)}" for part in figure.parts)
    met = "–" if figure.target is None else "yes" if figure.is_met(value) else "**no**"
    return f"| {figure.title} | {_number(value)} {figure.unit} | {bound} | {met} | {made} |"


def _bound(figure: Figure) -> str:
    if figure.target is None:
        return "–"
    return f"{'≤' if figure.at == 'most' else '≥'} {_number(figure.target)} {figure.unit}"


def _reading(found: Found, part: str) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in found.reading(part).items())


def _number(value: float) -> str:
    """Three digits are more than such figures can be trusted for."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def conditions(runs: int, rounds: int) -> str:
    """What the figures were measured on, as far as it matters."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    fsync = f"an fsync takes {_fsync_us():,.0f} µs"
    medians = f"medians of {runs} runs, of {rounds} where jobs are only polled"
    return f"{python}, {os.cpu_count()} cores, SQLite {sqlite3.sqlite_version}, {fsync}; {medians}."


def _fsync_us() -> float:
    """Of one page, where the databases of the parts lie."""
    spans = []
    with tempfile.TemporaryFile() as file:
        for _ in range(50):
            file.write(b"x" * 4096)
            file.flush()
            begun = time.perf_counter()
            os.fsync(file.fileno())
            spans.append(time.perf_counter() - begun)
    return median(spans) * 1e6


def write(page: Path, text: str) -> None:
    """Put the text between the page's markers."""
    before, _, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    page.write_text(f"{before}{_BEGIN}\n{text}\n{_END}{after}", encoding="utf-8")
