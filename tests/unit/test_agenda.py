"""The agenda of jobs that rest without a task."""

from __future__ import annotations

import weakref

import pytest

from tarry.runtime.agenda import Agenda, Appointment
from tarry.testing import FakeClock
from tarry.words import SECOND, Instant
from tests.pollers import Skewed


class Job:
    """One that writes down when it went on (s)."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._begun = clock.now()
        self.rests_until: Instant | None = None
        self.appointment: Appointment | None = None
        self.went_on: list[float] = []

    def recount(self) -> None:
        """It goes on."""
        self.rests_until = None
        self.went_on.append((self._clock.now() - self._begun) / SECOND)

    def park(self, agenda: Agenda, seconds: float) -> None:
        """Rest for so long."""
        self.rests_until = self._clock.now() + round(seconds * SECOND)
        agenda.enter(self, self.rests_until)


def test_each_goes_on_in_its_time() -> None:
    """Whichever was entered first; two at one time both do, and one of the past does at once."""
    clock = FakeClock()
    agenda, jobs = Agenda(clock), [Job(clock) for _ in range(5)]

    async def main() -> None:
        for job, seconds in zip(jobs, (3, 1, 2, 2, -1), strict=True):
            job.park(agenda, seconds)
        await clock.sleep(5 * SECOND)

    clock.run(main())
    assert [job.went_on for job in jobs] == [[3], [1], [2], [2], [0]]


def test_one_that_went_on_before_is_passed_over() -> None:
    """Also where it rests again by then."""
    clock = FakeClock()
    agenda, roused, again = Agenda(clock), Job(clock), Job(clock)

    async def main() -> None:
        for job in (roused, again):
            job.park(agenda, 2)
        await clock.sleep(SECOND)
        roused.recount()
        again.recount()
        again.park(agenda, 2)
        await clock.sleep(5 * SECOND)

    clock.run(main())
    assert roused.went_on == [1]
    assert again.went_on == [1, 3]


def test_one_that_rests_again_and_again_is_entered_once() -> None:
    """As a job does that is called long before each of its rests would end: the agenda does not grow by that."""
    clock = FakeClock()
    agenda, job = Agenda(clock), Job(clock)

    async def main() -> None:
        for _ in range(100):
            job.park(agenda, 2)
            assert len(agenda._line) == 1
            await clock.sleep(SECOND // 100)
            job.rests_until = None
        job.park(agenda, 2)
        await clock.sleep(5 * SECOND)

    clock.run(main())
    assert job.went_on == [3]
    assert len(agenda._line) == 0


def test_a_shorter_rest_ends_in_its_time() -> None:
    """Also where the job is entered for a later time, and again for that time after it."""
    clock = FakeClock()
    agenda, job = Agenda(clock), Job(clock)

    async def main() -> None:
        job.park(agenda, 4)
        job.park(agenda, 1)
        await clock.sleep(2 * SECOND)
        job.park(agenda, 2)
        await clock.sleep(5 * SECOND)

    clock.run(main())
    assert job.went_on == [1, 4]


def test_one_that_is_set_goes_on_with_the_next() -> None:
    """A job may be entered while others go on, and the agenda be used again once it was empty."""
    clock = FakeClock()
    agenda, first, then = Agenda(clock), Job(clock), Job(clock)

    async def main() -> None:
        first.park(agenda, 1)
        await clock.sleep(2 * SECOND)
        then.park(agenda, 1)
        await clock.sleep(2 * SECOND)

    clock.run(main())
    assert (first.went_on, then.went_on) == ([1], [3])


def test_nothing_goes_on_after_the_end() -> None:
    """Nor is anything kept; an agenda that is used again begins empty."""
    clock = FakeClock()
    agenda, job = Agenda(clock), Job(clock)

    async def main() -> None:
        agenda.end()
        job.park(agenda, 1)
        agenda.end()
        await clock.sleep(2 * SECOND)
        assert job.went_on == []
        job.park(agenda, 1)
        await clock.sleep(2 * SECOND)

    clock.run(main())
    assert job.went_on == [3]


@pytest.mark.parametrize("skew", [10, -3600], ids=["slept", "set back"])
def test_after_a_jump_of_the_clock_the_timer_is_set_anew(skew: int) -> None:
    """Whoever was entered before, and whoever is after, goes on when the clock says so."""
    clock = FakeClock()
    skewed = Skewed(clock)
    agenda, before, after = Agenda(skewed), Job(clock), Job(clock)

    async def main() -> None:
        before.rests_until = skewed.now() + 20 * SECOND
        agenda.enter(before, before.rests_until)
        await clock.sleep(5 * SECOND)
        skewed.skew = skew * SECOND
        agenda.recount()
        after.rests_until = skewed.now() + 2 * SECOND
        agenda.enter(after, after.rests_until)
        await clock.sleep(2 * 3600 * SECOND)

    clock.run(main())
    assert (before.went_on, after.went_on) == ([20 - skew], [7])


def test_one_that_left_is_let_go_of() -> None:
    """Long before its time: what it holds on to is somebody's."""
    clock = FakeClock()
    agenda = Agenda(clock)

    async def main() -> None:
        job = Job(clock)
        job.park(agenda, 20)
        gone = weakref.ref(job)
        agenda.leave(job)
        agenda.leave(job)
        del job
        assert gone() is None
        await clock.sleep(30 * SECOND)

    clock.run(main())
    assert len(agenda._line) == 0
