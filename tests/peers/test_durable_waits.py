"""The suite of a durable wait for a condition: state, attempts, replays."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import text

from tarry import CheckpointError, Exponential, Fixed, Limits, Outcome
from tarry.core.strategies import Linear, jittered
from tarry.words import SECOND
from tests.worlds import DONE, RUNNING, MakeScene, spec_of


def test_met_at_once(scene: MakeScene) -> None:
    """One check."""
    assert scene(DONE).ends(spec_of()).polls == 1


def test_met_at_the_threshold(scene: MakeScene) -> None:
    """As many checks as it takes, numbered 1, 2, 3 without a gap."""
    numbers: list[int] = []

    def until(document: Any) -> bool:
        numbers.append(document["polls"])
        return len(numbers) == 4

    assert scene(RUNNING).ends(spec_of(until=until)).polls == 4
    assert numbers == [1, 2, 3, 4]


def test_met_on_the_final_attempt(scene: MakeScene) -> None:
    """Succeeds."""
    assert scene(RUNNING, RUNNING, DONE).ends(spec_of(limits=Limits(max_polls=3))).outcome is Outcome.SUCCEEDED


def test_attempts_are_used_up(scene: MakeScene) -> None:
    """The end is stored, and a replay brings the same error without a check."""
    world = scene(RUNNING)
    spec = spec_of(limits=Limits(max_polls=3))
    first, again = world.fails(spec), world.fails(spec)
    assert (str(first), type(first), first.last) == (str(again), type(again), again.last)
    assert world.job.polls == 3


def test_already_over(scene: MakeScene) -> None:
    """Neither a success, nor one without a result, nor a failure is checked again."""
    for answer, output in ((DONE, DONE), ({"state": "DONE", "value": None}, None), ({"state": "FAILED"}, None)):
        world = scene(answer)
        spec = spec_of(result="body.value") if output is None else spec_of()
        first, again = world.ends(spec), world.ends(spec)
        assert first == again
        assert (again.output, world.job.polls) == (output, 1)


def test_a_saved_state_that_is_damaged_fails(scene: MakeScene) -> None:
    """It never begins again from the first state."""
    world = scene(RUNNING)

    async def main() -> None:
        async with world.poller() as poller:
            await poller.add("orders", spec_of())
            with world.store._database.write() as connection:
                connection.execute(text('UPDATE tarry_job SET state = \'{"v": 1, "polls"\''))
            with pytest.raises(CheckpointError):
                await poller.await_job("orders")

    world.run(main)
    assert world.job.polls == 0


def test_a_check_that_raises_can_be_caught(scene: MakeScene) -> None:
    """A callable that raises is a failed poll, not the end; one that goes on raising is an error with its words."""
    world = scene()
    turns: list[int] = []

    def check() -> Any:
        turns.append(1)
        if len(turns) < 3:
            raise RuntimeError("not today")
        return DONE

    assert world.ends(spec_of(poll=check)).polls == 3

    def never() -> Any:
        raise RuntimeError("not today")

    error = scene().fails(spec_of(poll=never, limits=Limits(max_polls=2)))
    assert "RuntimeError: not today" in str(error)


def test_a_wait_that_is_pending_is_not_checked_before_its_time(scene: MakeScene) -> None:
    """A replay in the middle of a wait suspends again."""
    world = scene(RUNNING, DONE)

    async def main() -> None:
        for second in (1, 2, 3):
            async with world.poller() as poller:
                waiting = asyncio.create_task(poller.await_job("orders", spec_of(strategy=Fixed("60s"))))
                await world.at(second)
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)

    world.run(main)
    assert world.seconds() == [0]


def test_several_in_sequence_and_of_any_shape(scene: MakeScene) -> None:
    """Each under its key; an object or null as the result."""
    world = scene()
    world.play([lambda request: {"state": "DONE", "value": None if "null" in request.url else {"a": [1, {"b": 2}]}}])
    outputs = [world.ends(spec_of(result="body.value"), key=key).output for key in ("object", "null", "other")]
    assert outputs == [{"a": [1, {"b": 2}]}, None, {"a": [1, {"b": 2}]}]


@pytest.mark.parametrize(
    ("strategy", "waits"),
    [
        (Exponential("60s"), [60, 120, 240]),
        (Exponential("60s", maximum="200s"), [60, 120, 200, 200]),
        (Linear("120s", maximum="250s"), [120, 240, 250, 250]),
        (Exponential("60s", maximum="60s"), [60, 60]),
        (Exponential("5s", factor=1.5, maximum="5m"), [5, 7.5, 11.25]),
        (Exponential("5s", factor=1), [5, 5, 5]),
    ],
    ids=["exponential", "cap", "linear with a cap", "cap is the base", "defaults", "rate 1"],
)
def test_the_numbers_of_each_backoff(strategy: Any, waits: list[float]) -> None:
    """As the peers' tables have them."""
    assert [strategy.delay(n)[0] / SECOND for n in range(1, len(waits) + 1)] == waits


def test_jitter_comes_after_the_cap_and_inside_it() -> None:
    """None is exact, half is between half and whole, full between the floor and the whole; many spread."""
    d, floor = 100 * SECOND, SECOND
    assert jittered("none", d, floor, "orders", 1) == d
    for kind, lowest in (("half", d // 2), ("full", floor)):
        drawn = [jittered(kind, d, floor, f"job-{n}", 1) for n in range(1_000)]
        assert lowest <= min(drawn) < max(drawn) <= d
        assert len(set(drawn)) > 900
