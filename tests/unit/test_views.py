"""Rows as what callers get, damaged ones among them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

from tarry import JobFailed
from tarry.errors import CheckpointError
from tarry.ports import JobRow
from tarry.runtime.views import failure, result, snapshot, snapshots
from tests.pollers import FAILED, RUNNING, SUCCEEDED, World, spec_of

GARBAGE: list[dict[str, Any]] = [
    {"state": "nonsense"},
    {"last": "[]"},
    {"last": '{"v":1,"kind":"dream"}'},
    {"output": "{"},
    {"output": "[" * 100_000},
    {"timeline": "{"},
    {"timeline": "[1]"},
    {"timeline": '[[1,"pending"]]'},
    {"timeline": f'[1,{2**62},"pending",null]'},
    {"submit": "{"},
    {"submit": "[]"},
    {"due": 2**62},
    {"due": -(2**63)},
    {"deadline": 2**62},
    {"created_at": 2**62},
]


def ended(answer: Any = SUCCEEDED) -> tuple[World, JobRow]:
    """A world in which the job "orders" is over, and its row."""
    world = World([RUNNING, answer])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.await_job("orders", spec_of(), raises=False)

    world.run(main)
    row = world.store.find("default", "orders")
    assert row is not None
    return world, row


def named(changes: dict[str, Any]) -> str:
    """The changed column and the beginning of its value, for the name of a test."""
    return "; ".join(f"{column}={str(value)[:12]}" for column, value in changes.items())


@pytest.mark.parametrize("changes", GARBAGE, ids=named)
def test_a_damaged_row_gives_a_typed_error_that_names_its_job(changes: dict[str, Any]) -> None:
    """Whatever is damaged: never an error of the JSON reader or of the calendar."""
    row = replace(ended()[1], **changes)
    with pytest.raises(CheckpointError, match=r"^job 'orders': (?!job)"):
        snapshot(row)


@pytest.mark.parametrize(
    ("view", "changes"),
    [
        (result, {"output": "{"}),
        (result, {"last": "{"}),
        (result, {"finished_at": 2**62}),
        (result, {"finished_at": None}),
        (failure, {"spec": "{"}),
        (failure, {"outcome": None}),
        (failure, {"timeline": "{"}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_damaged_end_gives_a_typed_error_that_names_its_job(
    view: Callable[[JobRow], object], changes: dict[str, Any]
) -> None:
    """Also where a result or an error is made of the row."""
    row = replace(ended(FAILED)[1], **changes)
    with pytest.raises(CheckpointError, match=r"^job 'orders': (?!job)"):
        view(row)


def test_sound_rows_are_read() -> None:
    """The same rows without the damage: as they ended."""
    _, row = ended()
    assert result(row).output == snapshot(row).output == {"rows": 4211}
    assert [tick.verdict for tick in snapshot(row).timeline] == ["pending", "succeeded"]
    assert isinstance(failure(ended(FAILED)[1]), JobFailed)


def test_a_damaged_job_is_left_out_of_many_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """The others are shown, and one line of the log says which is not."""
    _, row = ended()
    rows = [row, replace(row, id=2, key="bad", timeline="{"), replace(row, id=3)]
    with caplog.at_level(logging.ERROR, "tarry"):
        assert [job.id for job in snapshots(rows)] == [1, 3]
    (line,) = caplog.records
    assert line.name == "tarry"
    assert line.getMessage().startswith("left out: job 'bad': timeline: damaged: ")


@pytest.mark.parametrize("changes", GARBAGE, ids=named)
def test_a_poller_lists_the_others(changes: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """One damaged job is absent from the page, and loud where it is asked for by its key."""
    world, row = ended()
    job = world.store.tables.job

    async def main() -> list[str]:
        async with world.poller() as poller:
            await poller.add("good", spec_of())
            with world.store._database.write() as connection:
                connection.execute(update(job).where(job.c.id == row.id).values(changes))
            with pytest.raises(CheckpointError, match=r"^job 'orders': "):
                await poller.get("orders")
            return [seen.key for seen in await poller.jobs()]

    assert world.run(main) == ["good"]
    assert [record.name for record in caplog.records if "left out" in record.getMessage()] == ["tarry"]
