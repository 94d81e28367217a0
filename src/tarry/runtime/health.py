"""How a process that polls is doing: what is late here, and since when."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from tarry.core.durations import write
from tarry.runtime.drive import Parts
from tarry.runtime.engine import Engine
from tarry.runtime.pulse import LOOK_EVERY
from tarry.runtime.sweep import Sweep
from tarry.words import MINUTE, SECOND, Micros, moment, span

log = logging.getLogger("tarry.worker")

TELL_EVERY: Micros = MINUTE
"""How often a worker says that something is late, while it is."""

_LATE = timedelta(seconds=10)
_LAG = timedelta(seconds=1)
_SILENT = timedelta(microseconds=10 * LOOK_EVERY)


@dataclass(frozen=True, slots=True)
class Health:
    """How a poller is doing at one moment, as far as its process knows.

    - `worker`: the number under which it holds jobs; None before the first, and after it was declared dead.
    - `lease_age`: how long ago its lease was renewed, which happens each third of it. `round_age`: how long ago its last
      round ended, which happens twice a second. None before the first.
    - `held`: the jobs in its hands. `in_flight`: the calls under way.
    - `late`: by how much the oldest job that its last look found due was late; only while `run` runs.
    - `loop_lag`: by how much the last round came late because the event loop was busy.
    - `store_away_since`: since when the store does not answer; None while it does.
    - `refused`: how many writes were refused as another had the job by then.
    """

    at: datetime
    worker: int | None
    lease_age: timedelta | None
    round_age: timedelta | None
    held: int
    in_flight: int
    late: timedelta
    loop_lag: timedelta
    store_away_since: datetime | None
    refused: int

    @property
    def problems(self) -> tuple[str, ...]:
        """What is late, in words; nothing while all is well."""
        away, silent = self.store_away_since, self.round_age or timedelta()
        told = (
            (away is not None, f"the store has been away since {away:%H:%M:%SZ}" if away else ""),
            (self.late > _LATE, f"the oldest job that is due is {_written(self.late)} late"),
            (self.loop_lag > _LAG, f"the event loop was busy for {_written(self.loop_lag)}"),
            (silent > _SILENT, f"the last round was {_written(silent)} ago"),
        )
        return tuple(text for is_so, text in told if is_so)


class Monitor:
    """Looks at the parts of a poller."""

    def __init__(self, parts: Parts, engine: Engine, sweep: Sweep) -> None:
        self._parts = parts
        self._engine = engine
        self._sweep = sweep

    def look(self) -> Health:
        """How it is doing now."""
        now = self._parts.clock.now()
        worker, away_since, pulse = self._parts.worker, self._parts.units.away_since, self._engine.pulse
        return Health(
            at=moment(now),
            worker=worker.id,
            lease_age=None if worker.id is None else span(now - worker.renewed_at),
            round_age=None if pulse.at is None else span(now - pulse.at),
            held=self._engine.held,
            in_flight=self._engine.in_flight,
            late=span(self._sweep.late),
            loop_lag=span(pulse.lag),
            store_away_since=None if away_since is None else moment(away_since),
            refused=self._engine.refused,
        )

    async def tell(self) -> None:
        """Say once a minute what is late, until cancelled."""
        while True:
            await self._parts.clock.sleep(TELL_EVERY)
            problems = self.look().problems
            if problems:
                log.info("%s", "; ".join(problems))


def _written(time: timedelta) -> str:
    return write(timedelta(seconds=round(time / timedelta(microseconds=SECOND), 1)))
