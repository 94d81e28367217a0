"""S1 to S5: when a job is polled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tarry import Exponential, Fixed, Hints, Limits, Linear, Outcome, plan
from tarry.core.strategies import jittered
from tarry.testing import Answer
from tarry.words import MILLISECOND, SECOND, WaitSource
from tests.worlds import DONE, RUNNING, MakeScene, limits, spec_of


@pytest.mark.parametrize(("delay", "second"), [(0, 0), ("90s", 90)], ids=["at once", "moved"])
def test_s01_the_first_poll_is_at_once_unless_it_is_moved(scene: MakeScene, delay: Any, second: float) -> None:
    """`initial_delay` moves it."""
    world = scene()
    world.ends(spec_of(limits=limits(initial_delay=delay)))
    assert world.seconds() == [second]


@pytest.mark.parametrize(
    ("strategy", "seconds"),
    [
        (Fixed("3s"), [0, 3, 6, 9, 12]),
        (Linear("2s"), [0, 2, 6, 12, 20]),
        (Linear("2s", "1s"), [0, 2, 5, 9, 14]),
        (Exponential("1s", factor=3), [0, 1, 4, 13, 40]),
    ],
    ids=["fixed", "linear", "linear with a step", "exponential"],
)
def test_s02_each_strategy_keeps_its_formula(scene: MakeScene, strategy: Any, seconds: list[float]) -> None:
    """After poll n: i; initial + step·(n-1), the step being initial by default; initial·factor^(n-1)."""
    world = scene(*[RUNNING] * 4, DONE)
    world.ends(spec_of(strategy=strategy))
    assert world.seconds() == seconds


@pytest.mark.parametrize("n", [1, 2, 1_000, 10**9])
def test_s02_the_formulas_are_exact(n: int) -> None:
    """To the microsecond, and without overflow, for a billion polls."""
    assert Fixed("0.1s").delay(n)[0] == 100 * MILLISECOND
    assert Linear("0.1s", "0.2s").delay(n)[0] == 100 * MILLISECOND + 200 * MILLISECOND * (n - 1)
    assert Exponential("0.1s", factor=1.1, maximum="1h").delay(n)[0] <= 3_600 * SECOND


def test_s03_every_bound_comes_in_its_order(scene: MakeScene) -> None:
    """Strategy, maximum, jitter, hint, hint bound, floor, deadline: each wait names what set it last."""
    world = scene(
        RUNNING,
        RUNNING,
        Answer(200, RUNNING, {"Retry-After": "40"}),
        Answer(200, RUNNING, {"Retry-After": "4000"}),
        Answer(200, RUNNING, {"retry-after-ms": "1"}),
        RUNNING,
    )
    strategy = Exponential("10s", factor=2, maximum="15s")
    world.fails(spec_of(strategy=strategy, hints=Hints(maximum="50s"), limits=limits("134s", min_interval="5s")))
    assert world.seconds() == [0, 10, 25, 65, 115, 120, 125]

    async def sources() -> list[str | None]:
        async with world.poller() as poller:
            return [tick.wait_source for tick in (await poller.get("orders")).timeline]

    expected = ["strategy", "maximum", "hint", "hint_bound", "floor", "deadline", None]
    assert world.run(sources) == expected


def test_s03_jitter_is_drawn_from_key_and_number(scene: MakeScene) -> None:
    """Between half the wait (or the floor) and the wait; the same job waits the same again."""
    spec = spec_of(strategy=Fixed("10s", jitter="half"), limits=limits(min_interval="1s"))
    first, again = scene(*[RUNNING] * 6, DONE), scene(*[RUNNING] * 6, DONE)
    for world in (first, again):
        world.ends(spec)
    waits = [later - sooner for sooner, later in zip(first.seconds(), first.seconds()[1:], strict=False)]
    assert first.seconds() == again.seconds()
    assert all(5 <= wait <= 10 for wait in waits)
    assert len(set(waits)) > 3
    assert {jittered("full", 10 * SECOND, SECOND, "orders", n) >= SECOND for n in range(1, 999)} == {True}


@pytest.mark.parametrize(
    "answers",
    [[RUNNING] * 6, [500] * 6, [Answer(200, RUNNING, {"retry-after-ms": "1"})] * 6, [429] * 6],
    ids=["good", "failed", "hinted", "congested"],
)
def test_s04_the_floor_holds_on_every_path(scene: MakeScene, answers: list[Any]) -> None:
    """After good polls, failed ones and hints: no two polls start closer."""
    world = scene(*answers, DONE)
    world.ends(spec_of(strategy=Fixed("0.1s"), limits=limits(min_interval="3s")))
    gaps = [later - sooner for sooner, later in zip(world.seconds(), world.seconds()[1:], strict=False)]
    assert min(gaps) >= 3


def test_s04_the_floor_holds_over_a_take_over(durable: MakeScene) -> None:
    """Killed in mid call, right after its poll was sent: the next process waits for the floor."""
    world = durable(RUNNING, Answer(200, RUNNING, delay=2 * SECOND), DONE)
    spec = spec_of(strategy=Fixed("4s"), limits=limits(min_interval="4s"))

    async def main() -> Any:
        await world.process().killed_at(4.5, "orders", spec)
        return await (await world.process().awaiting("orders"))

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert [later - sooner >= 4 for sooner, later in zip(world.seconds(), world.seconds()[1:], strict=False)] == [
        True,
        True,
    ]


def test_s04_the_floor_holds_over_a_close_and_a_new_wait(scene: MakeScene) -> None:
    """Leaving and coming back does not bring a poll forward."""
    world = scene(RUNNING, RUNNING, DONE)
    spec = spec_of(strategy=Fixed("5s"), limits=limits(min_interval="5s"))

    async def main() -> None:
        for second in (1, 6, 11):
            async with world.poller() as poller:
                waiting = asyncio.create_task(poller.await_job("orders", spec))
                await world.at(second)
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)

    world.run(main)
    assert world.seconds() == [0, 5, 10]


def test_s05_what_bent_the_interval_is_reported(scene: MakeScene) -> None:
    """A floor that raises it and a hint that replaces it are events, once each time that changes."""
    world = scene(RUNNING, RUNNING, Answer(200, RUNNING, {"Retry-After": "7"}), DONE)
    world.ends(spec_of(strategy=Fixed("0.5s"), limits=limits(min_interval="2s")))
    assert world.event("wait_changed") == [
        {"source": "floor", "wait_us": 2 * SECOND},
        {"source": "hint", "wait_us": 7 * SECOND},
    ]


def test_s05_a_plan_lists_the_polls_and_warns() -> None:
    """The polls to come, the worst case, and that `max_polls` ends the wait first."""
    planned = plan(spec_of(strategy=Linear("10s"), limits=Limits(max_polls=4, total_duration="1h")))
    assert [poll.at // SECOND for poll in planned.polls] == [0, 10, 30, 60]
    assert [poll.source for poll in planned.polls] == [WaitSource.START, *[WaitSource.STRATEGY] * 3]
    assert (planned.most_polls, planned.longest) == (4, 60 * SECOND)
    assert any("max_polls=4 ends the wait after 1m" in warning for warning in planned.warnings)
