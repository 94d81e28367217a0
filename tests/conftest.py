"""What holds for every test: nothing leaves this machine, and a property finds the same examples every time."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import offline
from tests.acceptance import servers

if TYPE_CHECKING:
    from collections.abc import Generator

# A failure must be about the change, not about the day: the examples follow from the test alone.
# `pytest --hypothesis-profile=explore` looks for new ones.
settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,  # two cores are shared with other workers
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("steady")

offline.guard()

# What a shell starts in the background ignores Ctrl-C, and so would every process that a test starts to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """The outermost process of the run ends what any of them starts."""
    if servers.prepare():
        config.add_cleanup(servers.end)


_LONGEST_ID = 60
_LARGEST_ID = 10**_LONGEST_ID


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name bytes and long values after their argument: compressed bytes differ from worker to worker by their date."""
    long = (isinstance(val, str) and len(val) > _LONGEST_ID) or (isinstance(val, int) and abs(val) > _LARGEST_ID)
    return argname if long or isinstance(val, bytes) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail the test that reached beyond loopback, also when what it called swallowed the refusal."""
    offline.refused.clear()
    answer = yield
    if offline.refused:
        pytest.fail(f"{item.nodeid} reached beyond loopback: {', '.join(offline.refused)}", pytrace=False)
    return answer
