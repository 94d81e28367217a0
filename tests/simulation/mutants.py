"""Doubles with one rule switched off, each: the simulation has to notice.

A double stands between a poller and its store, or between a poller and its
offload. The library has no switch for any of this.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar, cast

from tarry.errors import StoreUnavailable
from tarry.ports import Checkpoint, Command, Grip, JobRow, Offload, Store
from tarry.words import Instant, Phase

T = TypeVar("T")
W = TypeVar("W", Grip, Checkpoint)

_RESTING = frozenset({Phase.SUBMITTING, Phase.WAITING, Phase.BLOCKED})


class Mutant:
    """Changes nothing; `breaks` names the rules that a real one breaks first. One for each world."""

    breaks: ClassVar[frozenset[str]] = frozenset()

    def store(self, store: Store, sql: sqlite3.Connection) -> Store:
        """What a poller is given for the store; `sql` is the database itself."""
        return store

    def offload(self, offload: Offload) -> Offload:
        """What a poller is given for its offload."""
        return offload


class _Through:
    """A store that hands everything on."""

    def __init__(self, store: Store, sql: sqlite3.Connection) -> None:
        self._store = store
        self._sql = sql

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class NoFence(Mutant):
    """Writes count whoever holds the job by now: fence and nonce are not looked at."""

    breaks = frozenset({"a stale write changes nothing"})

    class _Store(_Through):
        def checkpoint(self, writes: Sequence[Checkpoint]) -> list[bool]:
            return self._store.checkpoint([replace(write, grip=self._of_today(write.grip)) for write in writes])

        def reserve(self, grips: Sequence[Grip]) -> list[bool]:
            return self._store.reserve([self._of_today(grip) for grip in grips])

        def _of_today(self, grip: Grip) -> Grip:
            (row,) = self._store.rows([grip.job])
            held = (row.fence, row.nonce) == (grip.fence, grip.nonce)
            return grip if held or row.owner is None else row.grip

    def store(self, store: Store, sql: sqlite3.Connection) -> Store:
        return cast("Store", self._Store(store, sql))


class NoReservation(Mutant):
    """A permit is given and not written down."""

    breaks = frozenset({"requests ≤ polls + reserved"})

    class _Store(_Through):
        def checkpoint(self, writes: Sequence[Checkpoint]) -> list[bool]:
            return self._store.checkpoint([replace(write, reserved=0) for write in writes])

        def reserve(self, grips: Sequence[Grip]) -> list[bool]:
            permitted = self._store.reserve(grips)
            self._sql.executemany("UPDATE tarry_job SET reserved = 0 WHERE id = ?", [(grip.job,) for grip in grips])
            return permitted

    def store(self, store: Store, sql: sqlite3.Connection) -> Store:
        return cast("Store", self._Store(store, sql))


class NoWriteOff(Mutant):
    """A dead worker's permit is taken back as if it had not been used."""

    breaks = frozenset({"requests ≤ polls + reserved", "fence, step and polls only grow"})

    class _Store(_Through):
        def bury(self, worker: int, now: Instant) -> int:
            permitted = self._sql.execute("SELECT id, polls FROM tarry_job WHERE reserved = 1").fetchall()
            try:
                return self._store.bury(worker, now)
            finally:
                self._sql.executemany(
                    "UPDATE tarry_job SET polls = polls - 1 WHERE id = ? AND polls = ? + 1 AND reserved = 0", permitted
                )

    def store(self, store: Store, sql: sqlite3.Connection) -> Store:
        return cast("Store", self._Store(store, sql))


class NoFloorAfterDeath(Mutant):
    """A dead worker's job is due when it was, whenever its last poll may have been."""

    breaks = frozenset({"polls keep min_interval apart"})

    class _Store(_Through):
        def bury(self, worker: int, now: Instant) -> int:
            known = self._sql.execute("SELECT polled_at, due, due, id FROM tarry_job WHERE reserved = 1").fetchall()
            try:
                return self._store.bury(worker, now)
            finally:
                self._sql.executemany(
                    "UPDATE tarry_job SET polled_at = ?, due = ?, wake = ? WHERE id = ? AND owner IS NULL", known
                )

    def store(self, store: Store, sql: sqlite3.Connection) -> Store:
        return cast("Store", self._Store(store, sql))


class _Forgetful(_Through):
    """Answers that some checkpoints are written, and drops them; the steps they would have made are made up for."""

    def __init__(self, store: Store, sql: sqlite3.Connection, drops: Callable[[Checkpoint], bool]) -> None:
        super().__init__(store, sql)
        self._drops = drops
        self._dropped: Counter[tuple[int, str]] = Counter()
        self._known: set[Grip] = set()

    def checkpoint(self, writes: Sequence[Checkpoint]) -> list[bool]:
        return [self._checkpoint(write) for write in writes]

    def reserve(self, grips: Sequence[Grip]) -> list[bool]:
        return self._store.reserve([self._stepped_back(grip) for grip in grips])

    def release(self, grips: Sequence[Grip], now: Instant) -> list[bool]:
        return self._store.release([self._stepped_back(grip) for grip in grips], now)

    def _checkpoint(self, write: Checkpoint) -> bool:
        if not self._drops(write) or write.release:
            back = replace(write, grip=self._stepped_back(write.grip))
            return self._store.checkpoint([back])[0]
        if write.grip not in self._known:
            self._known.add(write.grip)
            self._dropped[write.grip.job, write.grip.nonce] += 1
        return True

    def _stepped_back(self, grip: Grip) -> Grip:
        return replace(grip, step=grip.step - self._dropped[grip.job, grip.nonce])


class NoCommitBeforeSleep(Mutant):
    """What a poll saw is kept in memory while the job waits for the next."""

    breaks = frozenset({"an answer is committed before the next poll"})

    def store(self, store: Store, sql: sqlite3.Connection) -> Store:
        return cast("Store", _Forgetful(store, sql, lambda write: write.phase in _RESTING and write.polls > 0))


class NoIntent(Mutant):
    """A submit leaves without a word of it in the database."""

    breaks = frozenset({"the intent is committed before a submit"})

    def store(self, store: Store, sql: sqlite3.Connection) -> Store:
        return cast("Store", _Forgetful(store, sql, lambda write: write.phase is Phase.SENDING))


class NoRebase(Mutant):
    """A command takes the job out of its holder's hands: what is on its way to it is refused, and lost."""

    breaks = frozenset({"an answer that ends a job is not asked for again"})

    class _Store(_Through):
        def command(self, command: Command) -> bool:
            written = self._store.command(command)
            if written:
                self._sql.execute("UPDATE tarry_job SET nonce = nonce || '+' WHERE id = ?", (command.job,))
            return written

    def store(self, store: Store, sql: sqlite3.Connection) -> Store:
        return cast("Store", self._Store(store, sql))


class NoPause(Mutant):
    """Who holds a job takes a pause for a command that changes nothing."""

    breaks = frozenset({"a pause that is known is heeded", "a pause is heard of"})

    class _Store(_Through):
        def rows(self, jobs: Sequence[int]) -> list[JobRow]:
            return [replace(row, paused=0) for row in self._store.rows(jobs)]

    def store(self, store: Store, sql: sqlite3.Connection) -> Store:
        return cast("Store", self._Store(store, sql))


class NoLooking(Mutant):
    """Who holds a job does not look for what others command."""

    breaks = frozenset({"a pause is heard of"})

    class _Store(_Through):
        def version(self) -> int:
            return 0

    def store(self, store: Store, sql: sqlite3.Connection) -> Store:
        return cast("Store", self._Store(store, sql))


class NoRelease(Mutant):
    """What is given back stays where it was."""

    breaks = frozenset({"a paused job is held by nobody"})

    class _Store(_Through):
        def release(self, grips: Sequence[Grip], now: Instant) -> list[bool]:
            return [True for _ in grips]

    def store(self, store: Store, sql: sqlite3.Connection) -> Store:
        return cast("Store", self._Store(store, sql))


class UnknownCommitIsDone(Mutant):
    """A commit whose answer is not known is taken for one that happened, instead of being repeated."""

    breaks = frozenset({"an answer is committed before the next poll", "requests ≤ polls + reserved"})

    class _Offload:
        def __init__(self, offload: Offload) -> None:
            self._offload = offload

        def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
            return self._hopeful(work)

        async def _hopeful(self, work: Callable[[], T]) -> T:
            try:
                return await self._offload(work)
            except StoreUnavailable:
                call = cast("Any", work)
                if call.func.__name__ not in {"checkpoint", "reserve"}:
                    raise
                return cast("T", [True for _ in call.args[0]])

    def offload(self, offload: Offload) -> Offload:
        return self._Offload(offload)


MUTANTS: dict[str, type[Mutant]] = {
    "no-fence": NoFence,
    "no-reservation": NoReservation,
    "no-write-off": NoWriteOff,
    "no-floor-after-death": NoFloorAfterDeath,
    "no-commit-before-sleep": NoCommitBeforeSleep,
    "no-intent": NoIntent,
    "no-rebase": NoRebase,
    "no-pause": NoPause,
    "no-looking": NoLooking,
    "no-release": NoRelease,
    "unknown-commit-is-done": UnknownCommitIsDone,
}
