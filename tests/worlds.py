"""Worlds to tell a story in: a scripted job, a store of each kind, and processes that can be killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tarry import JobError, JobResult, JobSpec, Limits, Match, Poller
from tarry.core.observation import Observation
from tarry.ports import Prepared
from tarry.store import MemoryStore, SqlStore
from tarry.testing import ScriptedJob
from tarry.words import SECOND
from tests.pollers import World, polled

STATE = Match("body.state", succeeded="DONE", failed="FAILED", pending=["QUEUED", "RUNNING"], cancelled="CANCELLED")
RUNNING = {"state": "RUNNING"}
DONE = {"state": "DONE"}


def spec_of(**changes: Any) -> JobSpec:
    """A job that exists already, polled every 2 s without jitter, with `body.state` as its status."""
    return polled(**{"until": STATE, "result": None, "reason": None, **changes})


def limits(total_duration: Any = "24h", **changes: Any) -> Limits:
    """Limits, named by what a story is about first."""
    return Limits(total_duration=total_duration, **changes)


@dataclass
class Scene(World):
    """A world on one store, with short words for what most stories do."""

    folder: Path = Path()
    _opened: list[SqlStore] = field(default_factory=list)

    def play(self, answers: list[Any], **scripts: Any) -> None:
        """Another script, for polls and other calls."""
        self.job = ScriptedJob(answers, clock=self.clock, **scripts)

    def ends(self, spec: JobSpec | None, key: str = "orders", **options: Any) -> JobResult[Any]:
        """Await the job in a poller of its own, whatever its outcome."""

        async def main() -> JobResult[Any]:
            async with self.poller() as poller:
                return await poller.await_job(key, spec, raises=False, **options)

        return self.run(main)

    def fails(self, spec: JobSpec | None, key: str = "orders", **options: Any) -> JobError:
        """Await the job in a poller of its own; the error that it ended with."""

        async def main() -> JobError:
            async with self.poller() as poller:
                with pytest.raises(JobError) as caught:
                    await poller.await_job(key, spec, **options)
                return caught.value

        return self.run(main)

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return (self.clock.now() - self.began) / SECOND

    async def at(self, second: float) -> None:
        """Wait until this second of the story."""
        await self.after(second - self.elapsed())

    def event(self, kind: str) -> list[dict[str, Any]]:
        """The data of the events of this kind that were told."""
        return [dict(event.data) for event in self.told if event.kind == kind]

    def process(self, **options: Any) -> Process:
        """A process on the file, with these options of a poller; it can be killed."""
        store = SqlStore(f"sqlite:///{self.folder / 'jobs.db'}")
        self._opened.append(store)
        return Process(self, store, **options)

    def close(self) -> None:
        """Close every store that was opened here."""
        for store in [self.store, *self._opened]:
            store.close()


class Process:
    """One run of a program that awaits jobs, on a database file.

    A killed one ends between two lines: no call of it reaches the store or the service any more, nothing is given back.
    """

    def __init__(self, scene: Scene, store: SqlStore, **options: Any) -> None:
        self._scene = scene
        self.store = store
        self._dead = False
        self.poller: Poller = scene.poller(store=store, transport=self, offload=self, **options)

    async def __call__(self, work: Callable[[], Any], /) -> Any:
        """As an `Offload`: the store's calls, right here."""
        self._live()
        return work()

    async def send(self, request: Prepared) -> Observation:
        """As a `Transport`: the service sees the request, also of one that dies before the answer is there."""
        self._live()
        seen = await self._scene.job.send(request)
        self._live()
        return seen

    async def aclose(self) -> None:
        """Nothing is held."""

    async def awaiting(self, *args: Any, **options: Any) -> asyncio.Task[Any]:
        """Start, and begin to await a job."""
        await self.poller.__aenter__()
        return asyncio.create_task(self.poller.await_job(*args, **options), name="awaiting")

    async def killed_at(self, second: float, *args: Any, **options: Any) -> None:
        """Await a job until that second of the story, and be killed."""
        waiting = await self.awaiting(*args, **options)
        await self._scene.at(second)
        await self.kill()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    async def kill(self) -> None:
        """The end, as by SIGKILL: the system closes the files."""
        self._dead = True
        self.store.close()

    def _live(self) -> None:
        if self._dead:
            raise asyncio.CancelledError


MakeScene = Callable[..., Scene]


def _scenes(folder: Path, *, is_file: bool) -> Iterator[MakeScene]:
    made: list[Scene] = []

    def make(*answers: Any, **options: Any) -> Scene:
        home = folder / str(len(made))
        home.mkdir()
        store = SqlStore(f"sqlite:///{home / 'jobs.db'}") if is_file else MemoryStore()
        made.append(Scene(list(answers) or [DONE], store=store, folder=home, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(params=["memory", "sqlite"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeScene]:
    """Makes worlds, on each kind of store in turn."""
    yield from _scenes(tmp_path, is_file=request.param == "sqlite")


@pytest.fixture(name="scene")
def scene_in_memory(tmp_path: Path) -> Iterator[MakeScene]:
    """The same in memory alone: for a module of stories in which the store has no part."""
    yield from _scenes(tmp_path, is_file=False)


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[MakeScene]:
    """Makes worlds on a database file: what a killed process leaves behind."""
    yield from _scenes(tmp_path, is_file=True)
