"""Two workers and one job, in any order of calls: the promises that hold in every state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tarry.ports import Grip, JobRow
from tarry.words import SECOND, Outcome
from tests.contract.bench import BENCHES, START, TTL, Bench, ending, grip, new_job, write

LIMIT = 2
WHO = st.integers(0, 1)


class Worker:
    """A worker as the runtime is one: it spends a permit before it sends, and believes in its grip, stale or not."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lives = 0
        self.id = 0
        self.grip: Grip | None = None
        self.polls = 0
        self.permit = False
        self.sent = False

    def forget(self) -> None:
        """Hold nothing."""
        self.grip, self.permit, self.sent = None, False, False

    def took(self, row: JobRow) -> None:
        """Hold what was claimed."""
        self.grip, self.polls, self.permit, self.sent = grip(row), row.polls, False, False

    def stepped(self) -> None:
        """A write was applied."""
        assert self.grip is not None
        self.grip = replace(self.grip, step=self.grip.step + 1)


class Sharing(RuleBasedStateMachine):
    """`requests` is what the service saw; the row is read past every worker."""

    make: Callable[[Path], Bench]

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.bench = type(self).make(Path(self.folder.name))
        self.bench.store.open(START)
        self.other = self.bench.another()
        self.now = START
        self.nonces = 0
        self.requests = 0
        self.ended: tuple[Outcome, str] | None = None
        self.last_step = -1
        self.job = self.bench.store.add(new_job(max_polls=LIMIT))[0].id
        self.workers = [Worker("a"), Worker("b")]
        for worker in self.workers:
            self.register(worker)

    def teardown(self) -> None:
        self.bench.close()
        self.folder.cleanup()

    def row(self) -> JobRow:
        (row,) = self.other.rows([self.job])
        return row

    def register(self, worker: Worker) -> None:
        worker.lives += 1
        worker.id = self.bench.store.register(f"{worker.name}{worker.lives}", self.now, TTL)

    def twice(self, method: str, *arguments: Any, again: bool) -> Any:
        """Call, and again as after a lost answer, through another store: the answer must be the same."""
        answer = getattr(self.bench.store, method)(*arguments)
        if again:
            assert getattr(self.other, method)(*arguments) == answer
        return answer

    @rule(who=WHO, again=st.booleans())
    def work(self, who: int, *, again: bool) -> None:
        """The next thing on the way to a poll: claim, reserve, send."""
        worker = self.workers[who]
        if worker.grip is None:
            self.nonces += 1
            for row in self.twice("claim", worker.id, f"n{self.nonces}", self.now, [self.job], again=again):
                worker.took(row)
        elif worker.permit:
            worker.permit, worker.sent = False, True
            self.requests += 1
        elif not worker.sent:
            (permitted,) = self.twice("reserve", [worker.grip], again=again)
            if permitted:
                worker.stepped()
                worker.permit = True
            else:
                worker.forget()

    @precondition(lambda self: any(worker.sent for worker in self.workers))
    @rule(who=WHO, then=st.sampled_from(["rest", "reserve", "release", "end"]), again=st.booleans())
    def settle(self, who: int, then: str, *, again: bool) -> None:
        """The answer came, maybe long after the worker was declared dead."""
        worker = self.workers[who]
        if worker.grip is None or not worker.sent:
            return
        polls = worker.polls + 1
        reserved = int(then == "reserve" and polls < LIMIT)
        made = write(worker.grip, polls, max_polls=LIMIT, reserved=reserved, release=then == "release")
        if then == "end":
            made = ending(worker.grip, polls, max_polls=LIMIT, output=f'"{worker.name}"')
        (applied,) = self.twice("checkpoint", [made], again=again)
        if not applied or then in {"release", "end"}:
            worker.forget()
            return
        worker.stepped()
        worker.polls, worker.permit, worker.sent = polls, bool(reserved), False

    @rule(who=WHO)
    def lose_the_process(self, who: int) -> None:
        """Killed: what it knew is gone, its row and its reservation are not."""
        self.workers[who].forget()
        self.register(self.workers[who])

    @precondition(lambda self: any(worker.grip and not worker.sent for worker in self.workers))
    @rule(who=WHO, again=st.booleans())
    def give_up(self, who: int, *, again: bool) -> None:
        worker = self.workers[who]
        if worker.grip is not None and not worker.sent:
            grip_then = worker.grip
            worker.forget()
            self.twice("release", [grip_then], self.now, again=again)

    @rule(seconds=st.sampled_from([1, 20, 40]), who=WHO)
    def time_passes(self, seconds: int, who: int) -> None:
        """One of the two renews in time; and somebody looks for the dead."""
        self.now += seconds * SECOND
        worker = self.workers[who]
        if not self.bench.store.renew(worker.id, self.now, TTL):
            # As after a long pause: it registers anew, and still believes in what it held.
            self.register(worker)
        self.other.bury(worker.id, self.now)

    @rule(who=WHO)
    def retire(self, who: int) -> None:
        worker = self.workers[who]
        worker.forget()
        self.bench.store.retire(worker.id, self.now)
        self.register(worker)

    @precondition(lambda self: self.requests > 0)
    @rule(late=st.booleans(), again=st.booleans())
    def cancel(self, *, late: bool, again: bool) -> None:
        step = self.row().step - int(late)
        done = self.twice("cancel", self.job, step, f'{{"now":{self.now}}}', self.now, [], again=again)
        assert done <= (not late or self.ended is not None)

    @invariant()
    def the_promises_hold(self) -> None:
        row = self.row()
        # Counted ahead: what was sent, and what may still be sent, is on record and within the limit.
        assert self.requests + sum(worker.permit for worker in self.workers) <= row.polls + row.reserved <= LIMIT
        # One holder at most, and only under an owner; a job without one asks for one, unless it is over.
        assert sum(self.holds(worker, row) for worker in self.workers) <= (row.owner is not None)
        assert (row.wake is not None) == (row.owner is None and row.outcome is None)
        # An end is final.
        if self.ended is not None:
            assert (row.outcome, f"{row.state}{row.output}", row.owner, row.reserved) == (*self.ended, None, 0)
        if row.outcome is not None:
            self.ended = (row.outcome, f"{row.state}{row.output}")
        assert row.step >= self.last_step
        self.last_step = row.step

    @staticmethod
    def holds(worker: Worker, row: JobRow) -> bool:
        return worker.grip is not None and worker.grip == Grip(row.id, row.fence, row.nonce or "", row.step, row.cmd)


@pytest.mark.parametrize("kind", BENCHES)
def test_no_order_of_calls_breaks_a_promise(kind: str) -> None:
    """Requests ≤ polls + reserved ≤ max_polls; one owner; one outcome: with deaths, pauses, repeats and cancels."""
    machine = type("Machine", (Sharing,), {"make": staticmethod(BENCHES[kind])})
    examples = {"memory": 50, "sqlite-wal": 10}.get(kind, 5)
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=40))
