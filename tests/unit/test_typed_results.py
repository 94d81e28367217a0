"""`output_type`: the output of a job as a type of the caller's."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter
from typing_extensions import TypedDict

import tarry
from tarry import JobFailed, JobResult, JobSpec, Outcome, SpecError, sync
from tarry.clock import SystemClock
from tarry.errors import ResultInvalid, TarryError
from tarry.runtime.options import Options
from tarry.store import MemoryStore
from tarry.testing import FakeClock, ScriptedJob
from tests.pollers import FAILED, RUNNING, World, polled


class Kind(Enum):
    """What an export holds."""

    ORDERS = "orders"


class Export(BaseModel):
    """The output as a model."""

    model_config = ConfigDict(strict=True)
    rows: int
    at: datetime
    kind: Kind
    tags: tuple[str, ...] = ()


@dataclass
class Count:
    """The output as a dataclass."""

    rows: int


class Rows(TypedDict):
    """The output as a dictionary."""

    rows: int


OUTPUT: dict[str, Any] = {"rows": 3, "at": "2026-03-01T12:00:00Z", "kind": "orders", "tags": ["a", "b"]}


def awaited(output: Any, output_type: Any, job: JobSpec | None = None, **options: Any) -> JobResult[Any]:
    """The result of a job with this output, as this type."""
    world = World([{"state": "SUCCEEDED", "result": output}])

    async def main() -> JobResult[Any]:
        async with world.poller() as poller:
            return await poller.await_job("orders", job or polled(), output_type=output_type, **options)

    return world.run(main)


@pytest.mark.parametrize(
    ("output", "output_type", "typed"),
    [
        (OUTPUT, Export, Export.model_validate_json('{"rows":3,"at":"2026-03-01T12:00:00Z","kind":"orders","tags":["a","b"]}')),
        ({"rows": 3}, Count, Count(3)),
        ({"rows": 3}, Rows, {"rows": 3}),
        ([1, 2], list[int], [1, 2]),
        ("7", int, 7),
        (None, TypeAdapter(int | None), None),
        ("x", TypeAdapter(int | str), "x"),
        ({"rows": 3}, None, {"rows": 3}),
    ],
    ids=["model", "dataclass", "typed-dict", "list", "int", "none", "union", "untyped"],
)  # fmt: skip
def test_the_output_is_of_the_type_asked_for(output: Any, output_type: Any, typed: Any) -> None:
    """Validated as JSON, so that a strict model takes its dates, enums and tuples from what JSON has."""
    result = awaited(output, output_type)
    assert result.output == typed
    assert type(result.output) is type(typed)
    assert result.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    ("output", "output_type", "path", "told"),
    [
        ({**OUTPUT, "rows": "many"}, Export, "rows", "rows: Input should be a valid integer"),
        ({"rows": 3}, Export, "at", "at: Field required (and 1 more)"),
        ([{"rows": 1}, {"rows": None}], list[Count], "[1].rows", "[1].rows: Input should be a valid integer"),
        ("text", Count, "", "it: Input should be an object"),
    ],
    ids=["field", "missing", "item", "root"],
)
def test_what_does_not_fit_is_told_with_its_place(output: Any, output_type: Any, path: str, told: str) -> None:
    """Never with the value; the untyped result goes with the error, which pickles."""
    with pytest.raises(ResultInvalid) as caught:
        awaited(output, output_type)
    error = caught.value
    assert str(error).startswith(f"job 'orders' succeeded, but its output does not fit: {told}")
    assert "many" not in str(error)
    assert (error.key, error.path) == ("orders", path)
    assert error.result.output == output
    assert isinstance(error, TarryError | ValueError)
    again = pickle.loads(pickle.dumps(error))  # our own, of a moment ago
    assert (str(again), again.path, again.result) == (str(error), error.path, error.result)


def test_the_stored_job_stays_succeeded() -> None:
    """A wait with another type, or without one, returns it, and nothing is polled again."""
    world = World([{"state": "SUCCEEDED", "result": [1]}])

    async def main() -> tuple[Any, Any]:
        async with world.poller() as poller:
            with pytest.raises(ResultInvalid):
                await poller.await_job("orders", polled(), output_type=Count)
            typed = await poller.await_job("orders", output_type=list[int])
            return typed.output, (await poller.await_job("orders")).output

    assert world.run(main) == ([1], [1])
    assert world.job.polls == 1


def test_what_is_no_type_is_refused_before_anything_happens() -> None:
    """No job is made."""
    world = World([RUNNING])

    async def main() -> list[Any]:
        async with world.poller() as poller:
            for wrong in (object(), 5, ScriptedJob):
                with pytest.raises(SpecError, match=r"output_type: not a type that an output can be validated with"):
                    await poller.await_job("orders", polled(), output_type=wrong)  # type: ignore[arg-type]  # on purpose
            return await poller.jobs()

    assert world.run(main) == []


def test_a_job_that_ended_badly_has_nothing_to_validate() -> None:
    """Its error is raised, or its result returned with no output."""
    for raises in (True, False):
        world = World([FAILED])

        async def main(world: World = world, raises: bool = raises) -> JobResult[Count]:  # binds the loop's
            async with world.poller() as poller:
                return await poller.await_job("orders", polled(), output_type=Count, raises=raises)

        if raises:
            with pytest.raises(JobFailed):
                world.run(main)
        else:
            assert world.run(main).output is None


def test_one_call_takes_it_too() -> None:
    """Async and blocking, with the options of a poller."""
    clock = FakeClock()
    answers = [{"state": "SUCCEEDED", "result": {"rows": 3}}]

    async def main() -> JobResult[Count]:
        job = ScriptedJob(answers, clock=clock)
        return await tarry.await_job(
            "orders", polled(), store=MemoryStore(), output_type=Count, transport=job, clock=clock, namespace="n"
        )

    assert clock.run(main).output == Count(3)
    blocking = sync.await_job(
        "orders",
        polled(),
        store=MemoryStore(),
        output_type=Count,
        transport=ScriptedJob(answers, clock=SystemClock()),
    )
    assert blocking.output == Count(3)


def test_the_options_are_those_of_a_poller() -> None:
    """What may be passed on is what there is to pass."""
    options = inspect.signature(tarry.Poller.__init__).parameters.values()
    assert [option.name for option in options if option.kind is option.KEYWORD_ONLY] == list(Options.__annotations__)
