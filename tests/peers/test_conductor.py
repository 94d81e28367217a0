"""What people know from Conductor's HTTP_POLL, as it is here: one poll a minute, true, false, 1, 0 and -1."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import Exponential, Expression, Fixed, Limits, Linear, Match, Outcome, Request, SpecError, WaitTimeout, plan
from tarry.core.policies import Errors
from tarry.testing import Answer
from tarry.words import SECOND, ErrorKind
from tests.worlds import (
    DONE,
    RUNNING,
    MakeScene,
    Scene,
    limits,
    scene_in_memory,  # noqa: F401  # a fixture: what an answer means is no matter of the store
    spec_of,
)

NEVER = Expression("`false`")
MINUTE = Fixed("60s")


def look(world: Scene, second: float, **changes: Any) -> Any:
    """The job as it is at that second, and the wait ended from outside."""

    async def main() -> Any:
        async with world.poller() as poller:
            try:
                await poller.await_job("orders", spec_of(**changes), wait_timeout=second)
            except WaitTimeout:
                return await poller.get("orders")

    return world.run(main)


# The nine behaviours of its end-to-end suite.


@pytest.mark.parametrize("answer", ["`1`", "`true`", "status == `200`"], ids=["1", "true", "the code"])
def test_a_condition_that_is_true_at_once_completes_at_the_first_poll(scene: MakeScene, answer: str) -> None:
    """1, true and a comparison of the HTTP code."""
    world = scene()
    ended = world.ends(spec_of(until=Expression(answer), strategy=MINUTE))
    assert (ended.outcome, world.seconds()) == (Outcome.SUCCEEDED, [0])


@pytest.mark.parametrize(
    ("strategy", "first", "second"),
    [(MINUTE, 60, 60), (Linear("60s"), 60, 120), (Exponential("120s"), 120, 240)],
    ids=["fixed", "linear", "exponential"],
)
def test_the_wait_after_the_first_and_the_second_poll(
    scene: MakeScene, strategy: Any, first: float, second: float
) -> None:
    """60 and 60; 60 and 120; its exponential begins with twice the interval: 120 and 240."""
    world = scene(RUNNING)
    job = look(world, 5, until=NEVER, strategy=strategy)
    assert (job.polls, (job.next_poll_at - job.created_at).total_seconds()) == (1, first)
    job = look(world, first, until=NEVER, strategy=strategy)
    assert (job.polls, (job.next_poll_at - job.created_at).total_seconds()) == (2, first + second)


@pytest.mark.parametrize("answer", ["`0`", "`false`"], ids=["0", "false"])
def test_a_condition_that_is_false_polls_again(scene: MakeScene, answer: str) -> None:
    """0 and false: the count climbs."""
    job = look(scene(), 125, until=Expression(answer), strategy=MINUTE)
    assert (job.polls, job.outcome) == (3, None)


def test_minus_one_is_a_failure_and_stays_one(scene: MakeScene) -> None:
    """It is terminal: nothing retries a job that is dead."""
    world = scene()
    assert world.fails(spec_of(until=Expression("`-1`"))).outcome is Outcome.FAILED
    assert world.fails(spec_of(until=Expression("`-1`"))).outcome is Outcome.FAILED
    assert world.job.polls == 1


def test_a_name_that_is_none_is_refused_before_the_first_poll() -> None:
    """An undefined variable is a mistake of the spec, told with what could be meant."""
    with pytest.raises(SpecError, match="bodi"):
        Expression("bodi.state == 'DONE'")


def test_an_end_from_outside_sticks(scene: MakeScene) -> None:
    """A job that a person ends is not polled again, and stays as it ended."""
    world = scene(RUNNING)

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", spec_of(until=NEVER, strategy=MINUTE), wait_timeout=5)
            await poller.cancel("orders")
            await world.after(300)
            return await poller.await_job("orders", raises=False)

    assert world.run(main).outcome is Outcome.CANCELLED
    assert world.seconds() == [0]


# The list of what its suite never tests, and its issues ask for.


@pytest.mark.parametrize("value", ["yes", "", None, 2, 0.5, [], {}], ids=repr)
def test_any_other_answer_is_loud(scene: MakeScene, value: Any) -> None:
    """A text, null, 2 or a list is no verdict: the job ends at once, and the error says what it was."""
    error = scene({"answer": value}).fails(spec_of(until=Expression("body.answer")))
    assert error.outcome is Outcome.INVALID
    assert error.last is not None


def test_n_polls_are_n_polls(scene: MakeScene) -> None:
    """With two allowed, two are made, the job is exhausted at once, and the last answer is there."""
    world = scene(RUNNING)
    error = world.fails(spec_of(until=NEVER, strategy=Linear("60s"), limits=Limits(max_polls=2)))
    assert (error.outcome, world.seconds(), world.elapsed()) == (Outcome.EXHAUSTED, [0, 60], 60)
    assert error.last is not None
    assert error.last.body == RUNNING


def test_a_time_out_comes_on_time(scene: MakeScene) -> None:
    """50 s are 50 s, also while a call hangs."""
    world = scene(RUNNING, Answer(200, DONE, delay=600 * SECOND))
    assert world.ends(spec_of(strategy=Fixed("40s"), limits=limits("50s"))).outcome is Outcome.TIMED_OUT
    assert world.elapsed() == 50


def test_one_blip_kills_nothing(scene: MakeScene) -> None:
    """A socket timeout, a 500 and a refused connection between good polls."""
    world = scene(RUNNING, ErrorKind.TIMEOUT, RUNNING, 500, RUNNING, ErrorKind.CONNECT, DONE)
    assert world.ends(spec_of(errors=Errors(max_consecutive=2, min_outage=0))).outcome is Outcome.SUCCEEDED


def test_an_error_answer_keeps_its_shape(scene: MakeScene) -> None:
    """Status, headers and body of an error are there as they are of a success."""
    world = scene(Answer(500, {"error": "down"}, {"X-Request-Id": "r1"}))
    last = world.fails(spec_of(limits=Limits(max_polls=1))).last
    assert last is not None
    assert (last.status, last.body, last.headers["x-request-id"]) == (500, {"error": "down"}, "r1")


def test_a_404_can_mean_not_yet(scene: MakeScene) -> None:
    """As an accepted code it is judged like any 2xx; unlike there, accepting codes takes the 2xx nothing away."""
    poll = Request("GET", "https://api.example.com/jobs/1", accepted=[404])
    until = Match("body.state", succeeded="DONE")
    missing = Answer(404, {"state": "NOT_YET"})
    world = scene(*[missing] * 9, DONE)
    assert world.ends(spec_of(poll=poll, until=until)).polls == 10
    assert world.event("unknown_status") == [{"value": "NOT_YET"}]


@pytest.mark.parametrize("body", [12345, 2**60, True, "text", [1, {"a": None}]], ids=repr)
def test_json_comes_through_as_it_is(scene: MakeScene, body: Any) -> None:
    """Numbers stay numbers, of any size, and null members stay."""
    output = scene({"state": "DONE", "value": body}).ends(spec_of(result="body.value")).output
    assert output == body
    assert type(output) is type(body)


@pytest.mark.parametrize("answer", [Answer(204), Answer(202), Answer(299, DONE)], ids=["204", "202", "299"])
def test_any_2xx_is_good(scene: MakeScene, answer: Answer) -> None:
    """An empty body is no failure, and neither is a code without a name."""
    world = scene(answer, DONE)
    world.ends(spec_of())
    assert world.event("poll_failed") == []


def test_a_comparison_with_a_missing_member_is_false(scene: MakeScene) -> None:
    """And no error."""
    assert scene({}, DONE).ends(spec_of(until=Expression("body.state == 'DONE'"))).polls == 2


# The mistakes of its clients, as they would be made here.

MISTAKES = {
    "maxPollCount": {"maxPollCount": 100},
    "pollingInterval": {"pollingInterval": 60},
    "terminalCondition": {"terminalCondition": "`true`"},
    "strategy": {"strategy": "LINEAR_BACKOFF"},
    "max_poll_count": {"limits": {"max_poll_count": 100}},
    "interval": {"strategy": {"type": "fixed", "interval": "20"}},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_misplaced_setting_is_named(name: str) -> None:
    """Nothing is ignored or guessed: another spelling, place or unit is an error that names it."""
    with pytest.raises(SpecError, match=name):
        spec_of(**MISTAKES[name])


def test_a_read_timeout_has_one_spelling() -> None:
    """`readTimeout` is refused with the right name."""
    with pytest.raises(SpecError, match="read_timeout"):
        Request("GET", "https://api.example.com/jobs/1", readTimeout=30)


def test_the_ceiling_is_what_the_plan_says() -> None:
    """60 polls at 60 s are 59 minutes; an exponential wait without a maximum is a warning's worth of years."""
    assert plan(spec_of(strategy=MINUTE, limits=Limits(max_polls=60))).longest == 59 * 60 * SECOND
    endless = plan(spec_of(strategy=Exponential("120s"), limits=Limits(max_polls=60, total_duration=None)))
    assert endless.longest is not None
    assert endless.longest > 10**9 * SECOND


def test_javascript_is_not_run() -> None:
    """A condition in JavaScript is refused when the spec is made: no script engine can be bounded in the process."""
    with pytest.raises(SpecError):
        Expression("(function(){ return $.output.response.body.state === 'DONE'; })();")
