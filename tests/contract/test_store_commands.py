"""What people's commands do to a row, whoever holds it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tarry.ports import Command, JobRow, Restart
from tarry.words import SECOND, Outcome, Phase
from tests.contract.bench import FLOOR, START, TTL, Bench, ending, grip, held, new_job, reread, told, write


def command(row: JobRow, **changes: Any) -> Command:
    """A command that makes the job due in 5 s."""
    asked = Command(
        job=row.id,
        step=row.step,
        cmd=row.cmd,
        state='{"asked":1}',
        due=START + 5 * SECOND,
        deadline=START + 60 * SECOND,
        max_polls=9,
        floor=FLOOR,
        paused=0,
    )
    return replace(asked, **changes)


def test_a_command_to_a_free_job_is_there_for_the_next_owner(bench: Bench) -> None:
    """It writes all of it, wakes the job when it is due, and tells events."""
    row, _ = bench.store.add(new_job(labels={"a": "b"}))
    asked = command(row, spec='{"poll":2}', labels={"c": "d"}, events=[told("nudged")])
    assert bench.store.command(asked)
    after = reread(bench.store, row)
    assert (after.state, after.due, after.wake, after.cmd) == (asked.state, asked.due, asked.due, 1)
    assert (after.deadline, after.max_polls, after.spec, after.labels) == (asked.deadline, 9, '{"poll":2}', {"c": "d"})
    assert (after.step, after.fence, after.event_seq) == (row.step, row.fence, 1)
    assert [event.kind for event in bench.store.events("default", "orders", (0, 0), 9)] == ["nudged"]


def test_a_command_leaves_what_it_does_not_name(bench: Bench) -> None:
    """None for the spec and labels keeps them."""
    row, _ = bench.store.add(new_job(labels={"a": "b"}))
    assert bench.store.command(command(row))
    after = reread(bench.store, row)
    assert (after.spec, after.labels) == (row.spec, row.labels)


def test_a_holders_write_misses_after_a_command(bench: Bench) -> None:
    """It keeps the job and its permit, and writes once it knows the command; giving the job up needs no such thing."""
    row = held(bench.store)
    assert bench.store.command(command(row))
    assert bench.store.reserve([grip(row)]) == [False]
    assert bench.store.checkpoint([write(grip(row), 1)]) == [False]
    after = reread(bench.store, row)
    assert (after.owner, after.nonce, after.fence, after.step, after.wake) == (
        row.owner,
        row.nonce,
        row.fence,
        row.step,
        None,
    )
    assert bench.store.checkpoint([write(after.grip, 1)]) == [True]
    again = reread(bench.store, row)
    assert bench.store.command(command(again))
    assert bench.store.release([again.grip], START) == [True]
    assert reread(bench.store, row).wake == START + 5 * SECOND


@pytest.mark.parametrize("part", ["step", "cmd"])
def test_a_command_needs_the_row_it_was_meant_for(bench: Bench, part: str) -> None:
    """One that was given for another step, or another command ago, changes nothing."""
    row, _ = bench.store.add(new_job())
    stale = command(row, events=[told("nudged")])
    assert not bench.store.command(replace(stale, **{part: getattr(stale, part) + 1}))
    assert reread(bench.store, row) == row
    assert bench.store.command(stale)
    assert not bench.store.command(stale)
    assert reread(bench.store, row).event_seq == 1


def test_a_job_that_is_over_takes_no_command(bench: Bench) -> None:
    """Its outcome stands."""
    row = held(bench.store)
    bench.store.checkpoint([ending(grip(row))])
    over = reread(bench.store, row)
    assert not bench.store.command(command(over))
    assert reread(bench.store, row) == over


def test_a_limit_below_what_is_spent_and_permitted_becomes_that(bench: Bench) -> None:
    """So that the count never passes the limit."""
    row = held(bench.store)
    bench.store.checkpoint([write(grip(row), 1, reserved=1)])
    assert bench.store.command(command(reread(bench.store, row), max_polls=1))
    assert reread(bench.store, row).max_polls == 2
    assert bench.store.command(command(reread(bench.store, row), max_polls=None))
    assert reread(bench.store, row).max_polls is None


def test_a_paused_job_wants_no_owner(bench: Bench) -> None:
    """Nobody can claim it, however it came to be free; when it goes on it wakes when due."""
    row = held(bench.store)
    assert bench.store.command(command(row, paused=1))
    paused = reread(bench.store, row)
    assert bench.store.release([paused.grip], START) == [True]
    free = reread(bench.store, row)
    assert (free.owner, free.wake, free.paused) == (None, None, 1)
    assert bench.store.claim(bench.store.register("second", START, TTL), "n2", START, [row.id]) == []
    assert bench.store.command(command(free, paused=0))
    assert reread(bench.store, row).wake == START + 5 * SECOND


@pytest.mark.parametrize("way", ["checkpoint", "retire"])
def test_a_paused_job_that_is_given_up_stays_asleep(bench: Bench, way: str) -> None:
    """By a checkpoint, and by the end of its worker."""
    row = held(bench.store)
    assert bench.store.command(command(row, paused=1))
    if way == "retire":
        bench.store.retire(row.owner or 0, START)
    else:
        bench.store.checkpoint([write(reread(bench.store, row).grip, release=True)])
    after = reread(bench.store, row)
    assert (after.owner, after.wake, after.paused) == (None, None, 1)


@pytest.mark.parametrize("by", ["answer", "cancel"])
def test_an_end_ends_the_pause(bench: Bench, by: str) -> None:
    """A job that is over is not paused as well."""
    row = held(bench.store)
    assert bench.store.command(command(row, paused=1))
    if by == "cancel":
        assert bench.store.cancel(row.id, row.step, "{}", START, [])
    else:
        assert bench.store.checkpoint([ending(reread(bench.store, row).grip)]) == [True]
    after = reread(bench.store, row)
    assert (after.outcome is not None, after.paused) == (True, 0)
    assert after.outcome in {Outcome.CANCELLED, Outcome.SUCCEEDED}


def restart(row: JobRow, **changes: Any) -> Restart:
    """A new run, due in 5 s."""
    asked = Restart(
        job=row.id,
        step=row.step,
        cmd=row.cmd,
        token="token-2",
        fingerprint="print-2",
        spec='{"poll":2}',
        labels={"c": "d"},
        state='{"anew":1}',
        phase=Phase.SUBMITTING,
        created_at=START + 3 * SECOND,
        polled_at=START + SECOND,
        due=START + 5 * SECOND,
        deadline=None,
        max_polls=9,
        floor=SECOND,
        events=[told("reset")],
    )
    return replace(asked, **changes)


@pytest.mark.parametrize("is_over", [True, False], ids=["over", "held"])
def test_a_new_run_has_nothing_of_the_last_but_its_events(bench: Bench, *, is_over: bool) -> None:
    """It is nobody's, and due; what the holder of the last run writes is refused."""
    row = held(bench.store)
    last = {"last": "1", "submit": "2", "timeline": "[]", "events": [told("status")]}
    if is_over:
        bench.store.checkpoint([ending(grip(row), output='"done"', **last)])
    else:
        bench.store.checkpoint([write(grip(row), 1, reserved=1, **last)])
    before = reread(bench.store, row)
    assert bench.store.restart(restart(before))
    after = reread(bench.store, row)
    assert (after.run, after.fence, after.step) == (before.run + 1, before.fence + 1, before.step + 1)
    assert (after.owner, after.nonce, after.outcome, after.finished_at, after.output) == (None,) * 5
    assert (after.polls, after.reserved, after.paused, after.last, after.submit, after.timeline) == (0, 0, 0) + (
        None,
    ) * 3
    assert (after.token, after.fingerprint, after.spec, after.labels) == (
        "token-2",
        "print-2",
        '{"poll":2}',
        {"c": "d"},
    )
    assert (after.created_at, after.polled_at, after.due, after.wake) == (
        START + 3 * SECOND,
        START + SECOND,
        START + 5 * SECOND,
        START + 5 * SECOND,
    )
    assert (after.deadline, after.max_polls, after.floor, after.phase) == (None, 9, SECOND, Phase.SUBMITTING)
    assert bench.store.checkpoint([write(before.grip, 2)]) == [False]
    assert bench.store.release([before.grip], START) == [False]
    events = bench.store.events("default", "orders", (0, 0), 9)
    assert [(event.run, event.seq, event.kind) for event in events] == [(1, 1, "status"), (2, 2, "reset")]
    assert bench.store.events("default", "orders", (1, 1), 9) == events[1:]
    assert bench.store.events("default", "orders", (2, 0), 9) == events[1:]
    assert bench.store.events("default", "orders", (2, 2), 9) == []


def test_a_new_run_keeps_the_answers_that_it_is_given(bench: Bench) -> None:
    """Of a submit that stands, and what was found since; the others are gone."""
    row = held(bench.store)
    names = ("submit", "baseline", "poll", "status_url", "carried")
    bench.store.checkpoint([write(grip(row), **{name: f'"{name}"' for name in names})])
    before = reread(bench.store, row)
    assert bench.store.restart(restart(before, submit='{"id":7}', status_url="[]"))
    after = reread(bench.store, row)
    assert [getattr(after, name) for name in names] == ['{"id":7}', None, None, "[]", None]


def test_a_job_from_another_store_brings_what_it_has(bench: Bench) -> None:
    """What it spent and what it saw is there as it was."""
    brought = {"polls": 2, "polled_at": START, "last": "1", "submit": "2", "timeline": "[]", "carried": "3"}
    brought |= {"baseline": "4", "poll": "5", "status_url": "[]"}
    row, _ = bench.store.add(new_job(**brought))
    assert {name: getattr(row, name) for name in brought} == brought


def test_another_spec_drops_the_validators(bench: Bench) -> None:
    """The last answer was judged by the one before; other commands leave them, a new run has none."""
    row = held(bench.store)
    bench.store.checkpoint([write(grip(row), validators='["u","e",null]')])
    assert bench.store.command(command(reread(bench.store, row)))
    assert reread(bench.store, row).validators == '["u","e",null]'
    assert bench.store.command(command(reread(bench.store, row), spec='{"poll":2}'))
    after = reread(bench.store, row)
    assert after.validators is None
    bench.store.checkpoint([write(after.grip, validators="[]")])
    assert bench.store.restart(restart(reread(bench.store, row)))
    assert reread(bench.store, row).validators is None


def test_a_new_run_repeated_is_one(bench: Bench) -> None:
    """The very same one is true again and changes nothing; another one for the same step is refused."""
    row, _ = bench.store.add(new_job())
    assert bench.store.restart(restart(row))
    after = reread(bench.store, row)
    assert bench.store.restart(restart(row))
    assert not bench.store.restart(restart(row, token="token-3"))
    assert not bench.store.restart(restart(after, cmd=after.cmd + 1))
    assert reread(bench.store, row) == after


def test_what_moved_is_told_from_what_is_as_it_was_known(bench: Bench) -> None:
    """Of jobs that were held: one is as it was, the others got a command, ended, were given back, or are gone."""
    rows = [held(bench.store, name) for name in "abcd"]
    known = [(row.id, row.owner or 0, row.cmd) for row in rows]
    assert bench.store.moved([]) == bench.store.moved([*known, (999, 1, 0)]) == set()
    _, asked, over, free = rows
    assert bench.store.command(command(asked))
    bench.store.checkpoint([ending(grip(over))])
    bench.store.release([grip(free)], START)
    assert bench.store.moved(known) == {asked.id, over.id, free.id}
    assert bench.store.moved([(rows[0].id, known[0][1] + 1, 0)]) == {rows[0].id}
