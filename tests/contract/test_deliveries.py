"""The contract of a store, as to its outbox."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tarry.core.deliveries import MAX_TRIES
from tarry.deliveries import Delivery
from tarry.ports import Checkpoint, Event
from tarry.store import SqlStore
from tarry.words import MINUTE, SECOND, DeliveryKind, DeliveryState
from tests.contract.bench import START, TTL, Bench, ending, grip, held, new_job, reread, write

CANCEL, THEN = DeliveryKind.CANCEL, DeliveryKind.THEN
PENDING, DONE, DEAD = DeliveryState
LATER = START + MINUTE


def over(store: SqlStore, *owed: DeliveryKind, key: str = "orders", **changes: Any) -> Checkpoint:
    """End a new job that leaves these deliveries behind; what was written."""
    row = held(store, key, uuid=f"holder-of-{key}", **changes)
    write = ending(grip(row), owed=owed)
    assert store.checkpoint([write]) == [True]
    return write


def due(store: SqlStore) -> list[DeliveryKind]:
    """The kinds of those that wait for a worker a minute on."""
    return [one.kind for one in store.deliveries.due("default", LATER, 0, 9)]


def taken(store: SqlStore, uuid: str = "taker", nonce: str = "t1") -> tuple[int, list[Delivery]]:
    """A new worker, and all deliveries that it could take."""
    worker = store.register(uuid, LATER, TTL)
    ids = [one.id for one in store.deliveries.due("default", LATER, 0, 9)]
    return worker, store.deliveries.take(worker, nonce, LATER, ids)


def test_what_is_owed_is_written_with_the_end(bench: Bench) -> None:
    """In the same transaction, due at once; a write that is refused owes nothing."""
    row = held(bench.store)
    lost = replace(ending(grip(row), owed=[THEN]), grip=replace(grip(row), nonce="stale"))
    assert bench.store.checkpoint([lost]) == [False]
    assert bench.store.deliveries.next_at("default") is None
    bench.store.checkpoint([ending(grip(row), owed=[CANCEL, THEN])])
    first, second = bench.store.deliveries.due("default", START + SECOND, 0, 9)
    assert (first.kind, first.key, first.run, first.state, first.tries) == (CANCEL, "orders", 1, PENDING, 0)
    assert (second.kind, second.job, second.error, second.nonce) == (THEN, row.id, None, None)
    assert bench.store.deliveries.due("default", START + SECOND, first.id, 9) == [second]
    assert bench.store.deliveries.due("default", START + SECOND - 1, 0, 9) == []
    assert bench.store.deliveries.next_at("default") == START + SECOND


def test_a_checkpoint_written_twice_owes_once(bench: Bench) -> None:
    """The answer to a COMMIT may be lost, and the write be made again."""
    write = over(bench.store, THEN)
    assert bench.another().checkpoint([write]) == [True]
    assert due(bench.store) == [THEN]


def test_a_cancel_owes_too(bench: Bench) -> None:
    """What it owes goes with it, once."""
    row, _ = bench.store.add(new_job())
    for _ in range(2):
        assert bench.store.cancel(row.id, row.step, "{}", START, [], [CANCEL])
    assert due(bench.store) == [CANCEL]


def test_another_namespace_is_not_disturbed(bench: Bench) -> None:
    """A worker sees the deliveries of its own."""
    over(bench.store, THEN, namespace="other")
    assert due(bench.store) == []
    assert bench.store.deliveries.next_at("default") is None
    assert len(bench.store.deliveries.due("other", LATER, 0, 9)) == 1
    assert bench.store.deliveries.due("\ud800", LATER, 0, 9) == []


def test_one_worker_takes_a_delivery(bench: Bench) -> None:
    """With a try counted; asking again under the same nonce gives the same, another gets nothing."""
    over(bench.store, THEN)
    worker, (mine,) = taken(bench.store)
    assert (mine.tries, mine.nonce) == (1, "t1")
    assert due(bench.store) == []
    assert bench.store.deliveries.take(worker, "t1", LATER, [mine.id]) == [mine]
    other = bench.another()
    second = other.register("other", LATER, TTL)
    assert other.deliveries.take(second, "t2", LATER, [mine.id]) == []
    assert not other.deliveries.settle(replace(mine, nonce="t2"), second, LATER, DONE, "", None)


def test_a_worker_that_is_gone_takes_nothing(bench: Bench) -> None:
    """Neither does one that never was."""
    over(bench.store, THEN)
    (one,) = bench.store.deliveries.due("default", LATER, 0, 9)
    worker = bench.store.register("gone", LATER, TTL)
    bench.store.retire(worker, LATER)
    assert bench.store.deliveries.take(worker, "t1", LATER, [one.id]) == []
    assert bench.store.deliveries.take(999, "t1", LATER, [one.id]) == []


def test_what_is_done_is_an_event(bench: Bench) -> None:
    """It waits for nobody any more; writing that again changes nothing."""
    over(bench.store, CANCEL)
    worker, (mine,) = taken(bench.store)
    assert bench.store.deliveries.settle(mine, worker, LATER, DONE, "HTTP 202", None)
    assert not bench.store.deliveries.settle(mine, worker, LATER, DONE, "HTTP 202", None)
    (event,) = bench.store.events("default", "orders", (0, 0), 9)
    assert (event.kind, event.data) == ("delivered", {"what": "cancel", "note": "HTTP 202"})
    assert (due(bench.store), bench.store.deliveries.undelivered("default", 0, 9)) == ([], [])


def test_what_failed_is_tried_again_when_it_is_due(bench: Bench) -> None:
    """The reason is kept, the tries are counted, and no event is told."""
    over(bench.store, THEN)
    worker, (mine,) = taken(bench.store)
    assert bench.store.deliveries.settle(mine, worker, LATER, PENDING, "disk full\x00", LATER + MINUTE)
    assert due(bench.store) == []
    assert bench.store.deliveries.next_at("default") == LATER + MINUTE
    (again,) = bench.store.deliveries.due("default", LATER + MINUTE, 0, 9)
    assert (again.tries, again.error) == (1, "disk full\\u0000")
    assert bench.store.deliveries.take(worker, "t2", LATER, [mine.id]) == []
    assert bench.store.events("default", "orders", (0, 0), 9) == []


def test_what_is_given_up_stays_until_somebody_asks(bench: Bench) -> None:
    """It is listed with its error; asked for again, it begins anew."""
    over(bench.store, THEN)
    over(bench.store, THEN, key="other")
    worker, (mine, _) = taken(bench.store)
    assert bench.store.deliveries.settle(mine, worker, LATER, DEAD, "no such table", None)
    (dead,) = bench.store.deliveries.undelivered("default", 0, 9)
    assert (dead.key, dead.state, dead.tries, dead.error) == ("orders", DEAD, 1, "no such table")
    assert bench.store.deliveries.undelivered("default", dead.id, 9) == []
    assert [bench.store.deliveries.again("default", key, LATER) for key in ("other", "\x00", "orders")] == [0, 0, 1]
    (anew,) = bench.store.deliveries.due("default", LATER, 0, 9)
    assert (anew.id, anew.tries, anew.error) == (mine.id, 0, None)


def test_a_dead_worker_loses_what_it_had_taken(bench: Bench) -> None:
    """A call is free to be made again; of a cancel nobody knows whether it left, so it is not sent again."""
    over(bench.store, CANCEL, THEN)
    taken(bench.store)
    late = LATER + 2 * TTL
    other = bench.another()
    bench.store.bury(other.register("undertaker", late, TTL), late)
    (free,) = other.deliveries.due("default", late, 0, 9)
    (lost,) = other.deliveries.undelivered("default", 0, 9)
    assert (free.kind, free.tries, lost.kind) == (THEN, 1, CANCEL)
    assert "may or may not" in (lost.error or "")


def test_a_call_that_ends_its_workers_is_given_up(bench: Bench) -> None:
    """After as many tries as one that fails; and what was lost with it more than once does not come again beside it."""
    over(bench.store, THEN)
    late, wakes = LATER, set[int]()
    for number in range(MAX_TRIES):
        worker = bench.store.register(f"doomed-{number}", late, TTL)
        (mine,) = bench.store.deliveries.due("default", late, 0, 9)
        assert bench.store.deliveries.take(worker, f"n{number}", late, [mine.id])
        late += 2 * TTL
        bench.store.bury(bench.store.register("undertaker", late, TTL), late)
        wakes.add((bench.store.deliveries.next_at("default") or late) - late)
        late += MINUTE
    (lost,) = bench.store.deliveries.undelivered("default", 0, 9)
    assert (lost.tries, len(wakes)) == (MAX_TRIES, MAX_TRIES - 1)


def test_a_worker_that_ends_gives_back_what_it_had_taken(bench: Bench) -> None:
    """At once: nobody has to wait for its lease."""
    over(bench.store, THEN)
    worker, _ = taken(bench.store)
    bench.store.retire(worker, LATER)
    assert due(bench.store) == [THEN]


def test_what_is_told_of_a_live_job_disturbs_no_holder(bench: Bench) -> None:
    """A delivery's event is counted, and the holder's proof stays as it was."""
    over(bench.store, CANCEL)
    worker, (mine,) = taken(bench.store)
    bench.execute("UPDATE tarry_job SET outcome = NULL")
    (before,) = bench.store.rows([mine.job])
    assert bench.store.deliveries.settle(mine, worker, LATER, DONE, "HTTP 202", None)
    after = reread(bench.store, before)
    assert (after.event_seq, after.grip) == (before.event_seq + 1, before.grip)


def test_somebody_asks_once_for_a_cancel(bench: Bench) -> None:
    """Of a job that is not over: the moment is kept, the request is owed, and the holder's proof stays."""
    row = held(bench.store)
    asked = Event("cancel_requested", LATER)
    assert bench.store.ask_to_cancel(row.id, row.run, LATER, asked)
    assert not bench.store.ask_to_cancel(row.id, row.run, LATER + 1, asked)
    assert not bench.store.ask_to_cancel(row.id, row.run + 1, LATER, asked)
    after = reread(bench.store, row)
    assert (after.cancel_requested_at, after.event_seq, after.grip) == (LATER, 1, row.grip)
    assert due(bench.store) == [CANCEL]
    assert bench.store.checkpoint([ending(grip(row), owed=[CANCEL])]) == [True]
    assert due(bench.store) == [CANCEL]
    assert not bench.store.ask_to_cancel(row.id, row.run, LATER, asked)


def test_how_far_events_were_told_never_falls(bench: Bench) -> None:
    """It is kept for the run, by itself or with a checkpoint."""
    row = held(bench.store)
    for run, seq in [(1, 3), (1, 2), (2, 9)]:
        bench.store.told([(row.id, run, seq)])
    assert reread(bench.store, row).told == 3
    bench.store.checkpoint([write(grip(row)), write(grip(row, 1), told=5)])
    assert reread(bench.store, row).told == 5


def test_a_delivery_of_a_job_that_is_gone_can_be_settled(bench: Bench) -> None:
    """Nothing is told, for there is nobody to tell it of."""
    over(bench.store, THEN)
    worker, (mine,) = taken(bench.store)
    bench.execute("DELETE FROM tarry_job")
    assert bench.store.deliveries.settle(mine, worker, LATER, DONE, "", None)
    assert bench.count("tarry_event") == 0
