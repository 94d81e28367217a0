"""The blocking twin: the methods of the async poller, without `await`."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tarry
from tarry import Fixed, JobFailed, Limits, Outcome, StoreError, TarryError, WaitTimeout, sync
from tarry.clock import SystemClock
from tarry.core.observation import Observation
from tarry.ports import Prepared
from tarry.store import MemoryStore
from tarry.testing import ScriptedJob
from tarry.testing.scripted import Scripted
from tests.pollers import FAILED, RUNNING, SUCCEEDED, polled

ROOT = Path(__file__).parent.parent.parent
QUICK: dict[str, Any] = {"strategy": Fixed("1ms"), "limits": Limits(min_interval="1ms")}


def scripted(*answers: Scripted) -> ScriptedJob:
    """A job on real time."""
    return ScriptedJob(answers, clock=SystemClock())


def poller(*answers: Scripted, **options: Any) -> sync.Poller:
    """A blocking poller on a store in memory."""
    return sync.Poller(MemoryStore(), transport=scripted(*answers), **options)


def public(kind: type) -> dict[str, Any]:
    """The public methods of a class."""
    return {name: value for name, value in vars(kind).items() if not name.startswith("_")}


class Stuck:
    """A transport whose calls never end by themselves."""

    def __init__(self) -> None:
        self.called = threading.Event()

    async def send(self, request: Prepared) -> Observation:
        self.called.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def aclose(self) -> None:
        pass


def test_the_twin_has_every_public_method() -> None:
    """A method that the async poller has is a line in `tarry/sync.py`: `name = _blocking(api.Poller.name)`."""
    missing = public(tarry.Poller).keys() - public(sync.Poller).keys()
    assert not missing, f"add to sync.Poller, as the others are: {sorted(missing)}"


@pytest.mark.parametrize("name", ["__init__", *sorted(public(tarry.Poller))])
def test_a_method_of_the_twin_takes_and_tells_the_same(name: str) -> None:
    """Arguments and description are those of the async method; none is a coroutine function."""
    original, twin = getattr(tarry.Poller, name), getattr(sync.Poller, name)
    assert inspect.signature(twin) == inspect.signature(original)
    assert twin.__doc__ == original.__doc__
    assert not inspect.iscoroutinefunction(twin)


def test_one_call_takes_what_the_async_one_takes() -> None:
    """`tarry.sync.await_job` has the arguments of `tarry.await_job`."""
    assert inspect.signature(sync.await_job) == inspect.signature(tarry.await_job)


def test_a_job_is_awaited_added_found_and_listed() -> None:
    """The front door works without an event loop in sight."""
    with poller(RUNNING, SUCCEEDED) as one:
        assert one.add("orders", polled(**QUICK)).polls == 0
        ended = one.await_job("orders")
        assert (ended.outcome, ended.polls, ended.output) == (Outcome.SUCCEEDED, 2, {"rows": 4211})
        assert one.get("orders").outcome is Outcome.SUCCEEDED
        assert [job.key for job in one.jobs()] == ["orders"]
        assert one.cancel("orders").outcome is Outcome.SUCCEEDED


def test_errors_come_through() -> None:
    """What the async method raises, the blocking one raises, with its facts."""
    with poller(FAILED) as one, pytest.raises(JobFailed) as failed:
        one.await_job("orders", polled(**QUICK))
    assert failed.value.key == "orders"
    with pytest.raises(StoreError):
        sync.Poller("sqlite:////nowhere/at/all.db").__enter__()


def test_events_are_a_plain_iterator() -> None:
    """`watch` yields until the job is over, and may be left before."""
    with poller(RUNNING, SUCCEEDED) as one:
        one.await_job("orders", polled(**QUICK))
        assert [event.kind for event in one.watch("orders")][-1] == "finished"
        events = one.watch("orders")
        assert next(events).kind == "created"
        events.close()  # type: ignore[attr-defined]  # it is a generator
    with pytest.raises(TarryError, match="closed"):
        next(one.watch("orders"))


def test_many_threads_share_one_poller() -> None:
    """Calls from several threads at once do not disturb each other."""
    with poller(RUNNING, RUNNING, SUCCEEDED) as one, ThreadPoolExecutor(8) as threads:
        waits = [threads.submit(one.await_job, f"orders-{n % 4}", polled(**QUICK)) for n in range(16)]
        assert {wait.result().outcome for wait in waits} == {Outcome.SUCCEEDED}


def test_closing_ends_the_waits_of_other_threads() -> None:
    """They are told that the job lives on."""
    with ThreadPoolExecutor(1) as threads:
        with poller(RUNNING) as one:
            wait = threads.submit(one.await_job, "orders", polled(strategy=Fixed("1h")))
            next(event for event in _events(one) if event)
        with pytest.raises(TarryError, match="lives on"):
            wait.result()


def _events(one: sync.Poller) -> Iterator[bool]:
    while True:
        jobs = one.jobs()
        yield bool(jobs and jobs[0].polls)


def test_patience_ends_the_wait_and_not_the_job() -> None:
    """`wait_timeout` works as in the async poller."""
    with poller(RUNNING) as one:
        with pytest.raises(WaitTimeout):
            one.await_job("orders", polled(), wait_timeout=0)
        assert one.get("orders").outcome is None


async def _inside(call: Callable[[], object]) -> None:
    with pytest.raises(TarryError, match=r"use tarry\.Poller with await"):
        call()


def test_a_running_loop_refuses_the_twin() -> None:
    """Opening, asking and the short form are refused where an event loop runs, with the way out."""
    asyncio.run(_inside(poller(SUCCEEDED).__enter__))
    asyncio.run(_inside(lambda: sync.await_job("orders", polled(), store="sqlite://")))
    with poller(SUCCEEDED) as one:
        asyncio.run(_inside(lambda: one.get("orders")))


def test_the_order_of_use_is_said() -> None:
    """Not entered, entered twice, closed: each has its message."""
    one = poller(SUCCEEDED)
    with pytest.raises(TarryError, match="with Poller"):
        one.get("orders")
    with one, pytest.raises(TarryError, match="entered once"):
        one.__enter__()
    with pytest.raises(TarryError, match="closed"):
        one.get("orders")


def test_one_call_opens_and_closes() -> None:
    """The short form gives the result, and leaves the store as it found it."""
    store = MemoryStore()
    ended = sync.await_job("orders", polled(**QUICK), store=store, transport=scripted(SUCCEEDED))
    assert ended.outcome is Outcome.SUCCEEDED


def test_an_interrupt_leaves_the_job_and_closes_at_once() -> None:
    """A call in flight is cut, its permit counts, and the job lives on."""
    store, stuck = MemoryStore(), Stuck()

    def interrupted() -> None:
        with ThreadPoolExecutor(1) as threads, sync.Poller(store, transport=stuck) as one:
            threads.submit(one.await_job, "orders", polled())
            assert stuck.called.wait(10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with sync.Poller(store, transport=scripted(SUCCEEDED)) as one:
        job = one.get("orders")
        assert (job.outcome, job.polls) == (None, 1)


def test_a_forked_child_is_refused_and_closes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's thread is the parent's alone."""
    with poller(SUCCEEDED) as one:
        here = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: here + 1)
        with pytest.raises(TarryError, match="after a fork"):
            one.get("orders")
        one.__exit__(None, None, None)
        monkeypatch.undo()
        assert one.jobs() == []


def test_a_process_that_ends_closes_what_it_left_open(tmp_path: Path) -> None:
    """Without a `with`, the lease is given back on the way out, and nothing is printed."""
    code = """
import atexit, contextlib, sqlite3, tarry.sync
from tests.pollers import polled

def told():
    with contextlib.closing(sqlite3.connect("jobs.db")) as database:
        print(database.execute("SELECT released FROM tarry_worker").fetchall())

atexit.register(told)
one = tarry.sync.Poller("sqlite:///jobs.db").__enter__()
one.add("orders", polled())
with contextlib.suppress(tarry.WaitTimeout):
    one.await_job("orders", wait_timeout="2s")
events = one.watch("orders")
next(events)
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        timeout=60,
    )
    assert (run.stdout, run.stderr) == ("[(1,)]\n", "")
