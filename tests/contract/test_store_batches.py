"""The contract of a store, as to many writes at once: a batch is the same writes, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from tarry.ports import Checkpoint, JobRow
from tarry.store import MemoryStore, SqlStore
from tarry.store.batch import MOST
from tarry.store.statements import KEEP_EVENTS
from tarry.words import DeliveryKind, Outcome
from tests.contract.bench import BENCHES, START, TTL, Bench, ending, grip, new_job, told, write

T = TypeVar("T")

JOBS = 5
WRITES: dict[str, Callable[[JobRow, int], Checkpoint]] = {
    "step": lambda row, at: write(grip(row, at), at + 1, reserved=1, max_polls=None, timeline=f"[{at}]"),
    "told": lambda row, at: write(grip(row, at), at + 1, max_polls=9, events=[told("a", n=at), told("b", x="\ud800")]),
    "last": lambda row, at: write(grip(row, at), at + 1, last='"\x00é"', floor=at, spec=f'{{"poll":{at}}}'),
    "left": lambda row, at: write(grip(row, at), at + 1, release=True, events=[told("left")]),
    "over": lambda row, at: ending(grip(row, at), at + 1, output="1", events=[told("over")], owed=[*DeliveryKind]),
    "failed": lambda row, at: ending(grip(row, at), at + 1, Outcome.FAILED, release=True),
    "stale": lambda row, at: write(grip(row, at + 5), at + 1, events=[told("stale")]),
    "commanded": lambda row, at: write(replace(grip(row, at), cmd=7), at + 1),
    "robbed": lambda row, at: write(replace(grip(row, at), nonce="other"), at + 1),
    "fewer": lambda row, at: write(grip(row, at), -1),
    "past 64 bits": lambda row, at: write(grip(row, at), at + 1, due=2**63, events=[told("never")]),
    "no number": lambda row, at: write(grip(row, at), at + 1, events=[told("never", value=float("nan"))]),
    "never due": lambda row, at: write(grip(row, at), at + 1, due=None),
}
CHOICES = st.lists(st.tuples(st.integers(0, JOBS - 1), st.sampled_from(sorted(WRITES)), st.integers(0, 2)), max_size=12)
SEVERAL = st.lists(CHOICES, min_size=1, max_size=3)


def held_jobs(store: SqlStore, jobs: int = JOBS) -> list[JobRow]:
    """New jobs, all of one worker's; the last has nearly as many events as are kept."""
    worker = store.register("first", START, TTL)
    many = [told("old", n=n) for n in range(199)]
    added = [
        store.add(new_job(f"job-{n}", events=many if n == jobs - 1 else [told("created")]))[0] for n in range(jobs)
    ]
    return store.claim(worker, "n1", START, [row.id for row in added])


def everything(store: SqlStore) -> list[Any]:
    """Each row of each table, in order; MariaDB leaves gaps between the numbers of deliveries."""
    tables = store.tables.metadata.sorted_tables
    with store._database.read() as connection:
        return [
            connection.execute(
                select(*(column for column in each.c if column is not store.tables.outbox.c.id)).order_by(
                    *each.primary_key
                )
            ).all()
            for each in tables
        ]


@pytest.fixture(scope="module", params=["memory", "postgres", "mariadb"])
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SqlStore]]:
    """Two stores side by side in one database, made once because that is what takes the time."""
    database = BENCHES[request.param](tmp_path_factory.mktemp("stores")).store._database
    both = [SqlStore(database, prefix=prefix) for prefix in ("one_", "other_")]
    for store in both:
        store.open(START)
    yield both
    database.close()


def emptied(store: SqlStore) -> SqlStore:
    """The store with nothing in it; ids go on, in each store alike."""
    with store._database.write() as connection:
        for each in store.tables.metadata.sorted_tables:
            connection.execute(delete(each))
    return store


def written(write_some: Callable[[Sequence[T]], list[bool]], items: Sequence[T], *, together: bool) -> list[bool]:
    """Together, or one by one."""
    return write_some(items) if together else [answer for item in items for answer in write_some([item])]


@settings(max_examples=15)
@given(SEVERAL)
def test_a_batch_is_the_same_as_its_checkpoints_one_by_one(
    stores: list[SqlStore], batches: list[list[tuple[int, str, int]]]
) -> None:
    """Whatever it holds: what is refused, repeated, comes twice or cannot be stored, in any order."""
    seen = []
    for store, together in zip(map(emptied, stores), (True, False), strict=True):
        rows = held_jobs(store)
        answers = []
        for batch in batches:
            made = [WRITES[kind](rows[job], at) for job, kind, at in batch]
            answers += written(store.checkpoint, made, together=together)
        seen.append((answers, everything(store)))
    assert seen[0] == seen[1]


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, JOBS - 1), st.integers(0, 2)), max_size=12))
def test_permits_and_releases_are_the_same_as_one_by_one(
    stores: list[SqlStore], choices: list[tuple[int, int]]
) -> None:
    """Granted, refused or repeated, each as if it came alone."""
    seen = []
    for store, together in zip(map(emptied, stores), (True, False), strict=True):
        rows = held_jobs(store)
        grips = [grip(rows[job], at) for job, at in choices]
        permits = written(store.reserve, grips, together=together)
        back = written(partial(store.release, now=START), grips, together=together)
        seen.append((permits, back, everything(store)))
    assert seen[0] == seen[1]


def test_more_than_a_statement_takes_are_written_at_once(bench: Bench) -> None:
    """In one transaction, each with its event, and each answered in its place."""
    (row,) = held_jobs(bench.store, 1)
    jobs = bench.store.rows(bench.multiply(row, MOST))
    assert bench.store.reserve([grip(job) for job in jobs]) == [True] * len(jobs)
    stale = [n in {0, 100, MOST} for n in range(len(jobs))]
    made = [write(grip(job, 2 if old else 1), 1, events=[told("seen")]) for job, old in zip(jobs, stale, strict=True)]
    assert bench.store.checkpoint(made) == [not old for old in stale]
    assert bench.store.checkpoint(made) == [not old for old in stale]
    after = bench.store.rows([job.id for job in jobs])
    assert [job.event_seq for job in after] == [KEEP_EVENTS - 1 + (not old) for old in stale]
    assert bench.store.release([grip(job) for job in after], START) == [True] * len(jobs)
    assert bench.store.held("default") == 0


def test_what_fills_up_a_statement_is_no_job(bench: Bench) -> None:
    """It is prepared for few numbers of rows: those it has too many write nothing, and are not counted as written."""
    (row,) = held_jobs(bench.store, 1)
    jobs = bench.store.rows(bench.multiply(row, 18))
    made = [write(grip(job), 1, events=[told("seen")]) for job in jobs[:17]]
    assert bench.store.checkpoint(made) == [True] * 17
    assert [job.step - row.step for job in bench.store.rows([job.id for job in jobs])] == [1] * 17 + [0] * 2
    assert bench.store.reserve([grip(job, n < 17) for n, job in enumerate(jobs)]) == [True] * 19


def test_large_results_are_written_at_once(bench: Bench) -> None:
    """More text than a server takes in one statement is in several: one that is too long would be repeated for ever."""
    (row,) = held_jobs(bench.store, 1)
    jobs = bench.store.rows(bench.multiply(row, 9))
    output = f'"{"é" * 1_000_000}"'
    assert bench.store.checkpoint([ending(grip(job), output=output) for job in jobs]) == [True] * len(jobs)
    assert {job.output for job in bench.store.rows([job.id for job in jobs])} == {output}


@pytest.mark.parametrize("method", ["reserve", "checkpoint"])
def test_an_empty_batch_is_none(bench: Bench, method: str) -> None:
    """Nothing to write is nothing written."""
    assert getattr(bench.store, method)([]) == []
    assert bench.store.release([], START) == []


@pytest.mark.parametrize("statement", ["claim", "add_events", "trim", "reserve", "checkpoint", "release"])
def test_a_batch_visits_the_rows_that_it_names(statement: str) -> None:
    """However many jobs and events there are: by their keys, in each form of the statement."""
    store = MemoryStore()
    store.open(START)
    holding = store._holding
    swaps = {"reserve": holding._reserve, "checkpoint": holding._checkpoint, "release": holding._release}
    swap = swaps.get(statement)
    batches = [swap._write, swap._may, swap._applied] if swap else [getattr(store._sql, statement)]
    with store._database.write() as connection:
        for form in (form for batch in batches for form in batch.forms.values()):
            sql = form._text(connection.dialect, 2)
            plan = [
                str(row[-1]) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", (1,) * sql.count("?"))
            ]
            assert any("SEARCH" in line for line in plan)
            assert [line for line in plan if "SCAN tarry_" in line or line == "SCAN old"] == []
