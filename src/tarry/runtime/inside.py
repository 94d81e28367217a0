"""What an entered poller is made of."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Self

from tarry.core.results import Ticked
from tarry.runtime.attaching import Attaching
from tarry.runtime.begin import begin
from tarry.runtime.bulletin import Bulletin
from tarry.runtime.commands import Commands
from tarry.runtime.drive import Parts
from tarry.runtime.engine import Engine
from tarry.runtime.health import Monitor
from tarry.runtime.jobs import Jobs
from tarry.runtime.moving import Moving
from tarry.runtime.resets import Resets
from tarry.runtime.retention import Retention
from tarry.runtime.sweep import Sweep
from tarry.runtime.views import ticked
from tarry.runtime.waiting import Waiting
from tarry.words import Micros


@dataclass(frozen=True, slots=True)
class Inside:
    """The parts of the runtime that the front door opens on."""

    engine: Engine
    jobs: Jobs
    commands: Commands
    resets: Resets
    attaching: Attaching
    waiting: Waiting
    moving: Moving
    sweep: Sweep
    monitor: Monitor

    async def tick(self, key: str) -> Ticked:
        """One step of one job."""
        is_mine = await self.sweep.one(await self.jobs.found(key))
        return ticked(await self.jobs.found(key), is_mine=is_mine)

    async def work(self, *, until_idle: bool) -> None:
        """Be a worker, and say what is late."""
        telling = begin(self.monitor.tell(), name="tarry monitor")
        try:
            await self.sweep.run(until_idle=until_idle)
        finally:
            telling.cancel()
            await asyncio.wait({telling})

    @classmethod
    def of(cls, parts: Parts, bulletin: Bulletin, namespace: str, keep: Micros | None) -> Self:
        """All of them, for the jobs of a namespace; `keep` is how long finished ones are kept."""
        engine, jobs = Engine(parts), Jobs(parts, bulletin, namespace)
        commands, resets = Commands(parts, jobs, engine.rouse), Resets(parts, jobs, engine.rouse)
        attaching = Attaching(jobs, commands, resets)
        sweep = Sweep(parts, engine, namespace, Retention(jobs, parts.clock, keep))
        return cls(
            engine=engine,
            jobs=jobs,
            commands=commands,
            resets=resets,
            attaching=attaching,
            waiting=Waiting(engine, jobs, attaching, parts.clock),
            moving=Moving(parts, jobs, commands),
            sweep=sweep,
            monitor=Monitor(parts, engine, sweep),
        )
