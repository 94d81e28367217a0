"""What a person finds in the log: one line for each end, and no alarm for a poll that failed once."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import pytest

from tarry import Fixed, Limits, WaitTimeout
from tarry.core.policies import Errors
from tarry.words import ErrorKind
from tests.pollers import RUNNING, SUCCEEDED, World, polled

Lines = list[tuple[str, str]]


def awaited(world: World, caplog: pytest.LogCaptureFixture, **options: Any) -> Lines:
    """The lines of the runtime about one job, without those that are for a developer."""
    caplog.set_level(logging.DEBUG, "tarry.runtime")

    async def main() -> None:
        async with world.poller() as poller:
            patience = options.pop("wait_timeout", None)
            await poller.await_job("orders", polled(**options), raises=False, wait_timeout=patience)

    with contextlib.suppress(WaitTimeout):
        world.run(main)
    return [(each.levelname, each.message) for each in caplog.records if "orders" in each.message]


def above_debug(lines: Lines) -> list[str]:
    """The levels of what is seen without asking for more."""
    return [level for level, _ in lines if level != "DEBUG"]


def test_an_end_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """With the outcome and the polls."""
    assert awaited(World([RUNNING, SUCCEEDED]), caplog) == [("INFO", "job 'orders': succeeded after 2 polls")]


def test_a_limit_that_strikes_in_a_sleep_is_one_line_and_one_event(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing ends silently."""
    world = World([RUNNING])
    lines = awaited(world, caplog, limits=Limits(total_duration="30s"), strategy=Fixed("20s"))
    assert [level for level, text in lines if "timed_out" in text] == ["INFO"]
    assert world.kinds().count("finished") == 1


def test_a_wait_that_ends_early_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """The job lives on, so there is no event of an end."""
    world = World([RUNNING])
    lines = awaited(world, caplog, wait_timeout=5)
    assert [level for level, text in lines if "patience" in text] == ["INFO"]
    assert "finished" not in world.kinds()


def test_a_cancel_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """From whoever cancels."""
    caplog.set_level(logging.INFO, "tarry.runtime")
    world = World([RUNNING])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.add("orders", polled())
            await poller.cancel("orders")

    world.run(main)
    assert [each.message for each in caplog.records] == ["job 'orders': cancelled after 0 polls: cancelled here"]


def test_polls_that_fail_now_and_then_alarm_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Each is a line for a developer, as is the recovery."""
    lines = awaited(World([RUNNING, ErrorKind.TIMEOUT, RUNNING, 503, RUNNING, SUCCEEDED]), caplog)
    assert above_debug(lines) == ["INFO"]
    assert sum("in a row failed" in text for _, text in lines) == 2
    assert sum("answers again" in text for _, text in lines) == 2


def test_an_outage_of_a_minute_is_one_warning_and_one_recovery(caplog: pytest.LogCaptureFixture) -> None:
    """However many polls fail meanwhile."""
    world = World([RUNNING, *[ErrorKind.CONNECT] * 40, RUNNING, SUCCEEDED])
    lines = awaited(world, caplog, errors=Errors(max_consecutive=1000), limits=Limits(total_duration="12h"))
    assert above_debug(lines) == ["WARNING", "INFO", "INFO"]
    assert next(text for level, text in lines if level == "INFO").endswith("answers again, after 40 failed polls")
