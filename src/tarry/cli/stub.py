"""`tarry stub`: a job service on loopback to try things against."""

from __future__ import annotations

from pathlib import Path

from tarry.cli.exits import Exit, UsageError
from tarry.cli.world import complain, say


def stub_command(port: int, log: str | None) -> int:
    """Serve until SIGINT or SIGTERM."""
    from tarry.testing.stub import StubService

    if log is not None and not Path(log).absolute().parent.is_dir():
        raise UsageError(f"--log: the folder {Path(log).absolute().parent} does not exist")
    try:
        StubService(port=port, log=log).run(ready=_announce)
    except OSError as error:
        complain(f"tarry: the service cannot run: {error.strerror or error}")
        return Exit.TROUBLE
    return Exit.OK


def _announce(url: str) -> None:
    say(f"A job service listens at {url}; stop it with Ctrl-C. In another terminal:")
    say(
        f"  tarry await '{url}/jobs/{{submit.body.jobId}}' --submit-url {url}/jobs --submit-json '{{}}' "
        "--idempotent --key first-job --until body.state --succeeded SUCCEEDED --failed FAILED "
        "--pending QUEUED,RUNNING --result body.result"
    )
