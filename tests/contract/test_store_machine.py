"""Two workers, one job after another, any order of calls: the promises that hold in every state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tarry.ports import Grip, JobRow
from tarry.words import SECOND, Outcome
from tests.contract.bench import BENCHES, START, TTL, Bench, ending, grip, new_job, write

LIMIT = 4


class Worker:
    """A worker as the runtime would be one: it spends a permit before it sends, and trusts its grip, stale or not."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lives = 0
        self.id = 0
        self.grip: Grip | None = None
        self.polls = 0
        self.permit = False

    def forget(self) -> None:
        """Hold nothing."""
        self.grip, self.permit = None, False

    def step(self) -> None:
        """A write was applied."""
        assert self.grip is not None
        self.grip = Grip(self.grip.job, self.grip.fence, self.grip.nonce, self.grip.step + 1, self.grip.cmd)


class Sharing(RuleBasedStateMachine):
    """The service counts the requests; the rows are read past every worker."""

    make: Callable[[Path], Bench]

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.bench = type(self).make(Path(self.folder.name))
        self.bench.store.open(START)
        self.other = self.bench.another()
        self.now = START
        self.workers = [Worker("a"), Worker("b")]
        self.nonces = 0
        self.requests = 0
        self.ended: tuple[Outcome, str] | None = None
        self.last_step = -1

    def teardown(self) -> None:
        self.bench.close()
        self.folder.cleanup()

    @initialize()
    def begin(self) -> None:
        self.job = self.bench.store.add(new_job(max_polls=LIMIT))[0].id
        for worker in self.workers:
            self.register(worker)

    def register(self, worker: Worker) -> None:
        worker.lives += 1
        worker.id = self.bench.store.register(f"{worker.name}{worker.lives}", self.now, TTL)

    def row(self) -> JobRow:
        (row,) = self.other.rows([self.job])
        return row

    @rule(who=st.integers(0, 1), again=st.booleans())
    def claim(self, who: int, *, again: bool) -> None:
        worker = self.workers[who]
        self.nonces += 1
        args = (worker.id, f"n{self.nonces}", self.now, [self.job])
        rows = self.bench.store.claim(*args)
        if again:
            assert self.other.claim(*args) == rows
        if rows:
            worker.grip, worker.polls, worker.permit = grip(rows[0]), rows[0].polls, False

    @rule(who=st.integers(0, 1), again=st.booleans())
    def reserve(self, who: int, *, again: bool) -> None:
        worker = self.workers[who]
        if worker.grip is None or worker.permit:
            return
        (permitted,) = self.bench.store.reserve([worker.grip])
        if again:
            assert self.bench.store.reserve([worker.grip]) == [permitted]
        if permitted:
            worker.step()
            worker.permit = True

    @rule(
        who=st.integers(0, 1),
        then=st.sampled_from(["next", "reserve", "release", "end"]),
        again=st.booleans(),
        dies=st.booleans(),
    )
    def poll(self, who: int, then: str, *, again: bool, dies: bool) -> None:
        worker = self.workers[who]
        if worker.grip is None or not worker.permit:
            return
        worker.permit = False
        self.requests += 1
        if dies:
            worker.forget()
            return
        polls = worker.polls + 1
        reserved = int(then == "reserve" and polls < LIMIT)
        made = write(worker.grip, polls, max_polls=LIMIT, reserved=reserved, release=then == "release")
        made = ending(worker.grip, polls, max_polls=LIMIT) if then == "end" else made
        (applied,) = self.bench.store.checkpoint([made])
        if again:
            assert self.other.checkpoint([made]) == [applied]
        if not applied or then in {"release", "end"}:
            worker.forget()
            return
        worker.step()
        worker.polls, worker.permit = polls, bool(reserved)

    @rule(who=st.integers(0, 1))
    def release(self, who: int) -> None:
        worker = self.workers[who]
        if worker.grip is None:
            return
        spent = self.row().reserved == 1 and not worker.permit
        if spent:
            return
        self.bench.store.release([worker.grip], self.now)
        worker.forget()

    @rule(seconds=st.integers(1, 40), who=st.integers(0, 1))
    def time_passes_and_one_renews(self, seconds: int, who: int) -> None:
        self.now += seconds * SECOND
        worker = self.workers[who]
        if not self.bench.store.renew(worker.id, self.now, TTL):
            # As after a long pause: it registers anew, and still believes in what it held.
            self.register(worker)

    @rule(who=st.integers(0, 1))
    def bury(self, who: int) -> None:
        self.other.bury(self.workers[who].id, self.now)

    @rule(who=st.integers(0, 1))
    def retire(self, who: int) -> None:
        worker = self.workers[who]
        self.bench.store.retire(worker.id, self.now)
        worker.forget()
        self.register(worker)

    @precondition(lambda self: self.requests > 1)
    @rule(stale=st.booleans())
    def cancel(self, *, stale: bool) -> None:
        step = self.row().step - int(stale)
        done = self.other.cancel(self.job, step, f'{{"now":{self.now}}}', self.now, [])
        assert done <= (not stale or self.ended is not None)

    @invariant()
    def the_promises_hold(self) -> None:
        row = self.row()
        holders = [worker for worker in self.workers if self.holds(worker, row)]
        # Counted ahead: what was sent, and what may be sent, is on record and within the limit.
        assert self.requests + sum(worker.permit for worker in holders) <= row.polls + row.reserved <= LIMIT
        # One owner at most; a job without one asks for one, unless it is over.
        assert len(holders) <= (row.owner is not None)
        assert (row.wake is not None) == (row.owner is None and row.outcome is None)
        # An end is final.
        if self.ended is not None:
            assert (row.outcome, row.state, row.owner, row.reserved) == (*self.ended, None, 0)
        if row.outcome is not None:
            self.ended = (row.outcome, row.state)
        assert row.step >= self.last_step
        self.last_step = row.step

    @staticmethod
    def holds(worker: Worker, row: JobRow) -> bool:
        return worker.grip is not None and worker.grip == Grip(row.id, row.fence, row.nonce or "", row.step, row.cmd)


@pytest.mark.parametrize("kind", BENCHES)
def test_no_order_of_calls_breaks_a_promise(kind: str) -> None:
    """Requests ≤ polls + reserved ≤ max_polls; one owner; one outcome: with deaths, pauses, repeats and cancels."""
    machine = type("Machine", (Sharing,), {"make": staticmethod(BENCHES[kind])})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=10 if kind == "sqlite" else 60, stateful_step_count=25)
    )
