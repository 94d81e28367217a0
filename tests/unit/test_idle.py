"""Whose connections are kept, and for how long."""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from tarry.http import lanes
from tarry.http.idle import KEPT, MOST_IDLE, Kept, idle_bound
from tarry.http.transport import HttpTransport
from tarry.ports import Prepared
from tarry.testing import FakeClock
from tarry.words import CallKind
from tests.raw_server import RawServer, response, serve


def allowing(files: int) -> Any:
    """The system's module, with a bound of its own."""
    return SimpleNamespace(RLIM_INFINITY=-1, RLIMIT_NOFILE=7, getrlimit=lambda _: (files, files))


@pytest.mark.parametrize(("files", "most"), [(256, 128), (1_000_000, MOST_IDLE), (-1, MOST_IDLE)])
def test_half_of_the_files_are_left(files: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with few files keeps few connections."""
    monkeypatch.setitem(sys.modules, "resource", allowing(files))
    assert idle_bound() == most


def test_where_no_bound_is_known_ours_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    monkeypatch.setitem(sys.modules, "resource", None)
    assert idle_bound() == MOST_IDLE


def test_who_comes_when_all_places_are_taken_is_not_kept() -> None:
    """Nobody gives way, calls at once count one each, and a place that is free again is used again."""
    kept = Kept(FakeClock(), 3)

    def all_of(*origins: str) -> list[bool]:
        with ExitStack() as calls:
            return [calls.enter_context(kept.held(origin)) for origin in origins]

    assert all_of("a", "a", "b", "c", "a") == [True, True, True, False, False]
    assert all_of("c", "a", "b", "a") == [False, True, True, True]


def test_a_place_is_free_once_its_connection_is_closed() -> None:
    """After the time for which an idle connection is kept, and not while it is used."""
    clock = FakeClock()
    kept = Kept(clock, 1)
    with kept.held("a") as is_kept:
        assert is_kept
        clock.advance(2 * KEPT)
        with kept.held("b") as other:
            assert not other
    clock.advance(KEPT + 1)
    with kept.held("b") as other:
        assert other


@pytest.mark.parametrize("library", ["httpx", "aiohttp"])
def test_idle_connections_are_bounded(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three hosts called in turn, as many keep theirs as there are places; the others' are closed."""
    monkeypatch.setitem(sys.modules, "resource", allowing(4))

    async def call() -> list[RawServer]:
        async with serve(response()) as one, serve(response()) as two, serve(response()) as three:
            transport = HttpTransport(library, clock=FakeClock())  # type: ignore[arg-type]  # a name of one
            for server in (one, two, three) * 2:
                seen = await transport.send(Prepared(CallKind.POLL, "GET", server.origin))
                assert seen.error is None
            await transport.aclose()
            return [one, two, three]

    assert [server.connections for server in asyncio.run(call())] == [1, 1, 2]


def test_a_lane_is_closed_when_it_was_idle_for_long() -> None:
    """By the next call, wherever that leads."""
    clock = FakeClock()

    async def call() -> int:
        async with serve(response()) as old, serve(response()) as new:
            sender = lanes.Lanes("httpx", clock)
            transport = HttpTransport(clock=clock)
            transport._sender = sender
            await transport.send(Prepared(CallKind.POLL, "GET", old.origin))
            clock.advance(KEPT)
            await transport.send(Prepared(CallKind.POLL, "GET", new.origin))
            await old.left.wait()
            await transport.aclose()
            return len(sender._idle) + len(sender._lanes)

    assert asyncio.run(call()) == 0
