"""A job that ends every process that calls it: found out and set aside, and nothing else is harmed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tarry import Job, Limits, Outcome
from tarry.core.observation import Observation
from tarry.ports import CONVICTED, SUSPECT, JobRow, NewJob, Prepared
from tarry.store import SqlStore
from tarry.words import SECOND
from tests.pollers import QUEUED, World, polled
from tests.worlds import DONE, RUNNING, Process, Scene, limits, spec_of

KEYS = ("killer", "one", "two", "three")


@dataclass
class Notes:
    """What the processes did, over all of them."""

    called: list[str] = field(default_factory=list)
    beside: list[int] = field(default_factory=list)
    """How many other calls were under way at each end."""


class Fragile(Process):
    """A process in which each call takes a second, and that ends in a call of the killer."""

    def __init__(self, scene: Scene, notes: Notes) -> None:
        super().__init__(scene, SqlStore(f"sqlite:///{scene.folder / 'jobs.db'}"))
        self.ended = asyncio.Event()
        self._notes = notes
        self._under_way = 0

    async def send(self, request: Prepared) -> Observation:
        """As the service sees it, or the end."""
        key = request.url.rpartition("/")[2]
        self._notes.called.append(key)
        self._under_way += 1
        await self._scene.after(1)
        if key == "killer" and not self._dead:
            self._notes.beside.append(self._under_way - 1)
            self.ended.set()
            await self.kill()
        seen = await super().send(request)
        self._under_way -= 1
        return seen

    async def work(self) -> bool:
        """Poll what is due until nothing is left or the process ends; whether it ended."""
        await self.poller.__aenter__()
        running = asyncio.create_task(self.poller.run(until_idle=True))
        ending = asyncio.create_task(self.ended.wait())
        await asyncio.wait({running, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not self.ended.is_set():
            await self.poller.__aexit__(None, None, None)
            self.store.close()
        for task in (running, ending):
            task.cancel()
        await asyncio.gather(running, ending, return_exceptions=True)
        return self.ended.is_set()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A service on which everything is done after a minute, and a database file."""
    made = Scene([RUNNING], store=SqlStore(f"sqlite:///{tmp_path / 'jobs.db'}"), folder=tmp_path)
    made.play([lambda _: DONE if made.elapsed() > 60 else RUNNING])
    yield made
    made.close()


async def ended(scene: Scene, notes: Notes) -> int:
    """Processes, one after the other, until one has nothing left to do; how many ended before."""
    for deaths in range(10):
        if not await Fragile(scene, notes).work():
            return deaths
    raise AssertionError("it never came to rest")


async def stored(scene: Scene) -> dict[str, Job]:
    """The jobs as they are now."""
    async with scene.poller() as poller:
        return {job.key: job for job in await poller.jobs()}


def test_a_job_that_ends_its_process_costs_few_and_harms_none(scene: Scene) -> None:
    """It ends so many processes and no more, the last two with no other call under way; the others end well."""
    notes = Notes()

    async def main() -> tuple[int, dict[str, Job]]:
        async with scene.poller() as poller:
            for key in KEYS:
                await poller.add(key, spec_of(limits=limits(max_polls=200)))
        return await ended(scene, notes), await stored(scene)

    deaths, jobs = scene.run(main)
    assert deaths == CONVICTED == notes.called.count("killer")
    assert notes.beside[SUSPECT:] == [0] * (CONVICTED - SUSPECT)
    assert all(jobs[key].outcome is Outcome.SUCCEEDED for key in KEYS[1:])
    killer = jobs["killer"]
    assert (killer.outcome, killer.paused, killer.quarantined, killer.polls) == (None, True, True, CONVICTED)
    assert not any(job.quarantined for key, job in jobs.items() if key != "killer")


@pytest.mark.parametrize("way", ["resume", "reset"])
def test_a_person_frees_it(scene: Scene, way: str) -> None:
    """Resumed or reset, it has as many chances as at first; a nudge or an update frees nothing."""
    notes = Notes()

    async def main() -> tuple[bool, int, Job]:
        async with scene.poller() as poller:
            await poller.add("killer", spec_of(limits=limits(max_polls=200)))
        await ended(scene, notes)
        async with scene.poller() as poller:
            still = (await poller.nudge("killer")).quarantined
            still = still and (await poller.update("killer", limits=limits(max_polls=100))).quarantined
            await getattr(poller, way)("killer")
        return still, await ended(scene, notes), (await stored(scene))["killer"]

    still, deaths, killer = scene.run(main)
    assert still
    assert (deaths, killer.quarantined) == (CONVICTED, True)


def test_a_suspect_that_answers_is_none_any_more(scene: Scene) -> None:
    """After one call that its process lived through, it is called beside others again."""
    notes = Notes()

    async def main() -> int:
        async with scene.poller() as poller:
            for key in KEYS:
                await poller.add(key, spec_of(limits=limits(max_polls=200)))
        await ended(scene, notes)
        return max(row.strikes for row in scene.store.rows([1, 2, 3, 4]) if row.key != "killer")

    assert scene.run(main) == 0


def test_a_deadline_is_kept_past_a_suspect_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a call that is made alone waits no longer than its own deadline allows."""
    world = World([QUEUED])
    add_all = world.store.add_all

    def struck(jobs: Sequence[NewJob]) -> list[tuple[JobRow, bool]]:
        return [(replace(row, strikes=SUSPECT * (row.key == "suspect")), made) for row, made in add_all(jobs)]

    async def hangs() -> dict[str, str]:
        await world.after(29)
        return {"state": "RUNNING"}

    def is_done() -> dict[str, str]:
        return {"state": "SUCCEEDED"}

    async def main() -> tuple[Outcome, float]:
        async with world.poller() as poller:
            await poller.await_job("first", polled(poll=is_done, result=None))
            suspect = asyncio.create_task(poller.await_job("suspect", polled(poll=hangs, result=None)))
            await world.after(1)
            began = world.clock.now()
            other = polled(poll=is_done, result=None, limits=Limits(total_duration="10s"))
            ended = await poller.await_job("other", other, raises=False)
            suspect.cancel()
            return ended.outcome, (world.clock.now() - began) / SECOND

    monkeypatch.setattr(world.store, "add_all", struck)
    outcome, took = world.run(main)
    assert outcome is Outcome.SUCCEEDED
    assert 9 <= took < 10
