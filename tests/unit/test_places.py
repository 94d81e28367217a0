"""The places of calls under way: who gets one, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import pytest

from tarry.http.places import Places


def lined_up(count: int, story: Callable[[Places, list[asyncio.Task[None]], list[int]], Awaitable[None]]) -> list[int]:
    """Who got the only place in a story, one after the other, when it was taken and so many waited for it."""

    async def told() -> list[int]:
        places, got = Places(1), list[int]()
        assert places.take()

        async def call(number: int) -> None:
            await places.wait()
            got.append(number)

        tasks = [asyncio.create_task(call(number)) for number in range(count)]
        await turns()
        await story(places, tasks, got)
        return got

    return asyncio.run(told())


async def turns() -> None:
    """Let every task come as far as it can."""

    async def one() -> None:
        pass

    for _ in range(3):
        await asyncio.create_task(one())


def cancelled(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel all of them."""
    for task in tasks:
        task.cancel()


def test_as_many_as_there_are_places() -> None:
    """And again once one was given back."""
    places = Places(2)
    assert [places.take() for _ in range(3)] == [True, True, False]
    places.give_back()
    assert [places.take() for _ in range(2)] == [True, False]


def test_who_came_first_is_first() -> None:
    """And nobody who comes later is quicker, not even before who was given the place has noticed."""

    async def story(places: Places, _: list[asyncio.Task[None]], got: list[int]) -> None:
        for number in range(3):
            places.give_back()
            assert not places.take()
            await turns()
            assert got == [*range(number + 1)]
        places.give_back()
        assert [places.take() for _ in range(2)] == [True, False]

    assert lined_up(3, story) == [0, 1, 2]


@pytest.mark.parametrize("noticed", [True, False])
def test_who_went_away_is_passed_over(noticed: bool) -> None:
    """Whether or not it has noticed that it was cancelled."""

    async def story(places: Places, tasks: list[asyncio.Task[None]], _: list[int]) -> None:
        cancelled(tasks[:2])
        if noticed:
            await turns()
        places.give_back()
        await turns()
        assert [task.cancelled() for task in tasks] == [True, True, False]
        places.give_back()
        assert [places.take() for _ in range(2)] == [True, False]

    assert lined_up(3, story) == [2]


@pytest.mark.parametrize("others", [0, 1])
def test_a_place_given_to_who_goes_away_is_not_lost(others: int) -> None:
    """It was given just before: the next one has it, or it is free."""

    async def story(places: Places, tasks: list[asyncio.Task[None]], _: list[int]) -> None:
        places.give_back()
        cancelled(tasks[:1])
        await turns()
        assert [task.cancelled() for task in tasks] == [True, *[False] * others]
        if others:
            places.give_back()
        assert [places.take() for _ in range(2)] == [True, False]

    assert lined_up(1 + others, story) == [*range(1, 1 + others)]
