"""The contract of a store, as to what is due and what is over."""

from __future__ import annotations

import logging
from itertools import pairwise

import pytest

from tarry.ports import FIRST, Place
from tarry.store.retention import MOST_ROWS
from tarry.store.statements import KEEP_EVENTS
from tarry.words import SECOND
from tests.contract.bench import START, TTL, Bench, ending, grip, held, new_job, reread, told, write


def due(bench: Bench, until: int = START, after: Place = FIRST, limit: int = 10) -> tuple[list[str], Place | None]:
    """The keys of the jobs that are due, and where to go on."""
    rows, place = bench.store.due("default", until, after, limit)
    return [row.key for row in rows], place


def test_what_is_due_comes_in_the_order_in_which_it_came_due(bench: Bench) -> None:
    """Only what is due by then, page by page, each job once."""
    for number, key in enumerate(["c", "a", "b", "later"]):
        bench.store.add(new_job(key, due=START - 3 + number if key != "later" else START + 1))
    bench.store.add(new_job("b2", due=START - 1))
    keys, place = due(bench, limit=3)
    assert (keys, place is None) == (["c", "a", "b"], False)
    assert place is not None
    assert due(bench, after=place, limit=3) == (["b2"], None)
    assert due(bench, START + 1, limit=3)[0] == ["c", "a", "b"]
    assert due(bench, START + 1, place)[0] == ["b2", "later"]


def test_what_is_held_or_over_is_not_due(bench: Bench) -> None:
    """A job that was given back is, from its due time on."""
    taken = held(bench.store)
    bench.store.add(new_job("free"))
    assert due(bench)[0] == ["free"]
    assert bench.store.held("default") == 1
    assert bench.store.checkpoint([write(grip(taken), 1, release=True)]) == [True]
    assert due(bench)[0] == ["free"]
    assert due(bench, START + 10 * SECOND)[0] == ["free", "orders"]
    (again,) = bench.store.claim(taken.owner or 0, "n2", START, [taken.id])
    assert bench.store.checkpoint([ending(grip(again))]) == [True]
    assert due(bench, START + 10 * SECOND)[0] == ["free"]
    assert bench.store.held("default") == 0


def test_due_is_asked_of_one_namespace(bench: Bench) -> None:
    """Another one's jobs are not seen, and one that cannot exist has none."""
    bench.store.add(new_job(namespace="other"))
    assert due(bench) == ([], None)
    assert bench.store.held("other") == 0
    assert bench.store.due("\ud800", START, FIRST, 10) == ([], None)


def test_a_damaged_row_is_passed_by_and_said_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """A page of nothing else still leads on to the next one."""
    for key in ("a", "b", "c"):
        bench.store.add(new_job(key))
    bench.damage("phase = 'nowhere'", "a")
    bench.damage("phase = 'nowhere'", "b")
    with caplog.at_level(logging.ERROR):
        keys, place = due(bench, limit=2)
        assert (keys, place is None) == ([], False)
        assert place is not None
        assert due(bench, after=place, limit=2) == (["c"], None)
        due(bench)
    assert len(caplog.messages) == 2


WALKS = {
    "sqlite": (
        "USING INDEX tarry_job_wake (namespace=? AND wake>? AND wake<?)",
        "USING INDEX tarry_job_owner",
        "USING INDEX tarry_job_finished (namespace=? AND finished_at>? AND finished_at<?)",
        "USING INTEGER PRIMARY KEY",
    ),
    "postgresql": (
        "Index Scan using tarry_job_wake",
        "using tarry_job_owner",
        "Index Scan using tarry_job_finished",
        "using tarry_job_pkey",
    ),
    "mysql": ("'tarry_job_wake', '2", "'tarry_job_owner'", "'tarry_job_finished', '2", "'PRIMARY'"),
}

_KEYS = {
    "sqlite": "INTEGER PRIMARY KEY",
    "postgresql": "Index Scan using tarry_job_pkey",
    "mysql": "'tarry_job', 'eq_ref', 'PRIMARY",
}


def test_a_look_walks_along_its_index(bench: Bench) -> None:
    """However many jobs sleep or are over, none of them is visited, and nothing is sorted."""
    first, *_ = bench.multiply(bench.store.add(new_job())[0], 500)
    bench.execute("UPDATE tarry_job SET wake = id * 1000000, owner = NULL, finished_at = id * 1000000")
    bench.execute(f"UPDATE tarry_job SET wake = NULL, owner = 1 WHERE id < {first + 20}")
    named, until = {"p_namespace": "default"}, (first + 30) * SECOND
    due = {"p_until": until, "p_after_wake": 0, "p_after_id": 0, "p_limit": 9}
    over = {"p_before": until, "p_after_at": 0, "p_after_id": 0, "p_limit": 9}
    plans = (
        bench.plan(bench.store._backlog.due, named | due),
        bench.plan(bench.store._backlog.held, named),
        bench.plan(bench.store._retention.page, named | over),
        bench.plan(bench.store._sql.lock_takeable, {"p_ids": [first + 40], "p_owner": 1, "p_nonce": "n"}),
    )
    for plan, walk in zip(plans, WALKS[bench.store._database.dialect], strict=True):
        assert walk in plan
        assert "TEMP B-TREE" not in plan
        assert "filesort" not in plan
        assert "Seq Scan on tarry_job" not in plan


def test_a_claim_visits_the_jobs_that_it_names(bench: Bench) -> None:
    """By their keys, among many. PostgreSQL counts on a hundred given rows, and so reads a table of a few thousand whole."""
    first, *_ = bench.multiply(bench.store.add(new_job())[0], 10_000)
    plan = bench.batch_plan(bench.store._sql.claim, [(first, 1, "n", 0), (first + 1, 1, "n", 0)])
    assert _KEYS[bench.store._database.dialect] in plan
    assert "SCAN tarry_job" not in plan
    assert "Seq Scan on tarry_job" not in plan


def test_a_round_visits_no_job_that_nobody_holds(bench: Bench) -> None:
    """Nor the jobs that owe nothing: what each worker asks twice a second costs as much as there is to do."""
    bench.multiply(bench.store.add(new_job())[0], 500)
    bench.execute("UPDATE tarry_job SET wake = NULL, owner = id WHERE id < 20")
    workers, deliveries = bench.store._workers, bench.store.deliveries
    for asked, params in ((workers._orphans, {}), (workers._holdings, {"p_owner": 7})):
        assert "tarry_job_owner" in bench.plan(asked, params | {"p_after": 0})
    named = {"p_namespace": "default"}
    for asked, params in ((deliveries._due, {"p_now": 1, "p_after": 0, "p_limit": 9}), (deliveries._next, {})):
        plan = bench.plan(asked, named | params)
        assert "tarry_outbox" in plan
        assert "tarry_job_key" not in plan
        assert "tarry_job_listing" not in plan


def test_what_has_been_over_for_long_is_forgotten(bench: Bench) -> None:
    """With its events and its spec, some jobs at a time, and nothing that goes on or ended later."""
    for number in range(3):
        over = held(
            bench.store, f"over-{number}", spec=f'{{"poll":{number}}}', nonce=f"n{number}", events=[told("created")]
        )
        assert bench.store.checkpoint([ending(grip(over))]) == [True]
    live, _ = bench.store.add(new_job("live", spec='{"poll":0}'))
    assert bench.store.prune("default", START + SECOND, FIRST, 10) == (0, None)
    assert bench.store.prune("other", START + SECOND + 1, FIRST, 10) == (0, None)
    assert bench.store.prune("\ud800", START + SECOND + 1, FIRST, 10) == (0, None)
    pruned, further = bench.store.prune("default", START + SECOND + 1, FIRST, 2)
    assert (pruned, further is None) == (2, False)
    assert bench.store.prune("default", START + SECOND + 1, further or FIRST, 2) == (1, None)
    assert bench.store.prune("default", START + SECOND + 1, FIRST, 2) == (0, None)
    assert reread(bench.store, live) == live
    assert [bench.count(f"tarry_{table}") for table in ("job", "event", "spec")] == [1, 0, 1]


def test_a_key_that_was_forgotten_is_free_again(bench: Bench) -> None:
    """A job of the same name is a new one, with an id of its own."""
    over = held(bench.store)
    bench.store.checkpoint([ending(grip(over))])
    bench.store.prune("default", START + TTL, FIRST, 10)
    row, created = bench.store.add(new_job(token="another"))
    assert created
    assert row.id > over.id


def test_no_more_rows_are_forgotten_at_once_than_others_can_wait_for(bench: Bench) -> None:
    """However many events its jobs have, a transaction deletes so many rows and no more; all are forgotten in the end."""
    events = [told("status", n=n) for n in range(KEEP_EVENTS)]
    for number in range(12):
        over = held(bench.store, f"over-{number}", nonce=f"n{number}", events=events)
        bench.store.checkpoint([ending(grip(over))])

    def rows() -> int:
        return sum(bench.count(f"tarry_{table}") for table in ("job", "event", "outbox", "spec"))

    counts, place = [rows()], FIRST
    while counts[-1]:
        _, further = bench.store.prune("default", START + TTL, place, 500)
        counts.append(rows())
        assert further is not None or not counts[-1]
        place = further or FIRST
    forgotten = [before - after for before, after in pairwise(counts)]
    assert MOST_ROWS // 2 < max(forgotten) <= MOST_ROWS
