"""The limits of a wait: exact, visible, and none beside them."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import Exponential, Fixed, Limits, Outcome, Request, SpecError
from tarry.core.policies import Errors
from tarry.testing import Answer
from tarry.words import HOUR
from tests.raw_server import Exchange, serve
from tests.real import awaited, in_real_time
from tests.worlds import DONE, RUNNING, MakeScene, limits, spec_of

SHORT = spec_of(strategy=Exponential("1s"), limits=limits("5s"))


def test_pc_033_the_last_sleep_is_cut_to_the_time_left(scene: MakeScene) -> None:
    """Neither 2 s unused nor 2 s too long: the last poll is brought forward to have a tenth of the time for itself."""
    world = scene(RUNNING)
    assert world.fails(SHORT).outcome is Outcome.TIMED_OUT
    assert world.seconds() == [0, 1, 3, 4.5]
    assert world.elapsed() <= 5


def test_pc_033_a_job_done_before_the_last_poll_or_during_it_has_succeeded(scene: MakeScene) -> None:
    """Done at 4.4 s, the poll at 4.5 s sees it; done at 4.9 s, a call that takes until then does."""
    assert scene(RUNNING, RUNNING, RUNNING, DONE).ends(SHORT).outcome is Outcome.SUCCEEDED
    slow = Answer(200, DONE, delay=400_000)
    world = scene(RUNNING, RUNNING, RUNNING, slow)
    assert (world.ends(SHORT).outcome, world.elapsed()) == (Outcome.SUCCEEDED, 4.9)


def test_pc_033_a_job_done_after_the_deadline_has_timed_out(scene: MakeScene) -> None:
    """Done at 5.5 s is too late: the call in flight at the deadline is cut."""
    world = scene(RUNNING, RUNNING, RUNNING, Answer(200, DONE, delay=1_000_000))
    assert (world.ends(SHORT).outcome, world.elapsed()) == (Outcome.TIMED_OUT, 5)


def test_pc_035_the_deadline_is_one_instant_over_all_processes(durable: MakeScene) -> None:
    """Down from 20 to 40 s, the second process stops at the same 60 s: downtime counts, and there is no other mode."""
    world = durable(RUNNING)

    async def main() -> Any:
        await world.process().killed_at(20, "orders", spec_of(strategy=Fixed("6s"), limits=limits("60s")))
        await world.at(40)
        return await (await world.process().awaiting("orders", raises=False))

    ended = world.run(main)
    assert ended.outcome is Outcome.TIMED_OUT
    assert 54 <= world.elapsed() <= 60
    assert ended.elapsed.total_seconds() == world.elapsed()


def test_pc_036_a_call_that_hangs_is_cut(scene: MakeScene) -> None:
    """A server that accepts and never answers costs one failed poll at a time, and no more than the deadline."""
    world = scene(RUNNING, Answer(200, DONE, delay=HOUR))
    error = world.fails(spec_of(limits=limits("30s", poll_timeout="5s")))
    assert error.outcome is Outcome.TIMED_OUT
    assert world.elapsed() <= 30
    assert "timeout" in str(error)


def test_pc_036_a_callable_that_hangs_is_cut(scene: MakeScene) -> None:
    """So does a coroutine of the caller's that never ends."""
    world = scene()

    async def hang() -> None:
        await world.clock.sleep(HOUR)

    error = world.fails(spec_of(poll=hang, limits=limits("30s", poll_timeout="5s")))
    assert error.outcome is Outcome.TIMED_OUT
    assert world.elapsed() <= 30


def test_pc_036_an_answer_that_drips_is_cut() -> None:
    """A byte now and then never lets a read time out; the whole call is bounded all the same."""

    async def drip(exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        await exchange.drip(b" ")

    async def main() -> Any:
        async with serve(drip) as server:
            bounds = limits("60s", poll_timeout="100ms", min_interval="10ms", max_polls=1)
            return await awaited(spec_of(poll=Request("GET", server.origin), limits=bounds))

    ended = in_real_time(main)
    assert ended.outcome is Outcome.EXHAUSTED
    assert ended.last.error.kind == "timeout"
    assert ended.elapsed.total_seconds() < 30


@pytest.mark.parametrize("scene", ["memory"], indirect=True)
def test_pc_037_no_hidden_limit_ends_a_long_wait(scene: MakeScene) -> None:
    """Seven hundred times "not found", all within the grace and the duration that were asked for."""
    world = scene(*[404] * 700, DONE)
    bounds = {"errors": Errors(not_found_grace="4h"), "limits": limits("4h"), "strategy": Fixed("10s")}
    assert world.ends(spec_of(**bounds)).outcome is Outcome.SUCCEEDED
    assert world.job.polls == 701


def test_pc_037_the_limit_that_ended_a_wait_is_named(scene: MakeScene) -> None:
    """With its value and how far the wait came."""
    error = scene(404).fails(spec_of(strategy=Fixed("10s")))
    assert error.outcome is Outcome.LOST
    assert "not found 3 times in a row" in str(error)
    assert "7 polls" in str(error)


@pytest.mark.parametrize(("most", "second"), [(1, 0), (3, 20)], ids=["one", "three"])
def test_pc_038_exhausted_comes_right_after_the_last_poll(scene: MakeScene, most: int, second: float) -> None:
    """No sleep after the last permitted poll."""
    world = scene(RUNNING)
    error = world.fails(spec_of(strategy=Fixed("10s"), limits=Limits(max_polls=most)))
    assert (error.outcome, world.job.polls, world.elapsed()) == (Outcome.EXHAUSTED, most, second)


def test_pc_038_done_on_the_last_poll_is_done(scene: MakeScene) -> None:
    """Success comes before the limit."""
    ended = scene(RUNNING, RUNNING, DONE).ends(spec_of(limits=Limits(max_polls=3)))
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 3)


def test_pc_038_a_wait_without_a_poll_is_refused() -> None:
    """At once, naming the field."""
    with pytest.raises(SpecError, match="max_polls"):
        Limits(max_polls=0)
