"""S19 to S21: failed polls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import text

from tarry import CheckpointError, Fixed, Limits, Outcome
from tarry.core.policies import Errors
from tarry.testing import Answer
from tarry.words import ErrorKind
from tests.worlds import DONE, RUNNING, MakeScene, spec_of


def test_s19_unreachable_takes_enough_failures_for_long_enough(scene: MakeScene) -> None:
    """Ten in a row, and the first of them a quarter of an hour ago, unless said otherwise."""
    world = scene(RUNNING, 500)
    error = world.fails(spec_of(strategy=Fixed("1m")))
    assert error.outcome is Outcome.UNREACHABLE
    failed = world.seconds()[1:]
    assert len(failed) >= 10
    assert failed[-1] - failed[0] >= 900
    assert scene(*[500] * 10, DONE).ends(spec_of(strategy=Fixed("1s"))).outcome is Outcome.SUCCEEDED


def test_s19_a_good_poll_resets_the_budget(scene: MakeScene) -> None:
    """Failures count in a row only."""
    world = scene(500, 500, RUNNING, 500, 500, DONE)
    assert world.ends(spec_of(errors=Errors(max_consecutive=3, min_outage=0))).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    "answer", [429, Answer(503, headers={"Retry-After": "1"}), ErrorKind.POOL], ids=["429", "503 with a hint", "pool"]
)
def test_s19_congestion_spends_no_budget(scene: MakeScene, answer: Any) -> None:
    """A service that asks for less traffic, and a full pool here, are no outage."""
    world = scene(*[answer] * 5, DONE)
    assert world.ends(spec_of(errors=Errors(max_consecutive=1, min_outage=0))).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [("1s", [0, 1, 3, 7, 15]), ("1h", [0, 5, 15, 35, 75])],
    ids=["a quick poll backs off", "an hourly one is tried soon"],
)
def test_s19_failures_back_off_from_the_smaller_of_wait_and_5s(
    scene: MakeScene, interval: str, seconds: list[float]
) -> None:
    """min(d, 5 s)·2^(k-1), at most max(d, 5 min)."""
    world = scene(500, 500, 500, 500, DONE)
    world.ends(spec_of(strategy=Fixed(interval)))
    assert world.seconds() == seconds


@pytest.mark.parametrize("status", [401, 403])
def test_s20_denied_has_a_small_budget(scene: MakeScene, status: int) -> None:
    """A job that stays denied ends after three in a row; one denial is survived."""
    assert scene(RUNNING, status).ends(spec_of()).outcome is Outcome.UNREACHABLE
    assert scene(RUNNING, status, DONE).ends(spec_of()).outcome is Outcome.SUCCEEDED


def test_s20_not_found_is_pending_at_first_and_lost_later(scene: MakeScene) -> None:
    """Within the grace, until the job was seen once; then three in a row. A 410 is lost at once."""
    assert scene(404, 404, DONE).ends(spec_of()).outcome is Outcome.SUCCEEDED
    world = scene(RUNNING, 404)
    assert (world.ends(spec_of()).outcome, world.job.polls) == (Outcome.LOST, 4)
    world = scene(RUNNING, 410)
    assert (world.ends(spec_of()).outcome, world.job.polls) == (Outcome.LOST, 2)


def raises(document: Any) -> bool:
    """A condition with a bug."""
    raise RuntimeError("a bug in here")


def test_s21_one_jobs_trouble_is_its_own(scene: MakeScene) -> None:
    """A condition that raises, a body of garbage and a damaged row leave the others alone."""
    world = scene()
    world.play([lambda seen: Answer(200, text="<<<") if seen.url.endswith("garbage") else DONE])

    async def main() -> list[Any]:
        async with world.poller() as poller:
            await poller.add("damaged", spec_of())
            with world.store._database.write() as connection:
                connection.execute(text("UPDATE tarry_job SET state = '{' WHERE key = 'damaged'"))
            twice = Limits(max_polls=2)
            return await asyncio.gather(
                poller.await_job("damaged"),
                poller.await_job("raises", spec_of(until=raises, limits=twice), raises=False),
                poller.await_job("garbage", spec_of(limits=twice), raises=False),
                *(poller.await_job(f"good-{n}", spec_of()) for n in range(5)),
                return_exceptions=True,
            )

    damaged, raising, garbage, *good = world.run(main)
    assert isinstance(damaged, CheckpointError)
    assert {raising.outcome, garbage.outcome} == {Outcome.EXHAUSTED}
    assert {each.outcome for each in good} == {Outcome.SUCCEEDED}


def test_s21_one_job_of_many_fails_alone(scene: MakeScene) -> None:
    """`await_all` gives each its result or its error, by key, in the order asked for."""
    world = scene()
    world.play([lambda seen: {"state": "FAILED"} if seen.url.endswith("b") else DONE])

    async def main() -> Any:
        async with world.poller() as poller:
            return await poller.await_all({key: spec_of() for key in "cba"})

    ended = world.run(main)
    assert {key: each.outcome for key, each in ended.items()} == {"c": "succeeded", "b": "failed", "a": "succeeded"}
    assert list(ended) == ["c", "b", "a"]
