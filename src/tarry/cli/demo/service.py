"""The job service of the demo: how it is started, and what its log says."""

from __future__ import annotations

import json
from pathlib import Path

from tarry.cli.demo.story import Seen


def arguments(log: Path) -> tuple[str, ...]:
    """Arguments of the Python process that serves on a free loopback port.

    Its jobs move on with each poll and are done at the fourth, so the kill
    after the second is half-way on a slow machine too.
    """
    return ("-m", "tarry.testing.stub", "--port", "0", "--step", "poll", "--log", str(log))


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
