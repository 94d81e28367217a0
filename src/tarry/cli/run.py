"""`tarry run`: a worker, until it is stopped."""

from __future__ import annotations

import asyncio
import gc
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tarry.cli.changes import commits, line
from tarry.cli.database import shown, url_of
from tarry.cli.exits import Exit, UsageError
from tarry.cli.flags import seconds_or_text
from tarry.cli.interrupts import interruptible
from tarry.cli.show import event_json
from tarry.cli.text import as_json, plain, time_of_day
from tarry.cli.world import World, complain, say
from tarry.core.politeness import Politeness
from tarry.errors import SpecError
from tarry.ports import Clock, StoredEvent
from tarry.runtime.health import TELL_EVERY, Health

if TYPE_CHECKING:
    from tarry.api import Poller


_SELDOM = 100_000
"""How many objects more are made than let go of before Python's collector looks."""


@dataclass(frozen=True, slots=True)
class Work:
    """What to poll and how: the database, modules with callables, the bounds of the calls to a host, what is kept."""

    db: str
    modules: tuple[str, ...] = ()
    concurrent: int = 16
    per_second: float | None = None
    keep_finished: str | None = None
    until_idle: bool = False


def run_command(world: World, work: Work, *, as_json_lines: bool, quiet: bool) -> int:
    """Poll what is due; one line an event, as it is committed."""
    url = url_of(work.db)
    for name in work.modules:
        _import(name)
    try:
        politeness = Politeness(concurrent=work.concurrent, per_second=work.per_second)
    except SpecError as error:
        raise UsageError(f"--{error.field.partition('.')[2].replace('_', '-')}: {error.problem}") from None
    keep = None if work.keep_finished is None else seconds_or_text(work.keep_finished)
    poller = partial(world.poller, url, politeness=politeness, keep_finished=keep)
    telling = _Telling(as_json_lines=as_json_lines, quiet=quiet)
    if not quiet:
        until = "until none is left" if work.until_idle else "until stopped"
        complain(f"tarry: polling what is due in {plain(shown(work.db))} {until}")
    with _seldom_collecting():
        return world.run(_run(world, poller, telling, until_idle=work.until_idle))


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Python's collector stops all polls while it looks for garbage, which they seldom make: it looks less often."""
    before = gc.get_threshold()
    if 0 < before[0] < _SELDOM:  # a module that was imported may have said so before, or switched it off
        gc.set_threshold(_SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception as error:  # an import runs foreign code, and whatever it raises is told on one line
        raise UsageError(f"--import {plain(name, 80)}: {plain(f'{type(error).__name__}: {error}', 200)}") from error


async def _run(world: World, polling: Callable[..., Poller], telling: _Telling, *, until_idle: bool) -> int:
    with interruptible():
        try:
            async with polling(on_event=telling.tell) as poller:
                running = asyncio.create_task(poller.run(until_idle=until_idle))
                broken = asyncio.create_task(telling.broken.wait())
                watching = asyncio.create_task(telling.watch(world.clock, poller))
                try:
                    await asyncio.wait({running, broken}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in (every := {running, broken, watching}):
                        task.cancel()
                    await asyncio.wait(every)
        except asyncio.CancelledError:
            return Exit.OK
        except SpecError as error:
            raise UsageError(f"--keep-finished: {error.problem}") from None
    if telling.error is not None:
        raise telling.error
    if not running.cancelled():
        running.result()
    return Exit.OK


class _Telling:
    """Prints events; output that is not taken ends the command, and not the loop that tells."""

    def __init__(self, *, as_json_lines: bool, quiet: bool) -> None:
        self.error: OSError | None = None
        self.broken = asyncio.Event()
        self._as_json = as_json_lines
        self._quiet = quiet

    def tell(self, event: StoredEvent) -> None:
        """One line."""
        if self._as_json:
            self._put(say, as_json({"key": event.key, **event_json(event)}))
        elif not self._quiet:
            self._put(say, _line(event))

    async def watch(self, clock: Clock, poller: Poller) -> None:
        """Once a minute how the worker is doing: as JSON always, for a person what is late."""
        while True:
            await clock.sleep(TELL_EVERY)
            health = await poller.health()
            if self._as_json:
                self._put(say, as_json({"health": _health_json(health)}))
            elif health.problems and not self._quiet:
                self._put(complain, f"tarry: {time_of_day(health.at)}  {'; '.join(health.problems)}")

    def _put(self, write: Callable[[str], None], text: str) -> None:
        try:
            write(text)
        except OSError as error:
            self.error = self.error or error
            self.broken.set()


def _health_json(health: Health) -> dict[str, Any]:
    spans = {"lease_age": health.lease_age, "round_age": health.round_age, "late": health.late, "lag": health.loop_lag}
    return {
        "at": health.at.isoformat(),
        "worker": health.worker,
        "held": health.held,
        "in_flight": health.in_flight,
        **{f"{name}_seconds": None if time is None else time.total_seconds() for name, time in spans.items()},
        "store_away_since": None if health.store_away_since is None else health.store_away_since.isoformat(),
        "refused": health.refused,
        "problems": list(health.problems),
    }


def _line(event: StoredEvent) -> str:
    (commit,) = commits([event])
    time, _, what = line(commit, None).partition(" ")
    return f"{time}  {plain(event.key, 60)}  {what.strip()}"
