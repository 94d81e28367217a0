"""A job that ends its process, with real processes: it costs few of them, and the jobs beside it nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tarry import Fixed, JobSpec, Limits, Match, sync
from tarry.ports import CONVICTED
from tests.acceptance.killers import CODE, deadly, harmless

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
# Measuring what a process covers that dies anyway would only slow its start.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}


def spec(**changes: object) -> JobSpec:
    """A job polled by a callable, twice a second."""
    return JobSpec(
        until=Match("body.state", succeeded="SUCCEEDED", pending="RUNNING"),
        strategy=Fixed("500ms"),
        limits=Limits(min_interval="200ms", max_polls=200),
        **changes,  # type: ignore[arg-type]  # whichever fields a test gives
    )


def tarry(*command: str) -> subprocess.CompletedProcess[str]:
    """A command, in a process of its own that knows the callables."""
    started = [sys.executable, "-m", "tarry.cli", *command]
    return subprocess.run(started, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)


def test_a_callable_that_ends_its_process_is_quarantined(tmp_path: Path) -> None:
    """After so many processes the next one polls the others to their end, and whoever asks is told why this one rests."""
    database = str(tmp_path / "jobs.db")
    with sync.Poller(f"sqlite:///{database}") as poller:
        poller.add("deadly", spec(poll=deadly))
        for number in range(4):
            poller.add(f"harmless-{number}", spec(poll=harmless, args={"until": time.time() + 5}))
    codes = []
    while not codes or (codes[-1] == CODE and len(codes) < 10):
        run = tarry("run", "--until-idle", "--quiet", "--import", "tests.acceptance.killers", "--db", database)
        codes.append(run.returncode)
    assert codes == [CODE] * CONVICTED + [0]
    standing = {job["key"]: job for job in json.loads(tarry("list", "--db", database, "--json").stdout)}
    assert standing["deadly"]["quarantined"]
    assert standing["deadly"]["polls"] == CONVICTED
    assert {job["outcome"] for key, job in standing.items() if key != "deadly"} == {"succeeded"}
    told = tarry("doctor", "--db", database)
    assert "warning  quarantine  1 job ('deadly') quarantined" in told.stdout
    assert (told.returncode, "quarantined: 4 processes ended" in tarry("show", "deadly", "--db", database).stdout) == (
        0,
        True,
    )
