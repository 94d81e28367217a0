from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests import offline

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def run_pytest(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    """One test with this body, run under our conftest in a process of its own."""
    test = folder / "test_inner.py"
    test.write_text(
        "import socket\n\ndef test_inner():\n" + "".join(f"    {line}\n" for line in dedent(body).split("\n"))
    )
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "--rootdir", "."]
    return subprocess.run([*command, test.name], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)


@pytest.mark.parametrize(
    "reach",
    [
        'socket.create_connection(("192.0.2.1", 80), timeout=0.01)',
        'socket.getaddrinfo("example.com", 443)',
        'socket.gethostbyname("example.com")',
        'socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"", ("192.0.2.1", 53))',
        'socket.socket().bind(("0.0.0.0", 0))',
        'socket.socket(socket.AF_INET6).connect(("2001:db8::1", 80))',
    ],
)
def test_a_test_that_reaches_beyond_loopback_fails(tmp_path: Path, reach: str) -> None:
    """The test fails even where the code under test swallows every exception."""
    run = run_pytest(tmp_path, f"try:\n    {reach}\nexcept Exception:\n    pass")
    assert run.returncode == 1, run.stdout + run.stderr
    assert "reached beyond loopback" in run.stdout


def test_a_test_that_stays_on_loopback_passes(tmp_path: Path) -> None:
    """A server and a client on 127.0.0.1 and on a Unix socket are left alone."""
    run = run_pytest(
        tmp_path,
        """\
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()).close()
        socket.getaddrinfo("localhost", 80)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("unix")
        """,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        (b"127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        (None, True),
        ("0.0.0.0", False),  # noqa: S104  # refused, not bound
        ("", False),
        ("::", False),
        ("192.0.2.1", False),
        ("localhost.example.com", False),
    ],
)
def test_only_this_machine_is_loopback(host: object, expected: bool) -> None:  # a column of the table
    """Names and addresses of this machine pass; all others, and the wildcard, do not."""
    assert offline.is_loopback(host) is expected


def test_a_script_that_reaches_beyond_loopback_fails(tmp_path: Path) -> None:
    """The same guard holds for an example that runs as a process."""
    script = tmp_path / "script.py"
    script.write_text(
        "import contextlib, socket\nwith contextlib.suppress(Exception):\n    socket.gethostbyname('a.example')\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "tests.offline", str(script)], env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert "gethostbyname" in run.stderr
