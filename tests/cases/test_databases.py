"""Many jobs, many readers, one database."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from tarry import Fixed, Limits, Outcome, Poller
from tarry.store import SqlStore
from tarry.testing import FakeClock, ScriptedJob
from tests.real import in_real_time
from tests.worlds import DONE, RUNNING, spec_of

QUICK = spec_of(strategy=Fixed("20ms"), limits=Limits(min_interval="10ms", max_polls=6))


def test_pc_073_reading_the_status_writes_nothing_and_locks_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Twenty readers and twenty jobs on one file: no lock error, no change by a reader."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"

    async def main() -> list[Any]:
        clock = FakeClock()
        async with Poller(url, transport=ScriptedJob([RUNNING], clock=clock)) as poller, Poller(url) as reader:
            jobs = [poller.await_job(f"job-{n}", QUICK, raises=False) for n in range(20)]
            waiting = asyncio.gather(*jobs)
            while not waiting.done():
                await asyncio.gather(*(reader.jobs(prefix=f"job-{n}") for n in range(20)))
            before = await poller.get("job-1")
            await asyncio.gather(*(reader.get(f"job-{n}") for n in range(20)))
            assert await poller.get("job-1") == before
            return await waiting

    with caplog.at_level(logging.WARNING, logger="tarry"):
        ended = in_real_time(main)
    assert {each.outcome for each in ended} == {Outcome.EXHAUSTED}
    assert caplog.records == []


def test_pc_075_a_read_before_a_write_never_meets_a_lock(tmp_path: Path) -> None:
    """Eight threads, fifty claims and releases each, on stores of their own: every transaction begins as a writer's."""
    url, errors, done = f"sqlite:///{tmp_path / 'jobs.db'}", [], []
    clock = FakeClock()
    first = SqlStore(url)
    first.open(clock.now())

    def work(number: int) -> None:
        store = SqlStore(url)
        try:
            store.open(clock.now())
            worker = store.register(f"worker-{number}", clock.now(), 3_600_000_000)
            for n in range(50):
                assert store.renew(worker, clock.now() + n, 3_600_000_000)
                done.append(n)
            store.retire(worker, clock.now())
        except Exception as error:  # noqa: BLE001  # whatever it is, the test has to see it
            errors.append(error)
        finally:
            store.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first.close()
    assert (errors, len(done)) == ([], 400)


def test_pc_076_no_connection_is_held_while_waiting(tmp_path: Path) -> None:
    """Fifty waits and twenty readers, on an engine with two connections: none is out while jobs sleep or are polled."""
    engine = create_engine(f"sqlite:///{tmp_path / 'jobs.db'}", pool_size=2, max_overflow=0, pool_timeout=1)
    out: list[int] = []

    class Watched(ScriptedJob):
        async def send(self, request: Any) -> Any:
            out.append(engine.pool.checkedout())
            return await super().send(request)

    async def main() -> list[Any]:
        job = Watched([RUNNING, RUNNING, RUNNING, DONE], clock=FakeClock())
        async with Poller(engine, transport=job) as poller:
            jobs = [poller.await_job(f"job-{n}", QUICK, raises=False) for n in range(50)]
            waiting = asyncio.gather(*jobs)
            await asyncio.gather(*(poller.jobs() for _ in range(20)))
            return await waiting

    try:
        assert len(in_real_time(main)) == 50
        with engine.connect() as connection:
            assert connection.scalar(text("SELECT count(*) FROM tarry_job")) == 50
        assert set(out) <= {0, 1}
        assert engine.pool.checkedout() == 0
    finally:
        engine.dispose()
