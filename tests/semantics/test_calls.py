"""S8, S14, S20, S27, S30: the calls beside the poll, and a status URL that moves."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import Acceptors, Fixed, Limits, Outcome, Request
from tarry.core.policies import Errors
from tarry.testing import Answer
from tarry.words import HOUR, ErrorKind
from tests.worlds import DONE, RUNNING, STATE, MakeScene, Scene, spec_of

POST = Request("POST", "https://api.example.com/jobs", json={"name": "{key}"})
POLL = Request("GET", "https://api.example.com/jobs/{submit.body.jobId}")
PROBE = Request("GET", "https://api.example.com/jobs/by-name/{key}")


def urls(world: Scene, kind: str = "poll") -> list[str]:
    """Where the calls of a kind went, without the origin."""
    return [seen.url.removeprefix("https://api.example.com") for seen in world.job.requests if seen.kind == kind]


def test_s08_a_redirect_with_a_target_moves_the_status_url(scene: MakeScene) -> None:
    """First a queue item, then the job itself; the floor holds, and each hop is a poll."""
    world = scene()
    answers = [{}, {"executable": "/job/7"}, RUNNING, DONE]
    world.play(answers, submit=[Answer(201, headers={"Location": "/queue/3"})])
    until = Acceptors([("body.executable", "redirect"), ("body.state == 'DONE'", "succeeded"), ("`true`", "pending")])
    poll = Request("GET", "{submit.headers.location}")
    ended = world.ends(spec_of(submit=POST, poll=poll, redirect="{poll.body.executable}", until=until))
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 4)
    assert urls(world) == ["/queue/3", "/queue/3", "/job/7", "/job/7"]


def test_s08_redirects_without_end_are_invalid(scene: MakeScene) -> None:
    """A chain that leads nowhere ends the job after a few hops."""
    until = Acceptors([("body.next", "redirect"), ("body.state == 'DONE'", "succeeded")])
    world = scene({"next": "/jobs/again"})
    assert world.ends(spec_of(until=until, redirect="{poll.body.next}")).outcome is Outcome.INVALID
    assert world.job.polls <= 12


def test_s14_only_polls_count(scene: MakeScene) -> None:
    """Not the baseline, the probe, the submit or the fetch."""
    world = scene()
    scripts = {"submit": [503], "probe": [{"jobId": "j1"}], "baseline": {"state": "OLD"}, "fetch": {"rows": 3}}
    world.play([RUNNING, DONE], **scripts)
    spec = spec_of(submit=POST, probe=PROBE, baseline=PROBE, poll=POLL, fetch=PROBE, limits=Limits(max_polls=2))
    ended = world.ends(spec)
    assert (ended.outcome, ended.output, ended.polls) == (Outcome.SUCCEEDED, {"rows": 3}, 2)


def test_s20_auth_is_refreshed_once_for_each_denial(scene: MakeScene) -> None:
    """The next poll comes as soon as the floor permits, with what the provider gives when asked to refresh."""
    world = scene()
    asked: list[bool] = []

    def token(name: str, *, refresh: bool = False) -> str:
        asked.append(refresh)
        return "fresh-token" if True in asked else "stale-token"

    def answer(request: Any) -> Any:
        return DONE if request.headers and ("Authorization", "Bearer fresh-token") in request.headers else 401

    world.play([answer])
    poll = Request("GET", "https://api.example.com/jobs/1", headers={"Authorization": "Bearer {secret.TOKEN}"})

    async def main() -> Any:
        async with world.poller(secrets=token) as poller:
            return await poller.await_job("orders", spec_of(poll=poll, strategy=Fixed("1m")))

    ended = world.run(main)
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 2)
    assert world.seconds() == [0, 1]
    assert asked == [False, True]


@pytest.mark.parametrize(
    ("probe", "outcome", "polls"),
    [
        ([{"jobId": "j1"}], Outcome.SUCCEEDED, 1),
        ([404, 404, {"jobId": "j1"}], Outcome.SUCCEEDED, 1),
        ([404], Outcome.SUBMIT_UNKNOWN, 0),
        ([{"other": 1}], Outcome.SUBMIT_UNKNOWN, 0),
    ],
    ids=["found", "found later", "not found", "not what is needed"],
)
def test_s27_a_probe_finds_the_job_after_a_lost_answer(
    scene: MakeScene, probe: list[Any], outcome: Outcome, polls: int
) -> None:
    """Its answer stands in for the submit's; where it finds nothing, a person decides. There is one submit."""
    world = scene()
    world.play([DONE], submit=[ErrorKind.TIMEOUT], probe=probe)
    assert world.ends(spec_of(submit=POST, probe=PROBE, poll=POLL)).outcome is outcome
    assert (world.job.submits, world.job.polls) == (1, polls)


def test_s27_a_submit_that_may_be_sent_again_needs_no_probe(scene: MakeScene) -> None:
    """The idempotency key is the better proof."""
    world = scene()
    world.play([DONE], submit=[500, Answer(202, {"jobId": "j1"})], probe=[404])
    post = Request("POST", "https://api.example.com/jobs", idempotent=True)
    assert world.ends(spec_of(submit=post, probe=PROBE, poll=POLL)).outcome is Outcome.SUCCEEDED
    assert urls(world, "probe") == []


def test_s08_conditions_see_how_it_was_before(durable: MakeScene) -> None:
    """The baseline is made and committed before the submit, once, also over a kill."""
    world = durable()
    world.play(
        [{"version": 7}, {"version": 8}],
        submit=[Answer(202, {"jobId": "j1"}, delay=HOUR), Answer(202, {"jobId": "j1"})],
        baseline=[{"version": 7}],
    )
    post = Request("POST", "https://api.example.com/jobs", idempotent=True)
    until = Acceptors([("body.version != baseline.body.version", "succeeded")])
    spec = spec_of(submit=post, baseline=PROBE, poll=POLL, until=until)

    async def main() -> Any:
        await world.process().killed_at(1, "orders", spec)
        return await (await world.process().awaiting("orders"))

    ended = world.run(main)
    assert (ended.outcome, ended.polls, len(urls(world, "baseline"))) == (Outcome.SUCCEEDED, 2, 1)


def test_s30_a_moved_url_is_kept_where_the_next_answer_has_none(scene: MakeScene) -> None:
    """And it keeps to the origin of the answer that it was found in."""
    moved = Answer(200, RUNNING, {"Location": "/jobs/b"})
    gone = Answer(200, RUNNING, {"Location": "https://evil.example.net/x"})
    world = scene()
    world.play([moved, RUNNING, 500, gone, DONE], submit=[Answer(202, {}, {"Location": "/jobs/a"})])
    poll = Request("GET", "{poll.headers.location}")
    ended = world.ends(spec_of(submit=POST, poll=poll, errors=Errors(max_consecutive=9)))
    assert {seen.url.split("/")[2] for seen in world.job.requests} == {"api.example.com"}
    assert urls(world)[:4] == ["/jobs/a", "/jobs/b", "/jobs/b", "/jobs/b"]
    assert ended.outcome is not Outcome.SUCCEEDED or urls(world)[4:] == ["/jobs/b"]


def test_s30_a_307_within_the_origin_moves_the_status_url(scene: MakeScene) -> None:
    """And is stored; to another origin it is a failed poll."""
    world = scene(Answer(307, headers={"Location": "/jobs/b"}), RUNNING, DONE)
    assert world.ends(spec_of()).outcome is Outcome.SUCCEEDED
    assert urls(world)[1:] == ["/jobs/b", "/jobs/b"]
    world = scene(Answer(308, headers={"Location": "https://evil.example.net/b"}), DONE)
    assert world.ends(spec_of()).outcome is Outcome.SUCCEEDED
    assert set(urls(world)) == {"/jobs/orders"}


def test_s08_the_answer_to_the_submit_may_be_the_end(scene: MakeScene) -> None:
    """With a condition on it, a terminal verdict ends the job unpolled; any other goes on to poll."""
    for answer, polls in ((DONE, 0), ({"state": "QUEUED", "jobId": "j1"}, 1)):
        world = scene()
        world.play([DONE], submit=[Answer(202, answer)])
        ended = world.ends(spec_of(submit=POST, poll=POLL, submitted=STATE))
        assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, polls)
        assert ended.last.body == DONE
