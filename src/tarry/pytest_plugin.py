"""Pytest fixtures: a clock that jumps, a scripted job, and the stub service.

Loaded by pytest on its own once Tarry is installed; what a test does not use is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tarry.testing import FakeClock, ScriptedJob
    from tarry.testing.stub import StubService


@pytest.fixture
def fake_clock() -> FakeClock:
    """A `FakeClock` that starts at 2026-01-01T00:00:00Z."""
    from tarry.testing import FakeClock

    return FakeClock()


@pytest.fixture
def scripted_job(fake_clock: FakeClock) -> Callable[..., ScriptedJob]:
    """Makes a `ScriptedJob` on the test's `fake_clock`: `scripted_job([{"state": "DONE"}], submit=…, repeat=…)`."""
    from tarry.testing import ScriptedJob

    def make(answers: Any, **options: Any) -> ScriptedJob:
        return ScriptedJob(answers, clock=fake_clock, **options)

    return make


@pytest.fixture
def stub_service() -> Iterator[StubService]:
    """A running `StubService`, in a thread of its own; `stub_service.url` is where."""
    from tarry.testing.stub import StubService

    with StubService().run_in_thread() as stub:
        yield stub
