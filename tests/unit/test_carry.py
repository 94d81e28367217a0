"""Callables that carry state from call to call, and those that hold up the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from typing import Any

import pytest

from tarry import CheckpointError, Fixed, JobResult, Limits, Match, WaitTimeout
from tarry.runtime.callables import CARRY_LIMIT, Watched, place_of_state, with_state
from tarry.testing import FakeClock
from tarry.words import SECOND
from tests.pollers import World, spec_of

STATES = ["RUNNING", "RUNNING", "RUNNING", "SUCCEEDED"]


def world() -> World:
    """Nothing here is polled over HTTP."""
    return World([{}])


def job(poll: Callable[..., Any], **changes: Any) -> Any:
    """A job that is polled by a callable, every 2 s."""
    until = Match("body.state", succeeded="SUCCEEDED", pending="RUNNING")
    return spec_of(**{"submit": None, "poll": poll, "until": until, "result": None, "reason": None, **changes})


def awaited(poll: Callable[..., Any], **changes: Any) -> JobResult[Any]:
    """The result of a job polled by this callable."""
    made = world()

    async def main() -> JobResult[Any]:
        async with made.poller() as poller:
            return await poller.await_job("orders", job(poll, **changes))

    return made.run(main)


def test_a_call_gets_what_the_last_one_carried() -> None:
    """Plain or async; the body is what conditions see."""
    seen: list[Any] = []

    def plain(state: int = 0) -> tuple[Any, Any]:
        seen.append(state)
        return {"state": STATES[state]}, state + 1

    async def later(*, state: int = 0) -> tuple[Any, Any]:
        return plain(state)

    assert awaited(plain).output == {"state": "SUCCEEDED"}
    assert awaited(later).polls == 4
    assert seen == [0, 1, 2, 3] * 2


def test_it_goes_on_in_another_process() -> None:
    """The state is committed with the poll, and survives a long wait, in which nobody holds the job."""
    seen: list[Any] = []

    def poll(state: int = 0) -> tuple[Any, Any]:
        seen.append(state)
        return {"state": STATES[state]}, state + 1

    made = world()

    async def main() -> JobResult[Any]:
        for _ in range(2):
            async with made.poller() as poller:
                with pytest.raises(WaitTimeout):
                    await poller.await_job("orders", job(poll, strategy=Fixed("5m")), wait_timeout="6m")
        async with made.poller() as poller:
            return await poller.await_job("orders", job(poll, strategy=Fixed("5m")))

    assert made.run(main).polls == 4
    assert seen == [0, 1, 2, 3]


def test_nothing_carried_is_not_none_carried() -> None:
    """Before the first, the default stands; None that was carried comes as None."""
    seen: list[Any] = []

    def poll(state: Any = "default") -> Any:
        seen.append(state)
        return {"state": STATES[len(seen) - 1]}, [None, 0, False, ""][len(seen) - 1]

    awaited(poll)
    assert seen == ["default", None, 0, False]


def test_without_a_default_the_first_is_none() -> None:
    """A callable that always wants one gets one."""
    seen: list[Any] = []

    def poll(state: Any) -> Any:
        seen.append(state)
        return {"state": "SUCCEEDED"}, 1

    awaited(poll)
    assert seen == [None]


def test_a_call_that_fails_leaves_it() -> None:
    """What was carried before is carried on, after an error as after an answer that is no pair."""
    seen: list[Any] = []

    def poll(state: Any = None) -> Any:
        seen.append(state)
        match len(seen):
            case 1:
                return {"state": "RUNNING"}, {"cursor": 7}
            case 2:
                return {"state": "RUNNING"}  # and no state
            case 3:
                raise OSError("no answer")
            case _:
                return {"state": "SUCCEEDED"}, None

    assert awaited(poll).polls == 4
    assert seen == [None, {"cursor": 7}, {"cursor": 7}, {"cursor": 7}]


def test_a_submit_may_carry_to_the_first_poll() -> None:
    """A callable submit, too, hands on what it knows."""
    seen: list[Any] = []

    def submit(state: Any = None) -> tuple[Any, Any]:
        return {"jobId": "j1"}, ["j1"]

    def poll(state: Any = None) -> tuple[Any, Any]:
        seen.append(state)
        return {"state": "SUCCEEDED"}, None

    awaited(poll, submit=submit)
    assert seen == [["j1"]]


def test_args_of_that_name_are_the_callers() -> None:
    """What the spec gives is never replaced."""
    seen: list[Any] = []

    def poll(state: str) -> Any:
        seen.append(state)
        return {"state": STATES[len(seen) + 1]}

    awaited(poll, args={"state": "yours"})
    assert seen == ["yours", "yours"]


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("x" * CARRY_LIMIT, f"ValueError: it carries {CARRY_LIMIT + 2} bytes of state; at most {CARRY_LIMIT} are kept"),
        (float("nan"), "ValueError: Out of range float"),
        ({1}, "TypeError: Object of type set is not JSON serializable"),
    ],
    ids=["large", "nan", "set"],
)
def test_what_cannot_be_carried_is_a_failed_poll(state: Any, told: str) -> None:
    """The reason is kept, nothing is stored, and the job goes on."""
    made = world()

    async def main() -> str | None:
        async with made.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job(
                    "orders", job(lambda state=state: ({"state": "SUCCEEDED"}, state)), wait_timeout=0
                )
            return (await poller.get("orders")).error

    assert str(made.run(main)).startswith(f"callable: {told}")


def test_what_fits_exactly_is_carried() -> None:
    """The limit counts the bytes of the JSON."""
    assert awaited(lambda state=None: ({"state": "SUCCEEDED"}, "x" * (CARRY_LIMIT - 2))).polls == 1


def test_a_damaged_state_is_told_and_left() -> None:
    """Nothing is polled for a job whose carried state cannot be read."""
    made, calls = world(), []

    def poll(state: int = 0) -> tuple[Any, Any]:
        calls.append(state)
        return {"state": "RUNNING"}, state + 1

    async def main() -> None:
        async with made.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", job(poll), wait_timeout=0)
        with made.store._database.write() as connection:
            connection.exec_driver_sql("UPDATE tarry_job SET carried = '{'")
        async with made.poller() as poller:
            with pytest.raises(CheckpointError, match=r"job 'orders': carried: damaged"):
                await poller.await_job("orders", job(poll))

    made.run(main)
    assert calls == [0]


def test_what_has_no_signature_gets_no_state() -> None:
    """Nor does one whose `state` cannot be given by name."""

    def by_position(state: Any, /) -> Any:
        return state

    def any_number(*state: Any) -> Any:
        return state

    for function in (max, by_position, any_number, len):
        assert place_of_state(function, {}) is None
    assert with_state(None, {"a": 1}, "7") == {"a": 1}


# The event loop.


def held_up(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "held up" in record.getMessage()]


class Turn:
    """Lets the loop go round once."""

    def __await__(self) -> Generator[None, None, None]:
        yield


def test_one_that_holds_up_the_loop_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """With the job's key, and what to do; one that awaits is fine, however long it takes."""
    now = [0]

    class Jumping:
        def now(self) -> int:
            return now[0]

        async def sleep(self, span: int) -> None:
            raise AssertionError(span)

    async def blocks() -> str:
        now[0] += 2 * SECOND
        return "done"

    async def awaits() -> str:
        for _ in range(3):
            await Turn()
            now[0] += SECOND
        return "done"

    async def main() -> None:
        with caplog.at_level(logging.WARNING, "tarry.runtime"):
            assert await Watched(awaits(), Jumping(), "orders") == "done"
            assert held_up(caplog) == []
            assert await Watched(blocks(), Jumping(), "orders") == "done"

    asyncio.run(main())
    (line,) = held_up(caplog)
    assert line.startswith("a callable of job 'orders' held up the event loop for 2.0 s; make it a plain function")


def test_errors_and_cancellations_go_through() -> None:
    """A callable may catch what is thrown into it, as without the watch."""
    clock = FakeClock()
    caught: list[str] = []

    async def sleeps() -> str:
        try:
            await clock.sleep(60 * SECOND)
        except asyncio.CancelledError:
            caught.append("cancelled")
            raise
        return "never"

    async def main() -> None:
        task = asyncio.ensure_future(_watched())
        await clock.sleep(SECOND)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def _watched() -> Any:
        return await Watched(sleeps(), clock, "orders")

    clock.run(main)
    assert caught == ["cancelled"]


def test_limits_hold_for_callables() -> None:
    """The last poll counts, carried state or not."""
    made = world()

    async def main() -> JobResult[Any]:
        spec = job(lambda state=0: ({"state": "RUNNING"}, state), limits=Limits(max_polls=2))
        async with made.poller() as poller:
            return await poller.await_job("orders", spec, raises=False)

    assert made.run(main).outcome == "exhausted"
