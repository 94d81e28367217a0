"""Whole lives of jobs: any spec, any answers, any kills and restarts, through the front door on a database file."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tarry import Exponential, Fixed, Hints, Job, JobSpec, Limits, Linear, Outcome, Request
from tarry.core.observation import Observation
from tarry.core.policies import Errors
from tarry.store import SqlStore
from tarry.testing import Answer
from tarry.words import MILLISECOND, SECOND, CallKind, ErrorKind, instant, micros
from tests.worlds import STATE, Process, Scene

POST = "https://api.example.com/jobs"
FOUND = Request("GET", "https://api.example.com/jobs/{submit.body.jobId}")
KNOWN = Request("GET", "https://api.example.com/jobs/{key}")
ACCEPTED = Answer(202, {"jobId": "j1"})

DELAYS = st.sampled_from([0, 0, 0, 300 * MILLISECOND, 3 * SECOND, 40 * SECOND])
HINTS: Any = st.sampled_from([{}, {}, {}, {"retry-after": "3"}, {"retry-after": "9999999999"}, {"retry-after-ms": "1"}])
STATES = st.sampled_from(["RUNNING", "QUEUED", "odd", None])
UNDECIDED = st.one_of(
    st.builds(lambda state, headers, delay: Answer(200, {"state": state}, headers, delay), STATES, HINTS, DELAYS),
    st.builds(
        lambda code, headers: Answer(code, headers=headers), st.sampled_from([304, 401, 404, 429, 500, 503]), HINTS
    ),
    st.builds(lambda kind: Answer(error=kind), st.sampled_from([ErrorKind.CONNECT, ErrorKind.TIMEOUT, ErrorKind.POOL])),
    st.just(Answer(200, text="<html>")),
)
ENDINGS = st.builds(
    lambda state, delay: Answer(200, {"state": state}, {}, delay), st.sampled_from(["DONE", "FAILED"]), DELAYS
)
SUBMITS = st.sampled_from(
    [ErrorKind.CONNECT, ErrorKind.TIMEOUT, 429, 500, 503, 408, Answer(202, {"jobId": "j1"}, {}, SECOND)]
)


@st.composite
def specs(draw: st.DrawFn) -> JobSpec:
    """A spec whose job is over within a minute or so of its own time."""
    submit = draw(st.sampled_from([None, Request("POST", POST), Request("POST", POST, idempotent=True)]))
    intervals: Any = [
        Fixed("1s"),
        Fixed("7s", jitter="half"),
        Linear("2s", jitter="full"),
        Exponential("500ms", maximum="9s"),
    ]
    return JobSpec(
        submit=submit,
        poll=KNOWN if submit is None else FOUND,
        until=STATE,
        strategy=draw(st.sampled_from(intervals)),
        limits=Limits(
            min_interval=draw(st.sampled_from(["100ms", "1s", "4s"])),
            max_polls=draw(st.none() | st.integers(1, 8)),
            total_duration=draw(st.integers(1, 50)),
            poll_timeout=draw(st.sampled_from(["500ms", "5s", "30s"])),
            initial_delay=draw(st.sampled_from([0, 0, "3s"])),
        ),
        errors=Errors(max_consecutive=draw(st.integers(1, 4)), min_outage=draw(st.sampled_from([0, "5s"]))),
        hints=Hints(maximum="20s", on_excess=draw(st.sampled_from(["cap", "cap", "fail"]))),
        confirm=draw(st.sampled_from([1, 1, 1, 2])),
    )


@dataclass(frozen=True)
class Run:
    """One process: how long it runs, how it ends, and how long nothing runs afterwards."""

    seconds: float
    killed: bool
    down: float


# The odd microseconds keep ends of processes apart from whatever happens at whole milliseconds.
RUNS = st.builds(
    Run,
    seconds=st.integers(0, 12_000).map(lambda ms: ms / 1_000 + 0.000_137),
    killed=st.booleans(),
    down=st.sampled_from([0, 0, 2.0, 15.0, 70.0]),
)


@dataclass
class History(Scene):
    """What happened in all processes of one job."""

    received: list[tuple[int, Observation]] = field(default_factory=list)
    snapshots: list[Job] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def process(self) -> Process:
        store = SqlStore(f"sqlite:///{self.folder / 'jobs.db'}")
        self._opened.append(store)
        self.starts.append(self.clock.now())
        return Recorded(self, store)

    def live(self, spec: JobSpec, runs: list[Run]) -> Any:
        """All runs, then one that waits to the end; its result, and what a later wait is told."""

        async def main() -> Any:
            for run in runs:
                await self._one(spec, run)
                await self.after(run.down)
            last = self.process()
            ended = await (await last.awaiting("orders", spec, raises=False))
            again = await last.poller.await_job("orders", raises=False)
            self.snapshots.append(await last.poller.get("orders"))
            events = await last.poller.history("orders")
            await last.poller.__aexit__(None, None, None)
            return ended, again, events

        return self.run(main)

    async def _one(self, spec: JobSpec, run: Run) -> None:
        process = self.process()
        waiting = await process.awaiting("orders", spec, raises=False)
        await self.after(run.seconds)
        self.snapshots.append(await process.poller.get("orders"))
        if run.killed:
            await process.kill()
        else:
            await process.poller.__aexit__(None, None, None)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


class Recorded(Process):
    """A process that notes which answers it got to see."""

    async def send(self, request: Any) -> Observation:
        """As a `Transport`."""
        seen = await super().send(request)
        scene: Any = self._scene
        scene.received.append((scene.clock.now(), seen))
        return seen


@settings(max_examples=30)
@given(
    specs(),
    st.lists(SUBMITS, max_size=3),
    st.lists(st.one_of(UNDECIDED, UNDECIDED, UNDECIDED, ENDINGS), min_size=1, max_size=12),
    st.lists(RUNS, max_size=3),
)
def test_every_life_keeps_the_promises(spec: JobSpec, submits: list[Any], answers: list[Any], runs: list[Run]) -> None:
    """Counts, floors, deadlines, one outcome, no success lost, no second submit: whatever happens."""
    with TemporaryDirectory(dir=_quick()) as folder:
        world = History(answers, folder=Path(folder))
        world.play(answers, submit=[*submits, ACCEPTED])
        try:
            ended, again, events = world.live(spec, runs)
        finally:
            world.close()
    _one_end(ended, again, events)
    _counted(world, spec, runs)
    _apart(world, spec)
    _in_time(world, ended)
    _nothing_lost(world, spec, ended)
    _submitted_once(world, spec)


def _quick() -> str | None:
    """Memory that looks like a folder, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  # a folder of its own is made in it


def _one_end(ended: Any, again: Any, events: Any) -> None:
    """One outcome, written once, told once, the same for everybody."""
    assert ended == again
    assert [event.data["outcome"] for event in events if event.kind == "finished"] == [ended.outcome]
    assert [event.seq for event in events] == list(range(events[0].seq, events[0].seq + len(events)))


def _counted(world: History, spec: JobSpec, runs: list[Run]) -> None:
    """Requests that the service saw ≤ polls + reserved ≤ max_polls, and only a kill makes the count more than was seen."""
    last = world.snapshots[-1]
    assert world.job.polls <= last.polls
    for job in world.snapshots:
        assert job.max_polls is None or job.polls + job.reserved <= job.max_polls
    assert [job.polls for job in world.snapshots] == sorted(job.polls for job in world.snapshots)
    assert last.max_polls == spec.limits.max_polls
    if not any(run.killed for run in runs):
        assert world.job.polls == last.polls


def _apart(world: History, spec: JobSpec) -> None:
    """No two polls start closer than the floor."""
    starts = [seen.at for seen in world.job.requests if seen.kind is CallKind.POLL]
    assert all(later - sooner >= micros(spec.limits.min_interval) for sooner, later in pairwise(starts))


def _in_time(world: History, ended: Any) -> None:
    """No poll starts after the deadline, but for one closing poll of a process that came too late."""
    deadline = instant(world.snapshots[-1].deadline)
    late = [seen.at for seen in world.job.requests if seen.kind is CallKind.POLL and seen.at >= deadline]
    assert len(late) <= 1
    assert all(max(start for start in world.starts if start <= at) >= deadline for at in late)
    if world.starts[-1] < deadline:
        assert instant(ended.finished_at) <= deadline


def _nothing_lost(world: History, spec: JobSpec, ended: Any) -> None:
    """An answer that says DONE, and came in time, ends the job well; whatever was seen last can be shown."""
    polls = [seen for _, seen in world.received if seen.kind is CallKind.POLL]
    good = [seen for seen in polls if seen.status == 200 and seen.is_json and seen.body.get("state") == "DONE"]
    if spec.confirm == 1:
        assert (ended.outcome is Outcome.SUCCEEDED) == bool(good)
    if polls:
        assert ended.last is not None


def _submitted_once(world: History, spec: JobSpec) -> None:
    """One key for all; where the service does not honour it, nothing is sent after a submit that may have arrived."""
    sent = [seen for seen in world.job.requests if seen.kind is CallKind.SUBMIT]
    assert len({seen.headers["idempotency-key"] for seen in sent}) <= 1
    if spec.submit is not None and not spec.submit.idempotent:
        answered = [seen for _, seen in world.received if seen.kind is CallKind.SUBMIT]
        retried = [seen for seen in answered if seen.status == 429 or (seen.error is not None and not seen.error.sent)]
        assert len(sent) <= len(retried) + 1
