"""What type checkers make of the front door: checked, never run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, assert_type

from pydantic import BaseModel, TypeAdapter

from tarry import (
    Acceptors,
    Batch,
    Errors,
    Exponential,
    Expression,
    Fixed,
    Hints,
    Job,
    JobError,
    JobResult,
    JobSpec,
    Limits,
    Linear,
    Match,
    Outcome,
    Poller,
    Request,
    SpecError,
    Status,
    StoredEvent,
    Verdict,
    WaitTimeout,
    await_job,
    sync,
)

# Options may be written by position where they read well.
poll = Request("GET", "https://api.example.com/jobs/{submit.body.jobId}")
submit = Request("POST", "https://api.example.com/jobs", json={"dataset": "orders", "parts": [1, 2]})
until = Match("body.state", succeeded="SUCCEEDED", failed=["FAILED", "ABORTED"], pending=["QUEUED", "RUNNING"])
Acceptors([("body.state == 'DONE'", "succeeded"), ("body.errors", Verdict.FAILED)])
Expression("body.done")
Status(succeeded=200, pending=202)
Fixed("1s")
Fixed(1.5, jitter="full")
Linear("1s", "2s", maximum=timedelta(minutes=1))
Exponential("5s", factor=1.5, maximum="1m", jitter="half")

# Conditions combine with each other and with callables.
both = until & Status(succeeded="2xx")
either = until | (lambda document: document["body"] == "done")
neither = ~until


def check_export(dataset: str) -> dict[str, str]:
    """A plain callable can be polled."""
    return {"state": dataset}


async def check_export_later(dataset: str) -> dict[str, str]:
    """So can an async one."""
    return {"state": dataset}


spec = JobSpec(
    submit=submit,
    poll=poll,
    until=both,
    strategy=Exponential("5s", maximum="1m"),
    limits=Limits(min_interval=0.5, max_polls=500, total_duration="2h", poll_timeout=timedelta(seconds=10)),
    errors=Errors(max_consecutive=3, min_outage=0),
    hints=Hints(maximum="10m", on_excess="fail", path="body.retryInMs", unit="ms"),
    input={"dataset": "orders"},
    result="body.result",
    labels={"team": "data"},
)
JobSpec(poll=check_export, args={"dataset": "orders"}, until=either, limits=Limits(total_duration=None, max_polls=None))
JobSpec(poll=check_export_later, args={"dataset": "orders"}, until=neither)
JobSpec(poll=Batch(poll, items="body.jobs", id="{key}", window="1s", missing="pending"), until=until)

# What cannot work is said before it runs.
JobSpec(poll=poll)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # a spec without a condition
Limits("1s")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # which limit? by name only
Limits(max_poll=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # no such name
Fixed("1s", jitter="some")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # none, half or full
Match("body.state", unknown="maybe")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # pending, failed


async def front_door() -> None:
    """The types that come out."""
    async with Poller("sqlite:///tarry.db", namespace="reports", secrets={"TOKEN": "…"}) as poller:
        assert_type(poller, Poller)
        result = await poller.await_job("orders", spec, wait_timeout="10s")
        assert_type(result, JobResult[Any])
        assert_type(result.outcome, Outcome)
        assert_type(result.elapsed, timedelta)
        assert_type(result.polls, int)
        assert_type(await poller.get("orders"), Job)
        assert_type(await poller.cancel("orders"), Job)
    assert_type(await await_job("orders", spec, store="sqlite:///tarry.db"), JobResult[Any])
    await await_job("orders", spec, store="sqlite:///tarry.db", leese="10s")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # no such option


class Export(BaseModel):
    """What a job puts out."""

    rows: int


async def typed_results(poller: Poller, twin: sync.Poller) -> None:
    """The output is what was asked for."""
    assert_type(await poller.await_job("orders", spec, output_type=Export), JobResult[Export])
    assert_type((await poller.await_job("orders", output_type=list[int])).output, list[int])
    either_type = TypeAdapter[int | str](int | str)
    assert_type(await poller.await_job("orders", output_type=either_type), JobResult[int | str])
    assert_type(await await_job("orders", spec, store="", output_type=Export, lease="20s"), JobResult[Export])
    assert_type(twin.await_job("orders", spec, output_type=Export), JobResult[Export])
    assert_type(sync.await_job("orders", spec, store="", output_type=Export), JobResult[Export])


def blocking() -> None:
    """The twin has the same arguments, and answers without `await`."""
    with sync.Poller("sqlite:///tarry.db", namespace="reports", secrets={"TOKEN": "…"}) as poller:
        assert_type(poller, sync.Poller)
        assert_type(poller.await_job("orders", spec, wait_timeout="10s"), JobResult[Any])
        assert_type(poller.add("orders", spec), Job)
        assert_type(poller.jobs(prefix="orders"), list[Job])
        assert_type(poller.watch("orders"), Iterator[StoredEvent])
        poller.get()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # of which job?
    sync.Poller()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # on which store?
    assert_type(sync.await_job("orders", spec, store="sqlite:///tarry.db"), JobResult[Any])


def errors(error: JobError, patience: WaitTimeout, definition: SpecError) -> None:
    """Facts are attributes; each error is what its turn needs it to be."""
    assert_type(error.key, str)
    assert_type(error.outcome, Outcome)
    assert_type(error.job, Job | None)
    timeout: TimeoutError = patience
    value: ValueError = definition
    print(timeout, value, definition.field)
