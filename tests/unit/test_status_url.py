"""Status URLs that answers move: what moves them, how far, and what they cannot do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tarry import Acceptors, Fixed, JobSpec, Limits, Outcome, Request, SpecError, Status
from tarry.core import Answers, Observation, Stop
from tarry.core.answers import StatusUrl
from tarry.core.status_url import home_of
from tarry.words import SECOND, CallKind, Instant, Phase, WaitSource
from tests.unit.scripted import DONE, GET, RUNNING, Answer, Script, broken, http, returned, spec

SUBMIT = Request("POST", "https://api.example.com/jobs")
HERE = "https://api.example.com/jobs/1"


def at(url: str, status: int, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
    """An answer of the request to this URL."""

    def answered(kind: CallKind, now: Instant) -> Observation:
        return replace(http(status, body, headers)(kind, now), url=url)

    return answered


def moving(poll: str = "{poll.body.next}", **fields: Any) -> JobSpec:
    """A job whose polls are led on by the answers."""
    return spec(submit=SUBMIT, poll=Request("GET", poll), strategy=Fixed("10s"), **fields)


def url(script: Script) -> str | None:
    return None if script.answers.status_url is None else script.answers.status_url.url


def test_each_judged_answer_moves_the_url_that_names_it() -> None:
    """Before the first poll it is the submit's."""
    script = Script(moving())
    script.play(at(SUBMIT.url, 202, {"next": "/ops/1"}))
    assert script.answers.values("k", None)["poll"] == script.answers.submit
    script.play(at("https://api.example.com/ops/1", 200, {"state": "RUNNING", "next": "/ops/2?sig=a%2Fb"}))
    found = StatusUrl("https://api.example.com/ops/2?sig=a%2Fb", "https://api.example.com/ops/1", "{poll.body.next}")
    assert script.answers.status_url == found
    assert script.polls_at() == [0]
    script.play(at("https://api.example.com/ops/2", 200, {"state": "RUNNING", "next": "3"}), DONE)
    assert url(script) == "https://api.example.com/ops/3"
    assert script.polls_at() == [0, 10, 20]


@pytest.mark.parametrize("lacking", [{"state": "RUNNING"}, {"state": "RUNNING", "next": None}])
def test_an_answer_without_the_value_keeps_the_last_url_that_worked(lacking: dict[str, Any]) -> None:
    """Also the one that the submit's answer gave."""
    script = Script(moving())
    script.play(at(SUBMIT.url, 202, {"next": "/ops/1"}), at("https://api.example.com/ops/1", 200, lacking))
    assert url(script) == "https://api.example.com/ops/1"
    script.play(at("https://api.example.com/ops/1", 200, {"state": "RUNNING", "next": "/ops/2"}))
    script.play(broken(), http(503), at("https://api.example.com/ops/2", 200, lacking))
    assert url(script) == "https://api.example.com/ops/2"


def test_a_url_that_was_never_known_stays_unknown() -> None:
    """The call then names the value that is missing."""
    script = Script(moving())
    script.play(at(SUBMIT.url, 202, {}), RUNNING)
    assert script.answers.status_url is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("https://evil.example.com/s", "redirect: an answer of https://api.example.com leads to https://evil.example"),
        ("//evil.example.com/s", "leads to https://evil.example.com"),
        ("http://api.example.com/s", "from https to http"),
        ("file:///etc/passwd", "http"),
        (["/ops/2"], "is a list"),
    ],
)
def test_an_answer_that_leads_away_is_a_failed_poll(value: Any, words: str) -> None:
    """PC-068: the URL stays where it was, and the error says why."""
    script = Script(moving())
    script.play(at(SUBMIT.url, 202, {"next": "/ops/1"}))
    script.play(at("https://api.example.com/ops/1", 200, {"state": "RUNNING", "next": value}))
    assert script.state.error is not None
    assert words in script.state.error
    assert (script.state.failed_polls, script.state.found, script.answers.status_url) == (1, 0, None)


def test_success_wins_over_a_url_that_leads_away() -> None:
    """Nobody will call it."""
    script = Script(moving())
    script.play(at(SUBMIT.url, 202, {"next": "/ops/1"}))
    script.play(at("https://api.example.com/ops/1", 200, {"state": "DONE", "next": "https://evil.example.com"}))
    assert script.state.outcome is Outcome.SUCCEEDED


def test_an_allowed_host_may_be_led_to_and_leads_on_within_itself() -> None:
    """Each URL keeps to the origin of the request that found it."""
    script = Script(moving(allowed_hosts=["files.example.com"]))
    script.play(at(SUBMIT.url, 202, {"next": "/ops/1"}))
    script.play(
        at("https://api.example.com/ops/1", 200, {"state": "RUNNING", "next": "https://files.example.com/a"}),
        at("https://files.example.com/a", 200, {"state": "RUNNING", "next": "b"}),
    )
    assert script.answers.status_url is not None
    assert script.answers.status_url.found_at == "https://files.example.com/a"
    script.play(at("https://files.example.com/b", 200, {"state": "RUNNING", "next": "https://api.example.com/c"}))
    assert "put api.example.com into allowed_hosts" in str(script.state.error)


def test_a_path_that_an_answer_fills_in_needs_no_permission() -> None:
    """The origin is written in the spec."""
    script = Script(moving("https://api.example.com/steps/{poll.body.step}"))
    script.play(at(SUBMIT.url, 202, {"step": 1}), at(HERE, 200, {"state": "RUNNING", "step": 2}))
    assert script.answers.status_url == StatusUrl(
        "https://api.example.com/steps/2", None, "https://api.example.com/steps/{poll.body.step}"
    )


def test_the_answer_is_kept_whole_where_a_placeholder_names_it() -> None:
    """A cursor in a parameter, for one; a failed poll does not replace it."""
    poll = Request("GET", HERE, params={"cursor": "{poll.body.cursor}"})
    script = Script(spec(submit=SUBMIT, poll=poll))
    script.play(http(202, {"cursor": "a"}), http(200, {"state": "RUNNING", "cursor": "b"}), http(500, {"cursor": "c"}))
    assert script.answers.poll is not None
    assert script.answers.poll["body"] == {"state": "RUNNING", "cursor": "b"}
    assert script.answers.status_url is None
    script = Script(spec())
    script.play(RUNNING)
    assert script.answers.poll is None


# The verdict redirect.

TWO_STAGES = Acceptors(
    [
        ("body.executable.url", "redirect"),
        ("body.result == 'SUCCESS'", "succeeded"),
        ("body.result", "failed"),
    ]
)


def redirecting(template: str = "{poll.body.executable.url}", **fields: Any) -> JobSpec:
    return spec(until=TWO_STAGES, redirect=template, strategy=Fixed("10s"), **fields)


def test_the_verdict_redirect_moves_on_as_soon_as_the_floor_allows() -> None:
    """The service has answered: no backoff, no strategy."""
    script = Script(redirecting())
    script.play(http(200, {}), http(200, {"executable": {"url": "https://api.example.com/builds/7"}}))
    assert url(script) == "https://api.example.com/builds/7"
    assert (script.state.hops, script.state.found, script.state.phase) == (1, 1, Phase.WAITING)
    script.play(http(200, {"result": "SUCCESS"}))
    assert script.state.outcome is Outcome.SUCCEEDED
    assert script.polls_at() == [0, 10, 11]
    assert script.state.wait_source is WaitSource.AT_ONCE


def test_a_hint_beside_a_redirect_is_a_lower_bound() -> None:
    """RFC 9110: the time to wait before the redirected request."""
    script = Script(redirecting())
    script.play(http(200, {"executable": {"url": "/builds/7"}}, {"retry-after": "5"}), http(200, {"result": "SUCCESS"}))
    assert script.polls_at() == [0, 5]


def test_a_redirect_without_the_value_is_a_failed_poll() -> None:
    """The error names the placeholder."""
    script = Script(redirecting("{poll.headers.location}"))
    script.play(http(200, {"executable": {"url": "/builds/7"}}))
    assert script.state.error == "redirect: {poll.headers.location} has no value"


def test_a_redirect_verdict_without_a_template_is_invalid() -> None:
    """There is nowhere to go."""
    script = Script(spec(until=TWO_STAGES))
    script.play(http(200, {"executable": {"url": "/builds/7"}}))
    assert script.state.outcome is Outcome.INVALID


def test_a_redirect_may_lead_where_the_spec_says() -> None:
    """By a path that an answer fills in."""
    script = Script(redirecting("https://builds.example.com/{poll.body.executable.url}"))
    script.play(http(200, {"executable": {"url": "7"}}))
    assert script.answers.status_url == StatusUrl("https://builds.example.com/7", None, GET.url)


@pytest.mark.parametrize("status", [307, 308])
def test_a_307_moves_the_status_url(status: int) -> None:
    """PC-072: within the origin, and stored; the next polls go there, and there only."""
    script = Script(spec(strategy=Fixed("10s")))
    script.play(http(status, None, {"location": "/moved/1"}))
    assert url(script) == "https://api.example.com/moved/1"
    script.play(RUNNING)
    assert url(script) == "https://api.example.com/moved/1"
    assert (script.state.hops, script.state.streak.length) == (0, 0)
    script.play(DONE)
    assert script.polls_at() == [0, 1, 11]


@pytest.mark.parametrize("location", ["https://evil.example.com/x", "http://api.example.com/x", None])
def test_a_307_that_leads_away_or_nowhere_is_a_failed_poll(location: str | None) -> None:
    """The origin holds for redirects, too."""
    script = Script(spec())
    script.play(http(307, None, {} if location is None else {"location": location}))
    assert script.answers.status_url is None
    assert str(script.state.error).startswith("redirect: ")


@pytest.mark.parametrize("status", [301, 302, 303])
def test_other_redirects_move_nothing(status: int) -> None:
    """They are failed polls, unless the condition judges them."""
    script = Script(spec())
    script.play(http(status, None, {"location": "/moved/1"}))
    assert script.answers.status_url is None
    assert script.state.failed_polls == 1


def test_a_307_that_the_condition_judges_is_its_own() -> None:
    """The verdict counts, and nothing moves."""
    script = Script(spec(until=Status(succeeded=307, pending=200)))
    script.play(http(307, None, {"location": "/moved/1"}))
    assert script.state.outcome is Outcome.SUCCEEDED


def test_a_303_that_the_condition_calls_redirect_moves() -> None:
    """PC-072: with the target that the spec names."""
    until = Acceptors([("status == `303`", "redirect"), ("body.state == 'DONE'", "succeeded")])
    script = Script(spec(until=until, redirect="{poll.headers.location}"))
    script.play(http(303, None, {"location": "/result/1"}))
    assert url(script) == "https://api.example.com/result/1"
    script.play(http(307, None, {"location": "/result/2"}))
    assert url(script) == "https://api.example.com/result/2"
    script.play(DONE)
    assert script.state.outcome is Outcome.SUCCEEDED


def test_a_chain_of_moves_ends() -> None:
    """PC-072: ten moves in a row, each with its own poll; an eleventh is an error."""
    script = Script(spec())
    script.play(http(307, None, {"location": "/a"}), forever=True)
    assert script.state.outcome is Outcome.INVALID
    assert script.state.reason == "the status URL moved more than 10 times in a row"
    assert script.state.polls == 11
    script = Script(spec())
    script.play(*[http(307, None, {"location": "/a"})] * 10, RUNNING, *[http(307, None, {"location": "/a"})] * 10)
    assert script.state.outcome is None


def test_a_failed_poll_does_not_end_a_chain() -> None:
    """A loop with an outage inside is a loop."""
    script = Script(spec())
    script.play(*[http(307, None, {"location": "/a"}), http(503)] * 10, http(307, None, {"location": "/a"}))
    assert script.state.outcome is Outcome.INVALID


def test_moves_spend_max_polls() -> None:
    """Every hop is a poll."""
    script = Script(spec(limits=Limits(max_polls=3)))
    script.play(http(307, None, {"location": "/a"}), forever=True)
    assert (script.state.outcome, script.state.polls) == (Outcome.EXHAUSTED, 3)


def test_a_blocked_job_that_moves_stays_blocked() -> None:
    """The move says nothing of the job."""
    script = Script(spec())
    script.play(http(200, {"state": "HELD"}), http(308, None, {"location": "/a"}))
    assert script.state.phase is Phase.BLOCKED


def test_a_callable_answers_307_for_itself() -> None:
    """It has no URL to move; its answer has no status either."""
    script = Script(spec(poll=lambda: None))
    script.play(returned({"state": "DONE"}))
    assert script.decision == Stop(Outcome.SUCCEEDED)
    script = Script(spec(poll=lambda: None))
    script.play(http(307, None, {"location": "/a"}))
    assert script.state.failed_polls == 1


# Specs.


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"redirect": "/moved"}, "redirect: must start with http"),
        ({"redirect": "{poll.headers.location}?key={secret.KEY}"}, "redirect: names a secret"),
        ({"redirect": "{submit.headers.location}"}, "redirect: {submit…} needs a submit"),
        ({"redirect": "{poll.headers.location}", "poll": print}, "redirect: a callable or a batch has no status URL"),
        ({"poll": Request("GET", "{poll.body.next}")}, "poll: {poll…} needs a submit"),
        (
            {"submit": SUBMIT, "poll": Request("GET", "{poll.body.next}?key={secret.KEY}")},
            "poll: its URL changes and is stored",
        ),
    ],
    ids=["relative", "secret", "no_submit", "callable", "no_answer", "secret_in_url"],
)
def test_a_target_that_can_never_work_is_refused(fields: dict[str, Any], words: str) -> None:
    """When the spec is written."""
    with pytest.raises(SpecError) as refused:
        spec(**fields)
    assert words in str(refused.value).replace("JobSpec.", "")


# Where secrets are at home.


def answered(where: str) -> dict[str, Any]:
    return {"status": 200, "headers": {}, "body": None, "url": where}


@pytest.mark.parametrize(
    ("poll", "asked", "home"),
    [
        (HERE, HERE, HERE),
        ("https://api.example.com/{key}", "{poll.body.url}", "https://api.example.com/1"),
        ("{submit.headers.location}", "{submit.headers.location}", "https://submit.example.com/jobs"),
        ("{poll.body.next}", "{poll.body.next}", "https://submit.example.com/jobs"),
        ("{poll.body.next}", "{poll.body.url}", "https://submit.example.com/jobs"),
        ("{poll.body.next}", "{baseline.body.url}", "https://baseline.example.com/"),
    ],
    ids=["written", "led_by_a_written_poll", "led_by_the_submit", "led_by_itself", "led_by_a_led_poll", "led_by_it"],
)
def test_secrets_are_at_home_where_the_spec_wrote_the_origin(poll: str, asked: str, home: str) -> None:
    """However far the answers lead: the last poll's own origin may be an allowed host, and is no home."""
    job = spec(
        submit=SUBMIT,
        baseline=Request("GET", "https://baseline.example.com/"),
        poll=Request("GET", poll),
        strategy=Fixed(1),
    )
    answers = Answers(
        submit=answered("https://submit.example.com/jobs"),
        baseline=answered("https://baseline.example.com/"),
        poll=answered("https://files.example.com/x"),
    )
    request = job.poll if asked == poll else Request("GET", asked)
    assert isinstance(request, Request)
    assert home_of(job, request, answers) == home


def test_a_poll_by_a_callable_leads_from_the_submit() -> None:
    """It has no URL of its own."""
    job = spec(submit=SUBMIT, poll=lambda: None)
    answers = Answers(submit=answered("https://submit.example.com/jobs"))
    assert home_of(job, Request("GET", "{poll.body.url}"), answers) == "https://submit.example.com/jobs"


def test_hops_cost_no_more_than_the_floor() -> None:
    """Ten of them at a floor of one second take ten seconds."""
    script = Script(spec())
    script.play(*[http(307, None, {"location": "/a"})] * 10, DONE)
    assert script.now == 10 * SECOND
