"""What the holders of jobs write, many at once: permits, checkpoints, releases.

All rows go into one statement, and the number of rows it wrote says whether that was
right. Only where some were refused is the unit undone and run again, `exact`: then it looks
first which rows may be written. So the common way reads nothing back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, Update, select

from tarry.frozen import getter
from tarry.ports import Checkpoint, Grip
from tarry.store import statements
from tarry.store.batch import Batch, Make, Row, Values
from tarry.store.deliveries import owe, owing
from tarry.store.faults import Unstorable, translated
from tarry.store.journal import add_spec, append_all
from tarry.store.rows import clean, cleaned, spec_hash
from tarry.store.statements import Statements
from tarry.store.tables import Tables
from tarry.words import Instant

T = TypeVar("T")

log = logging.getLogger("tarry.store")

_GRIP = ("id", "fence", "nonce", "step", "cmd")
_ENDS = ("reserved", "left")
_PROOF = len(_GRIP) + len(_ENDS) + 1
"""How much of a row says whether it may be, or was, written: a checkpoint's polls are the last of it."""
_USUAL = (
    *(*_GRIP, *_ENDS, "polls"),
    *("state", "phase", "polled_at", "due", "deadline", "max_polls", "floor", "last", "timeline", "told", "events"),
)
_RARE_TEXTS = ("submit", "baseline", "poll", "status_url", "validators", "output", "carried")
_NO_TEXTS = (None,) * len(_RARE_TEXTS)
_rare_texts = getter(Checkpoint, *_RARE_TEXTS)


class Missed(Exception):
    """Some rows of a batch were written and some refused; which ones, the number of rows does not say."""


class Swap:
    """One compare-and-swap over many rows with these names, no job twice.

    Each row says how the write leaves the job, for whoever repeats it: `reserved` (1 with a permit)
    and `left` (1 where the holder gave it up).
    """

    def __init__(
        self,
        job: Table,
        names: Sequence[str],
        may: Callable[[Table, Values], ColumnElement[bool]],
        write: Callable[[Table, Values], Update],
        *,
        usual: tuple[int, Make] | None = None,
    ) -> None:
        proof = names[:_PROOF]
        self._write = Batch(job, names, lambda new: write(job, new), usual=usual)
        self._may = Batch(job, proof, lambda new: select(job.c.id).where(may(job, new)).with_for_update(of=job))
        self._applied = Batch(job, proof, lambda new: select(job.c.id).where(statements.applied(job, new)))

    def write(self, connection: Connection, rows: Sequence[Row], *, exact: bool) -> set[Any]:
        """The ids of what is written now; `Missed` when that is not known."""
        if exact:
            free = self._may.numbers(connection, [row[:_PROOF] for row in rows])
            rows = [row for row in rows if row[0] in free]
        written = self._write.count(connection, rows)
        if written not in {0, len(rows)}:
            raise Missed
        return {row[0] for row in rows} if written else set()

    def answers(self, connection: Connection, rows: Sequence[Row], written: set[Any]) -> list[bool]:
        """Whether each row is written: now, or by an earlier try of this very write."""
        if len(written) == len(rows):
            return [True] * len(rows)
        before = self._applied.numbers(connection, [row[:_PROOF] for row in rows if row[0] not in written])
        return [row[0] in written or row[0] in before for row in rows]


@cache
def holding_on(tables: Tables, sql: Statements) -> Holding:
    """What writes under grips to these tables, made once."""
    return Holding(tables, sql)


class Holding:
    """Writes under grips, in the caller's transaction; which of them are written.

    Raises `Missed` unless `exact`, and `Unstorable` likewise: the transaction is then undone.
    """

    def __init__(self, tables: Tables, sql: Statements) -> None:
        job = tables.job
        self._sql = sql
        names = (*_USUAL, *_RARE_TEXTS, "spec", "outcome", "finished_at")
        usual = (len(_USUAL), lambda new: statements.go_on(job, new))
        self._checkpoint = Swap(job, names, statements.may_checkpoint, statements.checkpoint, usual=usual)
        self._reserve = Swap(job, (*_GRIP, *_ENDS), statements.may_reserve, statements.reserve)
        self._release = Swap(job, (*_GRIP, *_ENDS, "now"), statements.may_release, statements.release)
        self._isolate = Batch(job, _GRIP, lambda new: statements.isolate(job, new))
        self._owing = owing(tables.outbox, job)

    def reserve(self, connection: Connection, grips: Sequence[Grip], *, exact: bool) -> list[bool]:
        """Permit one poll each."""
        return _swapped(connection, self._reserve, [(*_grip(grip), 1, 0) for grip in grips], exact=exact)

    def release(self, connection: Connection, grips: Sequence[Grip], now: Instant, *, exact: bool) -> list[bool]:
        """Give up held jobs, their permits unused."""
        return _swapped(connection, self._release, [(*_grip(grip), 0, 1, now) for grip in grips], exact=exact)

    def isolate(self, connection: Connection, grip: Grip) -> bool:
        """Note that the worker makes no call now but this job's; nothing else of the row changes."""
        return self._isolate.count(connection, [_grip(grip)]) == 1

    def checkpoint(self, connection: Connection, writes: Sequence[Checkpoint], *, exact: bool) -> list[bool]:
        """Write a step of each, with what goes with it; `exact`, one that cannot be stored hurts only itself."""
        some = self._apart if exact else self._together
        return [done for part in _once(writes, lambda write: write.grip.job) for done in some(connection, part)]

    def _together(self, connection: Connection, writes: Sequence[Checkpoint], *, exact: bool = False) -> list[bool]:
        rows = [_row(write) for write in writes]
        written = self._checkpoint.write(connection, rows, exact=exact)
        self._add_with(connection, [write for write in writes if write.grip.job in written])
        return self._checkpoint.answers(connection, rows, written)

    def _apart(self, connection: Connection, writes: Sequence[Checkpoint]) -> list[bool]:
        """Halved as often as it takes to find those that cannot be stored."""
        try:
            with translated(), connection.begin_nested():
                return self._together(connection, writes, exact=True)
        except Unstorable as error:
            if len(writes) == 1:
                log.error("job id %d: a checkpoint was not written: %s", writes[0].grip.job, error)  # noqa: TRY400 - no trace: it is one value
                return [False]
        half = len(writes) // 2
        return [*self._apart(connection, writes[:half]), *self._apart(connection, writes[half:])]

    def _add_with(self, connection: Connection, writes: Sequence[Checkpoint]) -> None:
        """What goes with the writes, now that the rows have counted it."""
        for spec in {write.spec for write in writes if write.spec is not None}:
            add_spec(connection, self._sql, spec)
        told = [(write.grip.job, write.events) for write in writes if write.events]
        if told:
            append_all(connection, self._sql, told)
        owed = [(write.grip.job, kind, write.finished_at) for write in writes for kind in write.owed]
        if owed:
            owe(connection, self._owing, owed)


def _swapped(connection: Connection, swap: Swap, rows: Sequence[Row], *, exact: bool) -> list[bool]:
    answers: list[bool] = []
    for part in _once(rows, lambda row: row[0]):
        written = swap.write(connection, part, exact=exact)
        answers += swap.answers(connection, part, written)
    return answers


def _once(items: Sequence[T], job: Callable[[T], Any]) -> Iterator[Sequence[T]]:
    """The items in order, cut so that no part has a job twice."""
    start = 0
    seen: set[Any] = set()
    for place, number in enumerate(map(job, items)):
        if number in seen:
            yield items[start:place]
            start, seen = place, set()
        seen.add(number)
    if start < len(items):
        yield items[start:]


def _grip(grip: Grip) -> tuple[int, int, str, int, int]:
    return grip.job, grip.fence, grip.nonce, grip.step, grip.cmd


def _row(write: Checkpoint) -> Row:
    """The columns of a checkpoint, in the order of its names; only the usual ones where it has no others."""
    _check(write)
    grip, over, polls, most = write.grip, write.outcome, write.polls, write.max_polls
    usual = (
        grip.job,
        grip.fence,
        grip.nonce,
        grip.step,
        grip.cmd,
        write.reserved,
        1 if write.release and over is None else 0,
        polls,
        clean(write.state),
        str(write.phase),
        write.polled_at,
        write.due if over is None else None,
        write.deadline,
        # A limit lowered below what is spent becomes what is spent.
        polls if most is not None and most < polls else most,
        write.floor,
        cleaned(write.last),
        cleaned(write.timeline),
        write.told,
        len(write.events),
    )
    texts, spec = _rare_texts(write), write.spec
    if over is None and not write.release and spec is None and texts == _NO_TEXTS:
        return usual
    hashed = None if spec is None else spec_hash(spec)
    return (*usual, *map(cleaned, texts), hashed, over and over.value, write.finished_at)


def _check(write: Checkpoint) -> None:
    """Refuse a write that would break a promise: a permit past the limit or after the end, a job never due again."""
    over = write.outcome is not None
    spent = write.max_polls is not None and write.polls >= write.max_polls
    if write.reserved not in {0, 1} or (write.reserved and (over or write.release or spent)):
        raise Unstorable("a checkpoint permits a poll that must not be made")
    if write.due is None and not over:
        raise Unstorable("a checkpoint of a job that goes on names no due time")
