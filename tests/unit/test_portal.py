"""The portal: a resource held open on a loop of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tarry.errors import TarryError
from tarry.portal import Portal


@asynccontextmanager
async def resource(steps: list[str], *, slow: bool = False, broken: bool = False) -> AsyncIterator[None]:
    """Tells when it is entered and left; leaving may take for ever, or fail."""
    steps.append("entered")
    try:
        yield
        if slow:
            await asyncio.Event().wait()
    finally:
        steps.append("left")
    if broken:
        raise OSError("cannot be left")


async def answer() -> str:
    """What runs on the loop's thread."""
    return threading.current_thread().name


def opened(**options: Any) -> tuple[Portal, list[str]]:
    """A portal that is open, and what its resource tells."""
    steps: list[str] = []
    portal = Portal(resource(steps, **options))
    portal.open()
    return portal, steps


def test_calls_run_on_the_loops_thread() -> None:
    """And the resource is left once, however often it is closed."""
    portal, steps = opened()
    assert portal.call(answer) == "tarry-loop"
    portal.close()
    portal.close()
    portal.hurry()
    assert steps == ["entered", "left"]
    with pytest.raises(TarryError, match="closed"):
        portal.call(answer)
    portal.post(answer)


def test_what_opening_or_closing_raises_is_told() -> None:
    """The error comes to whoever opened or closed, and later calls are refused."""
    portal, _ = opened(broken=True)
    with pytest.raises(OSError, match="cannot be left"):
        portal.close()

    @asynccontextmanager
    async def locked() -> AsyncIterator[None]:
        raise OSError("cannot be entered")
        yield

    closed = Portal(locked())
    with pytest.raises(OSError, match="cannot be entered"):
        closed.open()
    closed.close()


def test_a_call_that_outlives_the_portal_is_ended() -> None:
    """It hears that the poller was closed."""
    portal, _ = opened()
    running = threading.Event()

    async def forever() -> None:
        running.set()
        await asyncio.Event().wait()

    def close() -> None:
        running.wait()
        portal.close()

    closing = threading.Thread(target=close)
    closing.start()
    with pytest.raises(TarryError, match="closed meanwhile"):
        portal.call(forever)
    closing.join()


def test_an_interrupt_while_closing_hurries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second Ctrl-C cuts what the close waits for, and is raised after that."""
    portal, steps = opened(slow=True)
    join, interrupts = portal._thread.join, [KeyboardInterrupt]

    def interrupted(timeout: float | None = None) -> None:
        if interrupts:
            raise interrupts.pop()
        join(timeout)

    monkeypatch.setattr(portal._thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        portal.close()
    assert steps == ["entered", "left"]
