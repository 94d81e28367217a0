from __future__ import annotations

from typing import Any

import pytest

from tarry import Fixed, Job, JobTimedOut, Limits, Match, Outcome, Phase, Stall, WaitTimeout
from tarry.codec import decode_spec, encode_spec
from tarry.core import JobState
from tarry.words import MINUTE, SECOND
from tests.pollers import QUEUED, SUCCEEDED, World, polled
from tests.pollers import RUNNING as STILL_RUNNING
from tests.unit.scripted import (
    DONE,
    POST,
    RUNNING,
    Answer,
    Script,
    broken,
    http,
    spec,
    state,
)

QUEUED_STATE = state("QUEUED")
HALF_A_MINUTE = Stall("30s")


def played(*answers: Answer, stall: Stall | None = HALF_A_MINUTE, **fields: Any) -> JobState:
    """A job polled every 10 s, with these answers."""
    script = Script(spec(**{"strategy": Fixed("10s"), "stall": stall, **fields}))
    return script.play(*answers)


def test_a_job_that_does_not_move_is_stalled() -> None:
    """After that long without another status or progress, seen by the poll that comes then."""
    assert not played(*[RUNNING] * 3).stalled
    stalled = played(*[RUNNING] * 4)
    assert stalled.stalled
    assert stalled.outcome is None
    assert stalled.changed_at == 0


def test_the_next_poll_is_not_moved_by_it() -> None:
    """Neither delayed nor brought forward."""
    script = Script(spec(strategy=Fixed("40s"), stall=Stall("1s")))
    script.play(*[RUNNING] * 4)
    assert script.polls_at() == [0, 40, 80, 120]


@pytest.mark.parametrize(
    "change",
    [
        QUEUED_STATE,
        http(200, {"state": "RUNNING", "done": 0.5}),
        state("HELD"),
        state("WAT"),
    ],
    ids=["status", "progress", "blocked", "unknown"],
)
def test_a_change_ends_the_stall(change: Answer) -> None:
    """And the time runs anew."""
    moved = played(*[RUNNING] * 4, change, progress="body.done")
    assert not moved.stalled
    assert moved.changed_at == 40 * SECOND
    assert not played(*[RUNNING] * 4, change, change, change, progress="body.done").stalled


def test_without_it_nothing_stalls() -> None:
    """What changed when is remembered all the same, for a spec that asks later."""
    still = played(*[RUNNING] * 50, stall=None)
    assert (still.stalled, still.changed_at) == (False, 0)


def test_an_answer_of_no_status_stalls_from_the_beginning() -> None:
    """From the submit, or the creation, where no status was ever seen."""
    assert played(*[http(200, {})] * 4).stalled
    limits = Limits(initial_delay="1m")
    assert played(http(200, {}), limits=limits).stalled
    submitted = Script(spec(strategy=Fixed("10s"), stall=Stall("30s"), submit=POST, limits=limits))
    submitted.play(http(202, took=25 * SECOND), http(200, {}))
    assert submitted.state.submitted_at == 25 * SECOND
    assert submitted.state.stalled


def test_failed_polls_say_nothing_of_the_job() -> None:
    """An outage is no stall; the answer that finds the job where it was says so."""
    assert not played(RUNNING, *[broken()] * 5).stalled
    assert played(RUNNING, *[broken()] * 5, RUNNING).stalled
    assert not played(RUNNING, *[broken()] * 5, QUEUED_STATE).stalled


def test_an_unchanged_answer_is_no_change() -> None:
    """304 says that nothing moved."""
    assert played(RUNNING, *[http(304)] * 3).stalled


def test_a_blocked_job_waits_for_a_person() -> None:
    """It is not stalled, however long that takes; then the time begins anew."""
    held = played(*[state("HELD")] * 50)
    assert (held.phase, held.stalled) == (Phase.BLOCKED, False)
    again = played(*[state("HELD")] * 50, *[RUNNING] * 3)
    assert not again.stalled
    assert played(*[state("HELD")] * 50, *[RUNNING] * 4).stalled


def test_it_ends_the_job_by_choice() -> None:
    """Timed out, since the service did not say that the job failed; the reason says what stood still."""
    ended = played(*[RUNNING] * 4, stall=Stall("30s", fail=True))
    assert ended.outcome is Outcome.TIMED_OUT
    assert ended.reason == "stalled: no change of status or progress for 30s (status RUNNING)"
    assert not ended.stalled
    silent = played(*[http(200, {})] * 4, stall=Stall("30s", fail=True))
    assert silent.reason == "stalled: no change of status or progress for 30s"


def test_success_wins() -> None:
    """A job that is done is done, however long it stood still; one being confirmed moves."""
    stall = Stall("1s", fail=True)
    assert played(RUNNING, DONE, stall=stall).outcome is Outcome.SUCCEEDED
    assert played(RUNNING, DONE, DONE, DONE, DONE, stall=stall, confirm=4).outcome is Outcome.SUCCEEDED


def test_a_limit_comes_first() -> None:
    """The last poll of `max_polls` ends the job as exhausted."""
    limits = Limits(max_polls=4)
    assert played(*[RUNNING] * 4, stall=Stall("30s", fail=True), limits=limits).outcome is Outcome.EXHAUSTED


def test_it_survives_a_restart() -> None:
    """The time runs through a downtime, and a stall is told once."""
    world = World([STILL_RUNNING, STILL_RUNNING, STILL_RUNNING, QUEUED, SUCCEEDED])
    job = polled(strategy=Fixed("10m"), stall=Stall("30m"))

    async def main() -> tuple[Job, Job]:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", job, wait_timeout="1m")
        await world.after(3600)
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", job, wait_timeout="11m")
            stalled = await poller.get("orders")
            await poller.await_job("orders", job)
            return stalled, await poller.get("orders")

    stalled, ended = world.run(main)
    assert stalled.stalled
    assert stalled.changed_at == stalled.created_at
    assert stalled.wait_source == "strategy"
    assert (ended.stalled, ended.wait_source) == (False, None)
    assert world.kinds().count("stalled") == 1
    told = {event.kind: event.data for event in world.told}
    assert told["stalled"] == {"status": "RUNNING", "unmoved_us": 61 * MINUTE}
    assert told["unstalled"] == {"status": "QUEUED"}


def test_a_pause_is_no_stall() -> None:
    """Nobody looked meanwhile: the time begins anew as the job is resumed."""
    world = World([STILL_RUNNING])
    job = polled(strategy=Fixed("10s"), stall=Stall("30s", fail=True))

    async def main() -> JobTimedOut:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", job, wait_timeout="15s")
            await poller.pause("orders")
            await world.after(3600)
            await poller.resume("orders")
            with pytest.raises(JobTimedOut) as caught:
                await poller.await_job("orders", job)
            return caught.value

    assert str(world.run(main)).startswith("orders: timed_out; stalled: no change")
    assert world.seconds() == [0, 10, 3615, 3625, 3635, 3645]


def test_whoever_waits_hears_of_it() -> None:
    """`JobTimedOut`, with the stall as the reason."""
    world = World([STILL_RUNNING])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.await_job("orders", polled(stall=Stall("10s", fail=True)))

    with pytest.raises(JobTimedOut, match=r"orders: timed_out; stalled: no change .* for 10s .*may still run; 6 polls"):
        world.run(main)


def test_it_is_data() -> None:
    """It comes back from JSON as it was."""
    job = spec(stall=Stall("90s", fail=True), until=Match("body.state", succeeded="DONE"))
    assert decode_spec(encode_spec(job)).stall == Stall("1m30s", fail=True)
