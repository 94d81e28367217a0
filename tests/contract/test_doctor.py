"""What a doctor finds in any database."""

from __future__ import annotations

import pytest

from tarry.clock import SystemClock
from tarry.codec import encode_spec, encode_state
from tarry.core.machine import start
from tarry.store.doctor import Finding, Level
from tarry.store.doctor.servers import clocks
from tarry.words import MINUTE, SECOND
from tests.contract.bench import START, TTL, Bench, grip, new_job
from tests.pollers import polled

SPEC = polled()


@pytest.fixture
def busy(bench: Bench) -> Bench:
    """A database with one job in the hands of a worker, and nothing wrong with it."""
    state, _ = start(SPEC, "orders", START)
    new, _ = bench.store.add(new_job(spec=encode_spec(SPEC), state=encode_state(state), phase=state.phase))
    (row,) = bench.store.claim(bench.store.register("first", START, TTL), "n1", START, [new.id])
    bench.store.reserve([grip(row)])
    return bench


def wrong(bench: Bench, now: int = START) -> list[Finding]:
    """What is more than a note."""
    return [finding for finding in bench.store.doctor(now) if finding.level in {Level.WARNING, Level.ERROR}]


def test_a_sound_database_has_nothing_wrong(busy: Bench) -> None:
    """Also while it is in use, and from a store that is not open; the settings of a server are told."""
    assert wrong(busy) == []
    names = {finding.name for finding in busy.store.doctor(START)}
    assert {"schema", "workers", "overdue", "rules", "damaged"} <= names
    assert ("connections" in names) == busy.is_server


@pytest.mark.parametrize(
    "change", ["polls = 9", "told = 99", "phase = 'done'", "reserved = 0, owner = NULL, nonce = NULL"]
)
def test_a_row_that_breaks_a_rule_is_told(busy: Bench, change: str) -> None:
    """By the database's own arithmetic, with the job's key."""
    busy.damage(change)
    assert [(finding.level, "'orders'" in finding.text) for finding in wrong(busy)][:1] == [(Level.ERROR, True)]


def test_a_worker_that_ended_is_told(busy: Bench) -> None:
    """And what it held."""
    assert [finding.name for finding in wrong(busy, START + TTL)] == ["held"]


@pytest.mark.parametrize(("ahead", "level"), [(-4, Level.OK), (4, Level.OK), (-6, Level.WARNING), (60, Level.WARNING)])
def test_clocks_that_differ_are_told(ahead: int, level: Level) -> None:
    """Leases are judged by the server's, all else by each machine's."""
    found = clocks(START, START + ahead * SECOND)
    assert (found.level, f"{abs(ahead)}.0 s {'ahead of' if ahead > 0 else 'behind'}" in found.text) == (level, True)


def test_a_servers_own_clock_is_read(bench: Bench) -> None:
    """Where there is one; the tests' databases run on the tests' clock."""
    if not bench.is_server:
        pytest.skip("no server, no clock")
    database = bench.store._database
    bench.store._database = type(database)(database.url)  # type: ignore[call-arg, attr-defined]  # of which it is one
    try:
        named = {finding.name: finding.level for finding in bench.store.doctor(SystemClock().now())}
        assert named["clocks"] is Level.OK
        later = {finding.name: finding.level for finding in bench.store.doctor(SystemClock().now() + MINUTE)}
        assert later["clocks"] is Level.WARNING
    finally:
        bench.store._database = database
