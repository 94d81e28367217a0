"""The contract of a store, as to workers: who is alive, and what becomes of the jobs of those who are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event, select

from tarry.errors import StoreError
from tarry.ports import CONVICTED, QUARANTINED, SUSPECT, JobRow
from tarry.store.workers import BATCH
from tarry.words import DAY, SECOND, Phase
from tests.contract.bench import FLOOR, START, TTL, Bench, ending, grip, held, new_job, reread, told, write

LATER = START + TTL


def undertaker(bench: Bench, now: int = LATER) -> int:
    """A live worker that buries others."""
    return bench.store.register("undertaker", now, TTL)


def kinds(bench: Bench, row: JobRow) -> list[str]:
    """The kinds of the job's events."""
    return [stored.kind for stored in bench.store.events("default", row.key, (0, 0), 100)]


def columns(bench: Bench, key: str) -> dict[str, Any]:
    """What the database holds of a job, sound or not."""
    job = bench.store.tables.job
    with bench.store._database.read() as connection:
        return dict(connection.execute(select(job).where(job.c.key == key)).mappings().one())


# Leases


def test_a_worker_registers_once(bench: Bench) -> None:
    """The same uuid is the same worker; another gets another id."""
    first = bench.store.register("first", START, TTL)
    assert bench.store.register("first", START, TTL) == first
    assert bench.another().register("second", START, TTL) != first


def test_worker_ids_are_never_used_again(bench: Bench) -> None:
    """A job may still name a worker whose row is long gone."""
    first = bench.store.register("first", START, TTL)
    bench.execute("DELETE FROM tarry_worker")
    assert bench.store.register("second", START, TTL) > first


@pytest.mark.parametrize("uuid", ["", "../first", "a/b", "a\x00", "u" * 65])
def test_a_uuid_that_is_no_file_name_is_refused(bench: Bench, uuid: str) -> None:
    """A uuid becomes the name of a lock: it must not lead elsewhere."""
    with pytest.raises(StoreError, match="worker uuid"):
        bench.store.register(uuid, START, TTL)


def test_a_lease_renewed_keeps_the_worker_alive(bench: Bench) -> None:
    """Renewed at any time before it is declared dead, it lives, and keeps its jobs."""
    row = held(bench.store)
    assert row.owner is not None
    assert bench.store.renew(row.owner, START + TTL, TTL)
    assert bench.store.renew(row.owner, START + TTL, TTL)
    assert bench.store.bury(undertaker(bench), LATER) == 0
    assert reread(bench.store, row) == row


def test_the_dead_do_not_come_back(bench: Bench) -> None:
    """Declared dead, a worker neither renews nor registers under its old uuid."""
    worker = bench.store.register("first", START, TTL)
    bench.store.bury(undertaker(bench), LATER)
    assert not bench.store.renew(worker, LATER, TTL)
    assert not bench.store.renew(999, LATER, TTL)
    with pytest.raises(StoreError, match="new uuid"):
        bench.store.register("first", LATER, TTL)


def test_nobody_buries_itself(bench: Bench) -> None:
    """One that is late itself still has its row: another has to say that it is dead."""
    worker = bench.store.register("first", START, TTL)
    assert bench.store.bury(worker, LATER) == 0
    assert bench.store.renew(worker, LATER, TTL)


def test_dead_rows_are_forgotten_after_a_day(bench: Bench) -> None:
    """The table of workers stays small, however often processes start."""
    me = undertaker(bench, START)
    for n in range(5):
        bench.store.register(f"w{n}", START, TTL)
    bench.store.renew(me, START, 9 * DAY)
    bench.store.bury(me, LATER)
    assert bench.count("tarry_worker") == 6
    bench.store.register("late", START + DAY, TTL)
    bench.store.bury(me, LATER + DAY + 1)
    assert bench.count("tarry_worker") == 2


# Freeing


def test_a_dead_workers_job_is_free_at_once(bench: Bench) -> None:
    """Without a permit nothing was sent: no count, no strike, due as before."""
    row = held(bench.store)
    assert bench.another().bury(undertaker(bench), LATER) == 1
    after = reread(bench.store, row)
    assert (after.owner, after.nonce, after.polls, after.strikes, after.polled_at) == (None, None, 0, 0, None)
    assert (after.fence, after.step, after.due, after.wake) == (row.fence + 1, row.step + 1, START, START)
    assert kinds(bench, row) == ["freed"]


def test_a_dead_workers_permit_is_counted(bench: Bench) -> None:
    """It may have been used, at the latest when the lease ended: counted, struck, and the floor kept from there."""
    row = held(bench.store)
    bench.store.reserve([grip(row)])
    assert bench.store.bury(undertaker(bench), LATER + 5) == 1
    after = reread(bench.store, row)
    assert (after.polls, after.reserved, after.strikes, after.polled_at) == (1, 0, 1, LATER)
    assert (after.due, after.wake) == (LATER + FLOOR, LATER + FLOOR)
    (off, freed) = bench.store.events("default", row.key, (0, 0), 9)
    assert (off.kind, off.data) == ("written_off", {"worker": row.owner, "polls": 1})
    assert (freed.kind, freed.at) == ("freed", LATER + 5)


def test_a_later_due_time_stands(bench: Bench) -> None:
    """What the service asked for, or a poll that started later, is not brought forward by a death."""
    row = held(bench.store)
    bench.store.checkpoint([write(grip(row), 1, polled_at=LATER + 7, due=LATER + 90 * SECOND, reserved=1)])
    bench.store.bury(undertaker(bench), LATER)
    after = reread(bench.store, row)
    assert (after.polls, after.polled_at, after.due) == (2, LATER + 7, LATER + 90 * SECOND)


def test_the_last_permit_lost_is_the_last_poll(bench: Bench) -> None:
    """Spent by a death, the limit permits nothing more: the next owner can only end the job."""
    row = held(bench.store, max_polls=1)
    bench.store.reserve([grip(row)])
    me = undertaker(bench)
    bench.store.bury(me, LATER)
    (again,) = bench.store.claim(me, "n2", LATER, [row.id])
    assert (again.polls, again.max_polls) == (1, 1)
    assert bench.store.reserve([grip(again)]) == [False]


def test_a_count_past_the_limit_is_left_there(bench: Bench) -> None:
    """The limit bounds what is added; it hides nothing that is on record."""
    row = held(bench.store)
    bench.damage("polls = 5, reserved = 1")
    bench.store.bury(undertaker(bench), LATER)
    assert reread(bench.store, row).polls == 5


def test_a_burial_repeated_frees_nothing_more(bench: Bench) -> None:
    """The permit is written off once, whoever looks and however often."""
    row = held(bench.store)
    bench.store.reserve([grip(row)])
    me = undertaker(bench)
    assert [bench.store.bury(me, LATER), bench.another().bury(me, LATER), bench.store.bury(me, LATER)] == [1, 0, 0]
    assert reread(bench.store, row).polls == 1
    assert kinds(bench, row) == ["written_off", "freed"]


@pytest.mark.parametrize(
    "late",
    [
        lambda row: ("checkpoint", [write(grip(row), 1)]),
        lambda row: ("checkpoint", [write(grip(row), 1, release=True)]),
        lambda row: ("checkpoint", [ending(grip(row))]),
        lambda row: ("reserve", [grip(row)]),
    ],
)
def test_who_was_declared_dead_writes_nothing(bench: Bench, late: Callable[[JobRow], tuple[str, list[object]]]) -> None:
    """A process that was only paused finds its fence gone: each of its writes is refused."""
    row = held(bench.store)
    bench.store.bury(undertaker(bench), LATER)
    freed = reread(bench.store, row)
    method, arguments = late(row)
    assert getattr(bench.store, method)(arguments) == [False]
    assert bench.store.release([grip(row)], LATER) == [False]
    assert reread(bench.store, row) == freed


def test_jobs_without_a_living_owner_are_swept(bench: Bench) -> None:
    """An owner whose row is gone altogether owns nothing; its permit ended, at the latest, now."""
    row = held(bench.store)
    bench.store.reserve([grip(row)])
    bench.execute("DELETE FROM tarry_worker")
    assert bench.store.bury(undertaker(bench), LATER + 3) == 1
    assert reread(bench.store, row).polled_at == LATER + 3


def test_many_jobs_are_freed_in_batches(bench: Bench) -> None:
    """More than one transaction's worth, each job once."""
    jobs = bench.multiply(held(bench.store), BATCH)
    assert bench.store.bury(undertaker(bench), LATER) == BATCH + 1
    assert {row.owner for row in bench.store.rows(jobs)} == {None}


def test_a_damaged_row_does_not_keep_the_dead_above_ground(bench: Bench) -> None:
    """The others are freed; the damaged one is left as it is."""
    bad, good = held(bench.store, "bad"), held(bench.store, "good")
    bench.store.reserve([grip(bad), grip(good)])
    bench.damage("floor = 'x'", "bad")
    me = undertaker(bench)
    assert [bench.store.bury(me, LATER), bench.store.bury(me, LATER)] == [1, 0]
    assert reread(bench.store, good).owner is None
    assert bench.store.glance([bad.id])[0].owner == bad.owner


COLLIDING = "owner = 999, nonce = 'x', wake = NULL, event_seq = 0"


@pytest.mark.parametrize(
    "change",
    [
        COLLIDING,
        "owner = 999, event_seq = 'x'",
        "owner = 999, step = 'x'",
        "owner = 999, fence = 1.5",
        "owner = 999, strikes = x'00'",
        "owner = 999, reserved = 1, floor = 9223372036854775807",
    ],
)
def test_a_job_that_cannot_be_freed_hurts_only_itself(
    bench: Bench, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its row and events stay as they are, the others are freed, and the log says so once."""
    bad = bench.store.add(new_job("bad", events=[told("created")]))[0]
    held(bench.store, "good")
    bench.damage(change, "bad")
    me, before = undertaker(bench), columns(bench, "bad")
    assert [bench.store.bury(me, LATER) for _ in range(3)] == [1, 0, 0]
    bench.store.add(new_job("later"))
    assert bench.store.bury(me, LATER) == 0
    assert columns(bench, "bad") == before
    assert kinds(bench, bad) == ["created"]
    (line,) = [record.getMessage() for record in caplog.records if record.name == "tarry.store"]
    assert line.startswith(f"job id {bad.id} is damaged; it was left as it is: ")


def test_a_damaged_job_is_not_tried_round_by_round(bench: Bench) -> None:
    """Nothing is written while nothing changes: other processes would be roused by it, twice a second."""
    bench.store.add(new_job("bad", events=[told("created")]))
    bench.damage(COLLIDING, "bad")
    me = undertaker(bench)
    bench.store.bury(me, LATER)
    written: list[str] = []

    def seen(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        written.append(statement[:6])

    event.listen(Engine, "before_cursor_execute", seen)
    bench.store.bury(me, LATER)
    event.remove(Engine, "before_cursor_execute", seen)
    assert "UPDATE" not in written


def test_a_damaged_job_is_freed_once_it_is_mended(bench: Bench) -> None:
    """By the same process: what is remembered is the damage, not the job."""
    row = bench.store.add(new_job(events=[told("created")]))[0]
    bench.damage(COLLIDING)
    me = undertaker(bench)
    assert bench.store.bury(me, LATER) == 0
    bench.damage("event_seq = 1")
    assert bench.store.bury(me, LATER) == 1
    assert kinds(bench, row) == ["created", "freed"]


def test_a_worker_retires_though_a_job_of_its_cannot_be_freed(bench: Bench) -> None:
    """It gives back the others."""
    bad, good = held(bench.store, "bad", events=[told("created")]), held(bench.store, "good")
    bench.damage("event_seq = 0", "bad")
    assert bad.owner is not None
    bench.store.retire(bad.owner, LATER)
    assert [row.owner for row in bench.store.rows([bad.id, good.id])] == [bad.owner, None]


@pytest.mark.parametrize("change", ["lease_until = 'x'", "uuid = '../x'", "uuid = x'00'", "uuid = CAST(x'ff' AS TEXT)"])
def test_a_damaged_worker_keeps_no_other_above_ground(
    bench: Bench, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is passed over, which the log says once."""
    number = bench.store.register("damaged", START, TTL)
    row, me = held(bench.store), undertaker(bench)
    bench.execute(f"UPDATE tarry_worker SET {change} WHERE uuid = 'damaged'")
    assert bench.store.bury(me, LATER) == 1
    bench.store.add(new_job("later"))
    assert bench.store.bury(me, LATER) == 0
    assert reread(bench.store, row).owner is None
    (line,) = [record.getMessage() for record in caplog.records if record.name == "tarry.store"]
    assert line.startswith(f"worker id {number} is damaged; it was left as it is: ")


# Retiring


def test_a_retired_worker_leaves_nothing_behind(bench: Bench) -> None:
    """What it still held is free, and a permit that it could not settle is counted, from now."""
    sent, idle = held(bench.store, "sent"), held(bench.store, "idle")
    bench.store.reserve([grip(sent)])
    assert sent.owner is not None
    for _ in range(2):
        bench.store.retire(sent.owner, START + 4)
    after = reread(bench.store, sent)
    assert (after.owner, after.polls, after.polled_at, after.due) == (None, 1, START + 4, START + 4 + FLOOR)
    assert (kinds(bench, sent), kinds(bench, idle)) == (["written_off", "freed"], ["freed"])
    assert not bench.store.renew(sent.owner, START, TTL)
    bench.store.retire(999, START)


# Jobs that kill their process


def crash(bench: Bench, *rows: JobRow, alone: JobRow | None = None, end: str = "bury") -> list[JobRow]:
    """A process calls these jobs, one of them alone perhaps, and ends; the rows after it."""
    number = bench.count("tarry_worker")
    worker = bench.store.register(f"doomed-{number}", START, TTL)
    claimed = bench.store.claim(worker, f"n-{number}", START, [row.id for row in rows])
    assert bench.store.reserve([grip(row) for row in claimed]) == [True] * len(rows)
    if alone is not None:
        (one,) = [row for row in claimed if row.id == alone.id]
        assert bench.store.isolate(grip(one, 1))
    if end == "retire":
        bench.store.retire(worker, START)
    else:
        bench.store.bury(undertaker(bench), LATER)
    return bench.store.rows([row.id for row in rows])


def crashed(bench: Bench, times: int, *rows: JobRow, alone: JobRow | None = None) -> list[JobRow]:
    """As `crash`, so many times; each by another process."""
    found = list(rows)
    for _ in range(times):
        found = crash(bench, *rows, alone=alone)
    return found


def unlimited(bench: Bench, key: str) -> JobRow:
    """A job without a limit on its polls."""
    row, _ = bench.store.add(new_job(key, max_polls=None))
    return row


def test_a_crash_is_held_against_all_that_may_have_been_called(bench: Bench) -> None:
    """Each job with a permit, or on its way to its first poll, gets a strike; one that rested gets none."""
    good, resting = unlimited(bench, "good"), unlimited(bench, "resting")
    early, _ = bench.store.add(new_job("early", phase=Phase.PREPARING))
    worker = bench.store.register("doomed", START, TTL)
    claimed = bench.store.claim(worker, "n1", START, [good.id, resting.id, early.id])
    bench.store.reserve([grip(row) for row in claimed if row.id == good.id])
    bench.store.bury(undertaker(bench), LATER)
    assert [reread(bench.store, row).strikes for row in (good, resting, early)] == [1, 0, 1]


def test_a_shared_crash_makes_suspects_and_no_convicts(bench: Bench) -> None:
    """However often its process ends beside others, a job has no more strikes than make it a suspect."""
    rows = [unlimited(bench, key) for key in ("one", "other")]
    assert [(row.strikes, row.paused) for row in crashed(bench, 5, *rows)] == [(SUSPECT, 0), (SUSPECT, 0)]


def test_a_crash_alone_is_held_against_that_job_only(bench: Bench) -> None:
    """The others that the process held may have been under way, by their rows, and were not."""
    killer, innocent = unlimited(bench, "killer"), unlimited(bench, "innocent")
    after = crash(bench, killer, innocent, alone=killer)
    assert [(row.strikes, row.alone, row.owner) for row in after] == [(1, 0, None), (0, 0, None)]


def test_a_job_that_kills_its_process_alone_is_quarantined(bench: Bench) -> None:
    """After its last chance it is paused, with an event, and sleeps; nothing of it is lost."""
    killer, innocent = unlimited(bench, "killer"), unlimited(bench, "innocent")
    crashed(bench, SUSPECT, killer, innocent)
    (before, _) = crashed(bench, CONVICTED - SUSPECT - 1, killer, innocent, alone=killer)
    assert (before.paused, before.wake is None) == (0, False)
    (after, other) = crashed(bench, 1, killer, innocent, alone=killer)
    assert (after.paused, after.strikes, after.wake, after.outcome) == (QUARANTINED, CONVICTED, None, None)
    assert kinds(bench, after)[-1] == "quarantined"
    assert (other.paused, other.strikes) == (0, SUSPECT)
    worker = bench.store.register("next", LATER, TTL)
    assert [row.id for row in bench.store.claim(worker, "n", LATER, [killer.id, innocent.id])] == [innocent.id]


def test_a_worker_that_retires_strikes_nobody(bench: Bench) -> None:
    """A call that was cut short at the end of a program counts as a poll, and is no crash."""
    (after,) = crash(bench, unlimited(bench, "orders"), end="retire")
    assert (after.polls, after.strikes) == (1, 0)


def test_a_committed_answer_clears_the_strikes(bench: Bench) -> None:
    """A process that lived through the call clears its job, and the mark of being alone; the commit before a submit does not."""
    (row,) = crashed(bench, SUSPECT, unlimited(bench, "orders"))
    worker = bench.store.register("next", LATER, TTL)
    (claimed,) = bench.store.claim(worker, "n", LATER, [row.id])
    assert bench.store.isolate(grip(claimed))
    bench.store.checkpoint([write(grip(claimed), claimed.polls, phase=Phase.SENDING, max_polls=None)])
    sending = reread(bench.store, row)
    assert (sending.strikes, sending.alone) == (SUSPECT, 1)
    bench.store.checkpoint([write(grip(claimed, 1), claimed.polls + 1, max_polls=None)])
    after = reread(bench.store, row)
    assert (after.strikes, after.alone) == (0, 0)


def test_nobody_is_alone_after_a_release(bench: Bench) -> None:
    """Given back, a job is under way no more; and only its holder can say that it is alone."""
    row = held(bench.store)
    assert bench.store.isolate(grip(row))
    assert bench.store.isolate(grip(row))
    bench.store.release([grip(row)], START)
    assert reread(bench.store, row).alone == 0
    assert not bench.store.isolate(grip(row))
