"""The job service of the demo: how it is started, and what its log says."""

from __future__ import annotations

import json
from pathlib import Path

from tarry.cli.demo.story import Seen

STAGE = 1.5
"""Seconds that a job spends in each of its three stages: long enough for a kill half-way."""


def arguments(log: Path) -> tuple[str, ...]:
    """Arguments of the Python process that serves on a free loopback port."""
    return ("-m", "tarry.testing.stub", "--port", "0", "--step", str(STAGE), "--log", str(log))


def url_in(line: str) -> str:
    """The URL in the line that the service prints when it is ready; raises ValueError."""
    return str(json.loads(line)["url"])


def read_log(log: Path) -> list[Seen]:
    """The submits and polls that the service saw, oldest first; a line half written is not there yet."""
    if not log.exists():
        return []
    complete = log.read_text(encoding="utf-8").rpartition("\n")[0]
    entries = [json.loads(line) for line in complete.splitlines()]
    return [
        Seen(entry["at"], entry["method"], entry["path"], entry["status"], entry["job"])
        for entry in entries
        if entry["kind"] in {"submit", "poll"}
    ]
