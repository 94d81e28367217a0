from __future__ import annotations

import math
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
import tenacity
from tenacity import wait_chain, wait_exception, wait_exponential, wait_fixed, wait_incrementing, wait_random

from tarry import Fixed, Limits, Phases, SpecError, WaitTimeout, plan
from tarry.codec import decode_spec, encode_spec
from tarry.core.custom_strategy import CustomStrategy
from tarry.core.durations import CENTURY
from tarry.words import SECOND, WaitSource
from tests.pollers import RUNNING as STILL_RUNNING
from tests.pollers import SUCCEEDED, World, polled
from tests.unit.scripted import RUNNING, Script, http, spec
from tests.unit.test_spec_errors import refused

ENDLESS = Limits(max_polls=None, total_duration=None)


def squares(n: int) -> int:
    """1 s, 4 s, 9 s, …; has a name that another process can import."""
    return n * n


def waits(strategy: Any, polls: int = 5) -> list[float]:
    script = Script(spec(strategy=strategy, limits=ENDLESS))
    script.play(*[RUNNING] * polls)
    return [after - before for before, after in pairwise(script.polls_at())]


@pytest.mark.parametrize(
    ("strategy", "seconds"),
    [
        (squares, [1, 4, 9, 16]),
        (lambda n: f"{n}m", [60, 120, 180, 240]),
        (lambda n: timedelta(seconds=2.5 * n), [2.5, 5, 7.5, 10]),
        (lambda _: 0, [1, 1, 1, 1]),
        (wait_fixed(3), [3, 3, 3, 3]),
        (wait_incrementing(2, 3), [2, 5, 8, 11]),
        (wait_exponential(multiplier=1, max=5), [1, 2, 4, 5]),
        (wait_fixed(3) + wait_incrementing(1, 1), [4, 5, 6, 7]),
        (wait_chain(wait_fixed(1), wait_fixed(2), wait_fixed(7)), [1, 2, 7, 7]),
    ],
    ids=["named", "text", "timedelta", "zero", "fixed", "incrementing", "exponential", "sum", "chain"],
)
def test_a_callable_says_how_long_to_wait(strategy: Any, seconds: list[float]) -> None:
    """A function of n, or a wait of tenacity; the floor holds."""
    assert waits(strategy) == seconds


def test_a_phase_may_be_a_callable() -> None:
    """It counts from 1 within its phase."""
    assert waits(Phases([(Fixed("10s"), 2), squares]), 6) == [10, 10, 1, 4, 9]


def test_a_wait_without_end_is_cut() -> None:
    """A tenacity wait may be as long as the universe is old."""
    strategy = CustomStrategy(wait_exponential(max=1e30))
    assert strategy.delay(10_000) == (CENTURY, False)
    assert CustomStrategy(lambda _: 10**400).delay(1) == (CENTURY, False)


def test_a_drawn_wait_is_stored() -> None:
    """What chance drew is drawn once: a restart goes on to the same instant."""
    script = Script(spec(strategy=wait_random(5, 500), limits=ENDLESS))
    script.play(RUNNING)
    due = script.state.due
    script.restart(1 * SECOND)
    assert script.state.due == due


@pytest.mark.parametrize(
    ("strategy", "problem"),
    [
        (lambda n: 1 / (n - n), "ZeroDivisionError: division by zero"),
        (lambda _: -1, "ValueError: a duration cannot be negative"),
        (lambda _: math.nan, "ValueError: not a finite number"),
        (lambda _: math.inf, "ValueError: not a finite number"),
        (lambda _: None, "ValueError: not a duration"),
        (lambda _: True, "ValueError: not a duration"),
        (lambda _: "soon", "ValueError: not a duration"),
        (lambda _: "5", "ValueError: text without a unit"),
        (wait_exception(lambda _: 1), "RuntimeError: "),
    ],
    ids=["raises", "negative", "nan", "inf", "none", "bool", "word", "no-unit", "wait-exception"],
)
def test_nonsense_leaves_the_wait_to_the_default_strategy(strategy: Any, problem: str) -> None:
    """No crash and no hot loop; the source and the error say so."""
    script = Script(spec(strategy=strategy, limits=ENDLESS))
    script.play(RUNNING, RUNNING, RUNNING)
    assert script.polls_at() == [0, 2, 5]
    assert script.state.wait == 4.5 * SECOND
    assert script.state.wait_source is WaitSource.STRATEGY_ERROR
    assert str(script.state.error).startswith(f"strategy: {problem}")


def test_nonsense_backs_off_and_yields_to_a_hint() -> None:
    """A failed poll's backoff begins from the default wait; a hint replaces it."""
    script = Script(spec(strategy=lambda _: None, limits=ENDLESS))
    script.play(http(500), http(200, {"state": "RUNNING"}, {"retry-after": "30"}))
    assert script.polls_at() == [0, 2]
    assert script.state.wait == 30 * SECOND


async def later(n: int) -> int:
    return n


class Later:
    async def __call__(self, n: int) -> int:
        return n


@pytest.mark.parametrize(
    ("strategy", "problem"),
    [
        (lambda: 5, "has to take one argument"),
        (lambda _n, _m: 5, "has to take one argument"),
        (later, "an async strategy"),
        (Later(), "an async strategy"),
        (5, "no strategy"),
        ("5s", "no strategy"),
        (Fixed, "no strategy"),
    ],
    ids=["none", "two", "async", "async-object", "number", "text", "class"],
)
def test_what_cannot_work_is_refused(strategy: Any, problem: str) -> None:
    """At once, naming the field."""
    error = refused(lambda: spec(strategy=strategy))
    assert error.field.startswith("JobSpec.strategy")
    assert problem in error.problem


def test_a_builtin_without_a_signature_is_taken_at_its_word() -> None:
    """Python cannot say what it takes; called with n it answers or raises."""
    assert CustomStrategy(max).delay is not None
    assert waits(max) == [2, 3, 4.5, 6.75]


def test_a_named_function_is_stored_by_its_name() -> None:
    """And found again where its module is imported."""
    again = decode_spec(encode_spec(spec(strategy=squares, limits=ENDLESS)))
    assert again.model_dump(mode="json")["strategy"]["by"]["function"] == "tests.unit.test_custom_strategy:squares"
    assert waits(again.strategy) == [1, 4, 9, 16]
    assert [function.inline for function in again.functions] == [False]


def test_what_has_no_name_does_not_travel() -> None:
    """Refused by `add`, with the reason; left alone by a process that does not know it."""
    world = World([STILL_RUNNING, SUCCEEDED])
    job = polled(strategy=wait_fixed(3))

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(SpecError, match=r"tenacity\.wait:wait_fixed cannot be imported by name"):
                await poller.add("orders", job)
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", job, wait_timeout=0)
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", wait_timeout=60)
            return await poller.await_job("orders", job)

    assert world.run(main).polls == 2
    assert world.seconds() == [0, 60]


def test_it_is_asked_off_the_event_loop() -> None:
    """A strategy that blocks holds up nothing else, and its failure is told."""
    import threading

    asked: list[str] = []

    def slowly(_: int) -> int:
        asked.append(threading.current_thread().name)
        raise OSError("no table")

    world = World([STILL_RUNNING, SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            return await poller.await_job("orders", polled(strategy=slowly))

    assert world.run(main).polls == 2
    assert asked == ["tarry-callable"]
    told = [event.data for event in world.told if event.kind == "wait_changed"]
    assert told == [{"source": "strategy_error", "wait_us": 2 * SECOND, "error": "strategy: OSError: no table"}]


def test_the_plan_of_a_callable_is_a_guess() -> None:
    """It lists what the callable says now; the bound on the count is the floor's."""
    made = plan(spec(strategy=squares, limits=Limits(max_polls=1000, total_duration="100s")), 4)
    assert [poll.at / SECOND for poll in made.polls] == [0, 1, 5, 14]
    assert (made.most_polls, made.longest) == (100, 100 * SECOND)
    assert made.warnings == (
        "the strategy is a callable: its waits are known only as they come, so the floor bounds the count",
    )


def test_tenacity_asks_for_nothing_else() -> None:
    """What its own waits read of a retry state is there; this fails when a new version reads more."""
    names = [name for name in vars(tenacity) if name.startswith("wait_") and isinstance(getattr(tenacity, name), type)]
    made = [getattr(tenacity, name) for name in sorted(set(names) - {"wait_base", "wait_chain", "wait_combine"})]
    for wait in made:
        if wait is wait_exception:
            continue
        arguments = {"wait_fixed": (1,), "wait_exponential_jitter": (1,)}.get(wait.__name__, ())
        assert CustomStrategy(wait(*arguments)).delay(3)[0] >= 0
