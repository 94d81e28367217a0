"""What is owed after the end: a call of what `then` names, a remote cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tarry import JobCancelled, JobFailed, JobResult, JobSpec, JobTimedOut, Limits, Match, Outcome, Request, SpecError
from tarry.core.deliveries import MAX_TRIES, callable_for, owed, pause_after, read_cancel
from tarry.core.function import Function
from tarry.core.machine import start
from tarry.core.observation import CallError, Observation
from tarry.runtime.outbox import AT_ONCE
from tarry.testing import ScriptedJob
from tarry.words import HOUR, SECOND, CallKind, DeliveryKind, DeliveryState, ErrorKind, Verdict
from tests.pollers import FAILED, RUNNING, SUCCEEDED, World, polled, spec_of
from tests.unit.reactions import CALLS, TROUBLE, hang, note, note_async, stop

CANCEL = Request("POST", "https://api.example.com/jobs/{submit.body.jobId}/cancel")
SHORT = Limits(total_duration="5s")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    CALLS.clear()
    TROUBLE.clear()
    yield
    CALLS.clear()
    TROUBLE.clear()


class Ending(World):
    """A world with a script for the requests to cancel, too."""

    def __init__(self, answers: list[Any], cancel: Any = 202, fetch: Any = 404) -> None:
        super().__init__(answers)
        self.job = ScriptedJob(answers, submit=[{"jobId": "j1"}], cancel=cancel, fetch=fetch, clock=self.clock)

    def cancelled_at(self) -> list[float]:
        """When each request to cancel was made, in seconds from the beginning."""
        return [(seen.at - self.began) / SECOND for seen in self.job.requests if seen.kind == "cancel"]


def awaited(world: World, spec: JobSpec, wait: float = 0) -> Any:
    """Await the job to its end, then some seconds more; its snapshot."""

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.await_job("orders", spec, raises=False)
            await world.after(wait)
            return await poller.get("orders")

    return world.run(main)


def events(world: World) -> list[tuple[str, Any]]:
    """The stored events of the deliveries."""
    found = world.store.events("default", "orders", (0, 0), 99)
    return [(event.kind, event.data["what"]) for event in found if "deliver" in event.kind]


# then


def test_a_success_calls_back_with_the_result() -> None:
    """A plain callable, off the event loop, with what `await_job` returns; once is enough."""
    awaited(Ending([SUCCEEDED]), spec_of(then={"success": note}))
    (told,) = CALLS
    assert isinstance(told, JobResult)
    assert (told.key, told.outcome, told.output) == ("orders", "succeeded", {"rows": 4211})


def test_callables_that_hang_keep_the_others_waiting_for_a_while_only() -> None:
    """However many of them there are."""
    world = Ending([SUCCEEDED] * (AT_ONCE + 1))

    async def main() -> None:
        async with world.poller() as poller:
            for number in range(AT_ONCE):
                await poller.await_job(f"hung-{number}", polled(then={"success": hang}))
            await poller.await_job("orders", polled(then={"success": note}))
            await world.after(10)
            assert len(CALLS) == AT_ONCE
            await world.after(120)
            assert CALLS[-1].key == "orders"

    world.run(main)


def test_another_end_calls_back_with_the_error() -> None:
    """With its type, words and last observation, as `await_job` raises it; an async callable on the loop."""
    world = Ending([FAILED])
    awaited(world, spec_of(then={"success": note, "any": note_async}))
    (told,) = CALLS
    assert isinstance(told, JobFailed)
    assert "disk full" in str(told)
    assert told.last is not None
    assert told.last.body == FAILED
    assert events(world) == [("delivered", "then")]


def test_an_outcome_that_is_not_named_calls_nobody() -> None:
    """Nothing is owed then."""
    awaited(Ending([FAILED]), spec_of(then={"success": note, "timed_out": note}))
    assert CALLS == []


def test_the_most_exact_name_is_called() -> None:
    """The outcome's own word goes before its group, and that before "any"."""
    spec = spec_of(then={"failed": note, "failure": note_async, "any": stop})
    names = [callable_for(spec, outcome) for outcome in (Outcome.FAILED, Outcome.LOST, Outcome.SKIPPED)]
    assert [found and found.function.partition(":")[2] for found in names] == ["note", "note_async", "stop"]


def test_what_raises_is_called_again() -> None:
    """After growing pauses, also when it raises a cancellation of its own; the job stays as it ended."""
    world = Ending([SUCCEEDED])
    TROUBLE.extend([ValueError("not yet"), asyncio.CancelledError()])
    job = awaited(world, spec_of(then={"any": note_async}), wait=25)
    assert (len(CALLS), job.outcome) == (3, "succeeded")
    assert events(world) == [("delivered", "then")]


def test_what_keeps_raising_is_left_to_a_person(caplog: pytest.LogCaptureFixture) -> None:
    """A dead letter with the error; delivered again when somebody asks for it."""
    world = Ending([SUCCEEDED])
    TROUBLE.extend([OSError("no 1"), OSError("no 2")])

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.await_job("orders", spec_of(then={"any": note}))
            await world.after(1)
            with world.store._database.write() as connection:
                connection.exec_driver_sql(f"UPDATE tarry_outbox SET tries = {MAX_TRIES - 1}, wake = 0")
            await world.after(1)
            letters = await poller.dead_letters()
            counts = [await poller.redeliver("orders"), await poller.redeliver("orders")]
            await world.after(1)
            return letters, counts, await poller.dead_letters()

    (letter,), counts, none = world.run(main)
    assert (letter.key, letter.kind, letter.tries, letter.error) == ("orders", "then", MAX_TRIES, "OSError: no 2")
    assert (counts, none, len(CALLS)) == ([1, 0], [], 3)
    assert events(world) == [("undelivered", "then"), ("delivered", "then")]
    assert [record.levelname for record in caplog.records if "then is dead" in record.message] == ["WARNING"]


def test_a_job_that_nobody_awaits_calls_back_from_any_worker() -> None:
    """Cancelled by a process that awaits nothing, delivered by one that awaits another job."""
    world = Ending([RUNNING])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.add("orders", spec_of(then={"cancelled": note}))
            await poller.cancel("orders")
        async with world.poller() as worker:
            with pytest.raises(TimeoutError):
                await worker.await_job("other", polled(), wait_timeout=2)

    world.run(main)
    (told,) = CALLS
    assert isinstance(told, JobCancelled)


def test_a_callable_that_is_not_known_here_is_left_to_others(caplog: pytest.LogCaptureFixture) -> None:
    """With one line in the log; a name never imports anything. Whoever knows it makes the call."""
    world = Ending([SUCCEEDED])
    strange = Function(function="no_such_module:report")
    awaited(world, spec_of(then={"any": strange, "failed": note}), wait=200)
    lines = [record for record in caplog.records if "left to others" in record.message]
    (waiting,) = world.store.deliveries.due("default", world.clock.now(), 0, 9)
    assert (len(lines), waiting.tries, waiting.state) == (1, 0, "pending")


def test_a_process_that_dies_over_a_call_leaves_it_to_the_next() -> None:
    """At least once: the taken row is free again when its worker is buried."""
    world = Ending([SUCCEEDED])
    awaited(world, spec_of(then={"any": note}))
    with world.store._database.write() as connection:
        connection.exec_driver_sql("UPDATE tarry_outbox SET state = 'pending', owner = 1, nonce = 'n', tries = 1")
        connection.exec_driver_sql("UPDATE tarry_worker SET released = 0, lease_until = 0")
    awaited(world, spec_of(then={"any": note}))
    awaited_other(world)
    assert len(CALLS) == 2


def awaited_other(world: World) -> None:
    """A poller that awaits another job for two seconds."""

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(TimeoutError):
                await poller.await_job("other", polled(until=Match("body.x", succeeded=1)), wait_timeout=2)

    world.run(main)


def test_a_success_with_a_fetch_is_told_with_its_result() -> None:
    """The result is fetched first; while it cannot be had, the call waits."""
    world = Ending([SUCCEEDED], fetch=[*[404] * 5, {"result": 1}])

    async def main() -> None:
        async with world.poller() as poller:
            await poller.await_job("orders", spec_of(fetch=CANCEL, then={"any": note}), raises=False)
            await world.after(600)

    world.run(main)
    assert [told.output for told in CALLS] == [1]


def test_without_the_result_there_is_no_call() -> None:
    """The delivery waits, and says that the result is not available."""
    world = Ending([SUCCEEDED], fetch=410)
    awaited(world, spec_of(fetch=CANCEL, then={"any": note}), wait=1)
    (letter,) = world.store.deliveries.due("default", world.clock.now() + HOUR, 0, 9)
    assert (CALLS, letter.error) == ([], "its result is not available: HTTP 410")


def test_a_slow_call_holds_up_no_other_and_no_end() -> None:
    """Deliveries run side by side; leaving the poller cuts one that does not end, and it is made again later."""
    world = Ending([SUCCEEDED])
    spec = spec_of(then={"any": Function(function="tests.unit.test_outbox:_hangs")})

    async def main() -> float:
        async with world.poller() as poller:
            await poller.await_job("slow", spec)
            await poller.await_job("orders", spec_of(then={"any": note_async}))
            await world.after(1)
            left = world.clock.now()
        return (world.clock.now() - left) / SECOND

    assert world.run(main) <= 5.1
    assert len(CALLS) == 1
    (waiting,) = world.store.deliveries.due("default", world.clock.now(), 0, 9)
    assert (waiting.key, waiting.tries) == ("slow", 1)


async def _hangs(_: Any) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("tries", "run", "error"), [(1, 2, "started anew"), (MAX_TRIES, 1, "its worker ended")], ids=["anew", "deadly"]
)
def test_what_cannot_be_told_any_more_is_a_dead_letter(tries: int, run: int, error: str) -> None:
    """Of a job that was started anew the old end is gone; a call that killed each of its workers is not made again."""
    world = Ending([SUCCEEDED])
    awaited(world, spec_of(then={"any": note}))
    with world.store._database.write() as connection:
        connection.exec_driver_sql(
            f"UPDATE tarry_outbox SET state = 'pending', wake = 0, tries = {tries}, error = 'its worker ended'"
        )
        connection.exec_driver_sql(f"UPDATE tarry_job SET run = {run}")
    awaited_other(world)
    (letter,) = world.store.deliveries.undelivered("default", 0, 9)
    assert error in (letter.error or "")
    assert len(CALLS) == 1


# cancel_on


def test_a_local_end_cancels_the_remote_job() -> None:
    """Once, after the outcome is committed, with what the submit answered."""
    world = Ending([RUNNING])
    job = awaited(world, spec_of(limits=SHORT, cancel=CANCEL, cancel_on=["timed_out"]), wait=5)
    assert (job.outcome, world.job.cancels) == ("timed_out", 1)
    assert world.job.requests[-1].url == "https://api.example.com/jobs/j1/cancel"
    assert events(world) == [("delivered", "cancel")]


def test_a_process_that_ends_sends_what_it_owes_first() -> None:
    """A script that waits, gives up and leaves does not leave the remote job running."""
    world = Ending([RUNNING])

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(JobTimedOut):
                await poller.await_job("orders", spec_of(limits=SHORT, cancel=CANCEL, cancel_on=["timed_out"]))

    world.run(main)
    assert world.job.cancels == 1


def test_other_ends_cancel_nothing() -> None:
    """Nor does an end that the service told of, nor one before anything was submitted."""
    other = spec_of(limits=SHORT, cancel=CANCEL, cancel_on=["exhausted", "cancelled"])
    told = Ending([{"state": "STOPPED"}])
    by_service = other.model_copy(update={"until": Match("body.state", succeeded="OK", cancelled="STOPPED")})
    assert awaited(told, by_service).outcome == "cancelled"
    assert awaited(Ending([RUNNING]), other).outcome == "timed_out"
    unsent, _ = start(other, "orders", 0)
    assert owed(other, replace(unsent, outcome=Outcome.EXHAUSTED)) == ()
    assert owed(other, replace(unsent, outcome=Outcome.EXHAUSTED, submit_tries=1)) == (DeliveryKind.CANCEL,)
    assert owed(other, replace(unsent, outcome=Outcome.CANCELLED, submit_tries=1)) == (DeliveryKind.CANCEL,)
    ended = replace(unsent, outcome=Outcome.CANCELLED, submit_tries=1, verdict=Verdict.CANCELLED)
    assert owed(other, ended) == ()


@pytest.mark.parametrize("answer", [404, 409, 410])
def test_a_cancel_that_finds_nothing_to_cancel_is_done(answer: int) -> None:
    """The job is over there too."""
    world = Ending([RUNNING], cancel=answer)
    awaited(world, spec_of(limits=SHORT, cancel=CANCEL, cancel_on=["timed_out"]))
    assert events(world) == [("delivered", "cancel")]


@pytest.mark.parametrize("answer", [500, ErrorKind.TIMEOUT], ids=str)
def test_a_cancel_that_may_have_arrived_is_not_sent_again(answer: Any) -> None:
    """At most once: what came of it is told, and the job stays as it ended."""
    world = Ending([RUNNING], cancel=answer)
    awaited(world, spec_of(limits=SHORT, cancel=CANCEL, cancel_on=["timed_out"]), wait=3600)
    assert (world.job.cancels, events(world)) == (1, [("undelivered", "cancel")])


def test_a_cancel_that_never_left_is_sent_when_it_can_be() -> None:
    """No byte left, so it is still sent once."""
    world = Ending([RUNNING], cancel=[ErrorKind.CONNECT, ErrorKind.CONNECT, 202])
    awaited(world, spec_of(limits=SHORT, cancel=CANCEL, cancel_on=["timed_out"]), wait=30)
    assert events(world) == [("delivered", "cancel")]
    first, second, third = world.cancelled_at()
    assert (round(second - first), round(third - second)) == (5, 15)


def test_a_callable_can_cancel() -> None:
    """It gets `args`."""
    spec = polled(limits=SHORT, cancel=stop, cancel_on=["timed_out"], args={"name": "{key}"}, poll=_runs)
    world = World([RUNNING])
    awaited(world, spec)
    assert (CALLS, events(world)) == (["orders"], [("delivered", "cancel")])


def _runs(name: str) -> dict[str, str]:
    return {"state": "RUNNING", "name": name}


# What can never work


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"then": {"done": note}}, "'done' is no outcome; use one of any, cancelled"),
        ({"then": {"any": lambda _: 1}}, "then.any: .*lambda.* cannot be imported by name"),
        ({"cancel": lambda: 1}, "cancel: .* cannot be imported by name"),
        ({"cancel": CANCEL, "cancel_on": ["failed"]}, "failed is not decided here"),
        ({"cancel_on": ["timed_out"]}, "there is no cancel to send"),
    ],
    ids=["no outcome", "an inline then", "an inline cancel", "not local", "no cancel"],
)
def test_what_can_never_work_is_refused(changes: dict[str, Any], problem: str) -> None:
    """With the way out."""
    with pytest.raises(SpecError, match=problem):
        spec_of(**changes)


def test_a_spec_with_reactions_travels() -> None:
    """It is data: by name, through JSON and back."""
    spec = spec_of(cancel=CANCEL, cancel_on=["timed_out"], then={"any": note})
    assert JobSpec.model_validate_json(spec.model_dump_json()) == spec
    assert [function.function for function in spec.functions] == ["tests.unit.reactions:note"]
    assert [function.function for function in spec_of(cancel=stop).functions] == ["tests.unit.reactions:stop"]


def test_pauses_grow_to_an_hour() -> None:
    """5 s, 15 s, 45 s and so on."""
    assert [pause_after(tries) / SECOND for tries in (1, 2, 3)] == [5, 15, 45]
    assert pause_after(MAX_TRIES) == HOUR


def test_what_an_answer_to_a_cancel_means() -> None:
    """A callable's return is done; one refused here was not sent, and may be from where its secret is known."""
    seen = Observation(CallKind.CANCEL, 0, 0)
    spec = spec_of(cancel=stop)
    assert read_cancel(spec, seen) == (DeliveryState.DONE, "called")
    assert read_cancel(spec, replace(seen, status=202))[0] is DeliveryState.DEAD
    refused = replace(seen, error=CallError(ErrorKind.REFUSED, "no", sent=False))
    assert read_cancel(spec, refused) == (DeliveryState.PENDING, "refused: no")
