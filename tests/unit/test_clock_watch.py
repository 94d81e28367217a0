"""Jumps of the clock are noticed, and nothing else is taken for one."""

from __future__ import annotations

import logging

import pytest

from tarry.runtime.clock_watch import ClockWatch
from tarry.testing import FakeClock
from tarry.words import HOUR, MILLISECOND, SECOND


class Skewed:
    """A clock that is set while its loop goes on."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.skew = 0

    def now(self) -> int:
        return self._clock.now() + self.skew

    async def sleep(self, span: int) -> None:
        await self._clock.sleep(span)


@pytest.mark.parametrize(("skew", "is_jump"), [(HOUR, True), (-HOUR, True), (SECOND, True), (20 * MILLISECOND, False)])
def test_a_clock_that_is_set_has_jumped(skew: int, *, is_jump: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Forward and back; once each, with a warning that says how far. A little drift is none."""
    clock = FakeClock()
    skewed = Skewed(clock)

    async def main() -> None:
        watch = ClockWatch(skewed)
        await clock.sleep(60 * SECOND)
        assert not watch.has_jumped()
        skewed.skew = skew
        assert watch.has_jumped() is is_jump
        assert not watch.has_jumped()

    with caplog.at_level(logging.WARNING, "tarry.runtime"):
        clock.run(main)
    assert ["the clock jumped by" in line for line in caplog.messages] == ([True] if is_jump else [])
