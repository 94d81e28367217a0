"""Group commit: what comes while a call is under way goes into the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tarry.errors import TarryError
from tarry.runtime.writer import MOST, Asked, Together
from tarry.testing import FakeClock
from tarry.words import SECOND


class Counter:
    """Answers each number with its square, one second a call; remembers what it was asked."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.asked: list[list[int]] = []

    async def ask(self, numbers: Sequence[int]) -> list[int]:
        self.asked.append(list(numbers))
        await self.clock.sleep(SECOND)
        if 13 in numbers:
            raise ValueError("thirteen")
        return [number**2 for number in numbers]


async def asking(together: Together[int, int], number: int) -> int:
    """The answer, for a task of its own."""
    return await together(number)


def test_a_lone_item_waits_for_nobody() -> None:
    """It is asked for at once, alone."""
    counter = Counter()
    assert counter.clock.run(lambda: asking(Together(counter.ask), 3)) == 9
    assert counter.asked == [[3]]


def test_what_comes_while_a_call_runs_shares_the_next() -> None:
    """In the order in which it came, each with its own answer."""
    counter = Counter()

    async def main() -> list[int]:
        together = Together(counter.ask)
        first = asyncio.create_task(asking(together, 1))
        await counter.clock.sleep(SECOND // 2)
        return [*await asyncio.gather(*map(together, range(20, 60))), await first]

    assert counter.clock.run(main) == [*(number**2 for number in range(20, 60)), 1]
    assert counter.asked == [[1], list(range(20, 60))]


def test_a_call_is_for_a_bounded_number() -> None:
    """A crowd is served in parts."""
    counter = Counter()

    async def main() -> None:
        await asyncio.gather(*map(Together(counter.ask), range(14, 14 + 2 * MOST)))

    counter.clock.run(main)
    assert [len(asked) for asked in counter.asked] == [MOST, MOST]


def test_an_error_is_the_answer_of_all_that_shared_the_call() -> None:
    """And of nobody else."""
    counter = Counter()

    async def main() -> None:
        together = Together(counter.ask)
        both = await asyncio.gather(together(12), together(13), return_exceptions=True)
        assert list(map(repr, both)) == ["ValueError('thirteen')"] * 2
        assert await together(4) == 16

    counter.clock.run(main)


def test_a_caller_that_is_cancelled_waits_for_the_end() -> None:
    """What its call did is known by then, and the others get their answers."""
    counter = Counter()

    async def main() -> None:
        together = Together(counter.ask)
        one, other = asyncio.create_task(asking(together, 2)), asyncio.create_task(asking(together, 3))
        await counter.clock.sleep(SECOND // 2)
        begun = counter.clock.now()
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        assert counter.clock.now() - begun == 500_000
        assert await other == 9

    counter.clock.run(main)


def test_a_loop_that_ends_leaves_nobody_waiting() -> None:
    """Whoever cancels every task, as a loop does at its end, ends those that were asked for and those still in line."""
    counter = Counter()

    async def main() -> list[BaseException | int]:
        together = Together(counter.ask)
        waiting = [asyncio.create_task(asking(together, 1))]
        await counter.clock.sleep(SECOND // 2)
        waiting.append(asyncio.create_task(asking(together, 2)))
        await counter.clock.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        return await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(ended) for ended in counter.clock.run(main)] == [asyncio.CancelledError] * 2


def test_a_loop_that_ends_before_the_call_begins_leaves_nobody_waiting() -> None:
    """Also the task that was about to make the call is cancelled then, before its first step."""
    counter = Counter()

    async def main() -> list[BaseException | int]:
        waiting = asyncio.create_task(asking(Together(counter.ask), 1))
        ending = asyncio.current_task()

        def end() -> None:
            for task in asyncio.all_tasks() - {ending}:
                task.cancel()

        # Between the first step of who asks, and that of the call.
        asyncio.get_running_loop().call_soon(end)
        return await asyncio.gather(waiting, return_exceptions=True)

    assert [type(ended) for ended in counter.clock.run(main)] == [asyncio.CancelledError]
    assert counter.asked == []


def test_what_nobody_has_to_know_is_left_at_once() -> None:
    """The call goes on for the others; whoever left before it began is not asked for."""
    counter = Counter()

    async def main() -> list[int]:
        asked = Asked(counter.ask)
        first, left, last = (asyncio.create_task(asking(asked, number)) for number in (2, 3, 4))
        early = asyncio.create_task(asking(asked, 5))
        await counter.clock.sleep(SECOND // 2)
        late = asyncio.create_task(asking(asked, 6))
        await counter.clock.sleep(0)
        begun = counter.clock.now()
        for task in (left, late):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert counter.clock.now() == begun
        return await asyncio.gather(first, last, early)

    assert counter.clock.run(main) == [4, 16, 25]
    assert [number for asked in counter.asked for number in asked] == [2, 3, 4, 5]


def test_an_end_is_an_error_to_whoever_was_not_cancelled() -> None:
    """Nobody takes it for a cancellation, and what is under way is told, to be waited for."""
    counter = Counter()

    async def main() -> list[BaseException | int]:
        together = Together(counter.ask)
        waiting = [asyncio.create_task(asking(together, number)) for number in (1, 2)]
        await counter.clock.sleep(SECOND // 2)
        waiting.append(asyncio.create_task(asking(together, 3)))
        await counter.clock.sleep(0)
        await asyncio.gather(*together.end(), return_exceptions=True)
        return await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(ended) for ended in counter.clock.run(main)] == [TarryError] * 3
