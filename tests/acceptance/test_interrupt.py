"""A Ctrl-C in code that blocks, with a real signal and in real time."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tarry import sync

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent

WAIT = """
import sys
from tarry import Fixed, JobSpec, Match, Request
from tarry.sync import Poller

spec = JobSpec(poll=Request("GET", sys.argv[1]), until=Match("body.state", succeeded="SUCCEEDED"), strategy=Fixed("1h"))
with Poller("sqlite:///jobs.db") as poller:
    poller.await_job("orders", spec)
"""


def test_ctrl_c_ends_the_script_and_not_the_job(tmp_path: Path) -> None:
    """The script is gone within seconds though a poll hangs; the poll counts, and the job lives on."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with socket.create_server(("127.0.0.1", 0)) as service:
        url = f"http://127.0.0.1:{service.getsockname()[1]}/jobs/1"
        script = subprocess.Popen(
            [sys.executable, "-c", WAIT, url], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
        )
        try:
            connection, _ = service.accept()  # the poll is under way, and stays so
            with connection:
                began = time.monotonic()
                script.send_signal(signal.SIGINT)
                _, told = script.communicate(timeout=60)
        finally:
            script.kill()  # one that has ended already stays as it is
            script.communicate()
    assert time.monotonic() - began < 15  # the poll itself would hang for 30
    assert told.rstrip().endswith("KeyboardInterrupt")
    with sync.Poller(f"sqlite:///{tmp_path}/jobs.db") as poller:
        job = poller.get("orders")
    assert (job.outcome, job.polls) == (None, 1)
