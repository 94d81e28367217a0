"""Around the submit: the baseline before it, the answer that ends the job, the probe after a lost answer."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import Acceptors, Batch, Errors, Expression, Fixed, Hints, Limits, Match, Outcome, Request, SpecError
from tarry.core import Call, CallError, Stop, sending
from tarry.core.observation import Observation
from tarry.core.spec import JobSpec
from tarry.words import SECOND, CallKind, ErrorKind, Instant, Phase
from tests.unit.scripted import DONE, FAILED, GET, POST, RUNNING, Answer, Script, broken, http, returned, spec, state

ACCEPTED = http(202, {"jobId": "j1"})
BASELINE = Request("GET", "https://api.example.com/connections/1")
PROBE = Request("GET", "https://api.example.com/jobs", params={"name": "{key}"})
POLL = Request("GET", "https://api.example.com/jobs/{submit.body.jobId}")
IDEMPOTENT = Request("POST", "https://api.example.com/jobs", idempotent=True)
LOST = broken(ErrorKind.TIMEOUT)


def kinds(script: Script) -> list[str]:
    """The calls made, in order."""
    return [kind.value for kind, _, _ in script.calls]


def at(script: Script, kind: CallKind) -> list[float]:
    """When calls of this kind were made, in seconds."""
    return [at / SECOND for call, at, _ in script.calls if call is kind]


# The baseline.


def based(**fields: Any) -> JobSpec:
    """A job that has run when its counter is higher than before."""
    until = Acceptors([("body.count > baseline.body.count", "succeeded"), ("`true`", "pending")])
    return spec(**{"submit": POST, "baseline": BASELINE, "until": until, "strategy": Fixed("10s"), **fields})


def count(value: int) -> Answer:
    return http(200, {"count": value})


def test_the_baseline_is_taken_before_the_submit() -> None:
    """And the condition compares with it."""
    script = Script(based())
    assert script.state.phase is Phase.PREPARING
    assert script.decision == Call(CallKind.BASELINE, 30 * SECOND)
    script.play(count(3), ACCEPTED, count(3), count(4))
    assert kinds(script) == ["baseline", "submit", "poll", "poll"]
    assert script.state.outcome is Outcome.SUCCEEDED
    assert script.answers.baseline is not None
    assert script.answers.baseline["body"] == {"count": 3}
    assert script.state.polls == 2


def test_without_a_baseline_the_first_judged_answer_is_one() -> None:
    """Also to itself; a failed poll is none."""
    script = Script(based(baseline=None))
    script.play(ACCEPTED, http(503, {"count": 0}), count(3), count(3))
    assert script.state.outcome is None
    assert script.answers.baseline is not None
    assert script.answers.baseline["body"] == {"count": 3}
    script.play(count(4))
    assert script.state.outcome is Outcome.SUCCEEDED


def test_a_baseline_that_nothing_reads_is_not_kept() -> None:
    """A row holds no more than what is needed."""
    script = Script(spec())
    script.play(RUNNING)
    assert script.answers.baseline is None


@pytest.mark.parametrize("fields", [{"result": "baseline.body"}, {"until": lambda _: None}])
def test_whatever_may_read_the_baseline_has_it(fields: dict[str, Any]) -> None:
    """An expression that names it, and a callable, which may."""
    assert spec(**fields).reads_baseline


@pytest.mark.parametrize(
    "failure", [broken(), LOST, http(503), http(429), http(408), broken(ErrorKind.CALLABLE)], ids=range(6)
)
def test_a_baseline_that_fails_is_asked_for_again(failure: Answer) -> None:
    """It only looks, so nothing is lost by that."""
    script = Script(based())
    script.play(failure, failure, count(3), ACCEPTED, count(4))
    assert at(script, CallKind.BASELINE) == [0, 5, 15]
    assert script.state.outcome is Outcome.SUCCEEDED
    assert script.state.submit_tries == 1


def test_a_refused_baseline_fails_the_job_before_anything_is_submitted() -> None:
    """The reason says so."""
    script = Script(based())
    script.play(http(404, {"error": "no such connection"}))
    assert kinds(script) == ["baseline"]
    assert script.state.outcome is Outcome.FAILED
    assert script.state.reason == 'baseline refused: HTTP 404: {"error":"no such connection"}'
    assert script.answers.baseline is None


def test_an_accepted_status_is_a_baseline() -> None:
    """A thing that is not there yet, for one."""
    baseline = Request("GET", BASELINE.url, accepted=[404])
    script = Script(based(baseline=baseline))
    script.play(http(404, {"count": 0}), ACCEPTED)
    assert script.state.phase is Phase.WAITING


def test_a_baseline_by_a_callable() -> None:
    """Its return value is the body."""
    script = Script(based(baseline=lambda: None))
    script.play(returned({"count": 3}), ACCEPTED, count(4))
    assert script.state.outcome is Outcome.SUCCEEDED


def test_the_deadline_ends_the_preparing() -> None:
    """Nothing was submitted, so the job has timed out."""
    script = Script(based(limits=Limits(total_duration="30s")))
    script.play(broken(), forever=True)
    assert script.state.outcome is Outcome.TIMED_OUT
    assert script.state.submit_tries == 0


def test_a_restart_takes_the_baseline_again() -> None:
    """Nothing had been committed."""
    script = Script(based())
    assert script.restart(5) == Call(CallKind.BASELINE, 30 * SECOND)


# A submit whose answer ends the job.

AT_ONCE = Match("body.state", succeeded="DONE", failed="FAILED", pending="QUEUED", blocked="HELD")


def ending(**fields: Any) -> JobSpec:
    return spec(**{"submit": POST, "submitted": AT_ONCE, "reason": "body.error", **fields})


def test_a_terminal_verdict_on_the_submits_answer_ends_the_job_unpolled() -> None:
    """Success, or failure with its words."""
    script = Script(ending(progress="body.progress"))
    script.play(http(200, {"state": "DONE", "progress": 100}))
    assert (script.decision, script.state.polls) == (Stop(Outcome.SUCCEEDED), 0)
    assert (script.state.status, script.state.progress) == ("DONE", 1.0)
    assert script.state.submitted_at is not None
    script = Script(ending())
    script.play(http(200, {"state": "FAILED", "error": "disk full"}))
    assert (script.decision, script.state.reason) == (Stop(Outcome.FAILED), "disk full")


@pytest.mark.parametrize("body", [{"state": "QUEUED"}, {"state": "HELD"}, {"state": "odd"}, {}, None])
def test_any_other_verdict_goes_on(body: Any) -> None:
    """Nothing of it is remembered as a poll's."""
    script = Script(ending())
    script.play(http(202, body))
    assert script.state.phase is Phase.WAITING
    assert (script.state.verdict, script.state.status, script.state.seen) == (None, None, ())


@pytest.mark.parametrize("word", ["redirect", "not_found", "transient", "unknown"])
def test_a_verdict_that_only_a_poll_can_have_goes_on(word: str) -> None:
    """There was no poll."""
    script = Script(ending(submitted=Acceptors([("`true`", word), ("body", "succeeded")])))
    script.play(ACCEPTED)
    assert script.state.phase is Phase.WAITING


def test_a_condition_that_raises_on_the_submits_answer_goes_on() -> None:
    """The job is there; the polls will tell."""
    script = Script(ending(submitted=Expression("sum(body.state) > `1`")))
    script.play(http(200, {"state": "DONE"}))
    assert script.state.phase is Phase.WAITING


def test_an_answer_that_is_no_verdict_is_invalid() -> None:
    """As for a poll."""
    script = Script(ending(submitted=lambda _: "nonsense"))
    script.play(ACCEPTED)
    assert script.state.outcome is Outcome.INVALID


def test_the_condition_sees_the_answer_as_the_submits_too() -> None:
    """In both places."""
    script = Script(ending(submitted=Acceptors([("submit.body.state == body.state", "succeeded")])))
    assert script.play(http(200, {"state": "DONE"})).outcome is Outcome.SUCCEEDED


# The probe.


def probing(**fields: Any) -> JobSpec:
    return spec(**{"submit": POST, "poll": POLL, "probe": PROBE, "strategy": Fixed("10s"), **fields})


def test_a_lost_answer_is_probed_for() -> None:
    """PC-048 b: what the probe finds stands in for the submit's answer."""
    script = Script(probing())
    script.play(LOST)
    assert (script.state.phase, script.state.lost_at) == (Phase.PROBING, 0)
    script.play(http(200, {"jobId": "j7"}), RUNNING, DONE)
    assert kinds(script) == ["submit", "probe", "poll", "poll"]
    assert script.answers.submit is not None
    assert script.answers.submit["body"] == {"jobId": "j7"}
    assert (script.state.outcome, script.state.submit_tries, script.state.lost_at) == (Outcome.SUCCEEDED, 1, None)


@pytest.mark.parametrize("answer", [http(408), http(500), http(502), broken(ErrorKind.PROTOCOL)], ids=range(4))
def test_each_lost_answer_is_probed_for(answer: Answer) -> None:
    """The first probe is a floor after the submit at the earliest."""
    script = Script(probing())
    script.play(answer, http(200, {"jobId": "j7"}))
    assert at(script, CallKind.PROBE) == [1]
    assert script.state.phase is Phase.WAITING


def cut_off(status: int = 201, headers: dict[str, str] | None = None) -> Answer:
    """The head of an answer, whose body never came as a whole."""

    def answered(call: CallKind, now: Instant) -> Observation:
        return Observation(call, now, now, status, headers or {}, error=CallError(ErrorKind.PROTOCOL, "it broke off"))

    return answered


@pytest.mark.parametrize(
    ("fields", "calls"),
    [
        ({"probe": PROBE}, ["submit", "probe", "poll"]),
        ({"submit": IDEMPOTENT}, ["submit", "submit", "poll"]),
        ({}, ["submit"]),
    ],
    ids=["probe", "idempotent", "neither"],
)
def test_an_accepted_submit_that_does_not_say_which_job_is_lost(fields: dict[str, Any], calls: list[str]) -> None:
    """Its status came and its body broke off: the job is there, and nobody knows where to look for it."""
    script = Script(spec(**{"submit": POST, "poll": POLL, "strategy": Fixed("10s"), **fields}))
    script.play(cut_off(), *[http(200, {"jobId": "j7"}), DONE][: len(calls) - 1])
    assert kinds(script) == calls
    assert script.state.outcome is (Outcome.SUCCEEDED if fields else Outcome.SUBMIT_UNKNOWN)


def test_an_accepted_submit_that_broke_off_after_what_counts_is_accepted() -> None:
    """The poll takes only a header of it, or nothing."""
    poll = Request("GET", "https://api.example.com/jobs/{submit.headers.x-job}")
    for fields, headers in (({"poll": poll}, {"x-job": "j7"}), ({"poll": GET}, {})):
        script = Script(spec(**{"submit": POST, "strategy": Fixed("10s"), **fields}))
        script.play(cut_off(202, headers), DONE)
        assert kinds(script) == ["submit", "poll"]
        assert script.state.outcome is Outcome.SUCCEEDED


def test_a_503_says_when_to_probe() -> None:
    """Its hint is a lower bound."""
    script = Script(probing())
    script.play(http(503, None, {"retry-after": "20"}), http(200, {"jobId": "j7"}))
    assert at(script, CallKind.PROBE) == [20]


def test_a_submit_found_half_sent_is_probed_for() -> None:
    """A restart finds the intent, and no answer."""
    script = Script(probing())
    script.state = sending(script.state, CallKind.SUBMIT, 0)
    assert script.restart(7 * SECOND) == Call(CallKind.PROBE, 30 * SECOND)
    script.play(http(200, {"jobId": "j7"}))
    assert kinds(script) == ["probe"]
    assert script.state.phase is Phase.WAITING


@pytest.mark.parametrize(
    "missing", [http(404), http(410), http(200, {}), http(200, {"jobId": None}), http(200, [])], ids=range(5)
)
def test_a_job_that_is_not_found_may_still_come(missing: Answer) -> None:
    """For `errors.not_found_grace`; then the submit is unknown, and never sent again."""
    script = Script(probing())
    script.play(LOST, missing, forever=False)
    script.play(missing, forever=True)
    assert at(script, CallKind.PROBE) == [1, 6, 16, 36]
    assert script.state.outcome is Outcome.SUBMIT_UNKNOWN
    assert script.state.reason == "the answer to the submit was lost, and the probe finds no job"
    assert script.state.submit_tries == 1


def test_a_job_that_appears_within_the_grace_is_found() -> None:
    """A list may lag behind."""
    script = Script(probing())
    script.play(LOST, http(404), http(200, {}), http(200, {"jobId": "j7"}), DONE)
    assert script.state.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("failure", [broken(), http(503), http(429), http(401), http(400)], ids=range(5))
def test_a_probe_that_fails_is_made_again(failure: Answer) -> None:
    """The service is down: the same budget as for polls, and a failure is no "not found"."""
    script = Script(probing(errors=Errors(max_consecutive=4, min_outage="1m", not_found_grace="1s")))
    script.play(LOST, failure, failure, failure, http(200, {"jobId": "j7"}), DONE)
    assert script.state.outcome is Outcome.SUCCEEDED
    script = Script(probing(errors=Errors(max_consecutive=4, min_outage="1m", not_found_grace="1s")))
    script.play(LOST)
    script.play(failure, forever=True)
    assert at(script, CallKind.PROBE) == [1, 6, 16, 36, 76]
    assert script.state.outcome is Outcome.SUBMIT_UNKNOWN
    assert "and so is the probe's: probe:" in str(script.state.reason)


def test_the_deadline_leaves_the_submit_unknown() -> None:
    """It may have arrived, so nobody says that it timed out."""
    script = Script(probing(limits=Limits(total_duration="40s")))
    script.play(LOST)
    script.play(broken(), forever=True)
    assert script.state.outcome is Outcome.SUBMIT_UNKNOWN
    assert "the deadline came before" in str(script.state.reason)


def test_downtime_past_the_deadline_leaves_one_probe_and_one_poll() -> None:
    """The job may be there, and done."""
    script = Script(probing(limits=Limits(total_duration="40s")))
    script.state = sending(script.state, CallKind.SUBMIT, 0)
    assert script.restart(90 * SECOND) == Call(CallKind.PROBE, 30 * SECOND)
    script.play(http(200, {"jobId": "j7"}), DONE)
    assert script.state.outcome is Outcome.SUCCEEDED
    script = Script(probing(limits=Limits(total_duration="40s")))
    script.state = sending(script.state, CallKind.SUBMIT, 0)
    script.restart(90 * SECOND)
    script.play(broken())
    assert script.state.outcome is Outcome.SUBMIT_UNKNOWN


def test_a_probe_put_off_past_the_deadline_is_over() -> None:
    """A restart makes no other one."""
    script = Script(probing(limits=Limits(total_duration="40s")))
    script.play(LOST, broken())
    assert script.restart(90 * SECOND) == Stop(Outcome.SUBMIT_UNKNOWN)


def test_a_submit_cut_by_the_deadline_is_probed_for_once() -> None:
    """The answer came too late, the job may not have."""
    script = Script(probing(limits=Limits(total_duration="10s")))
    script.play(broken(ErrorKind.TIMEOUT, took=10 * SECOND), http(200, {"jobId": "j7"}), DONE)
    assert kinds(script) == ["submit", "probe", "poll"]
    assert script.state.outcome is Outcome.SUCCEEDED


def test_a_submit_that_may_be_sent_again_is() -> None:
    """The same key cannot make a second job, so there is nothing to look for."""
    script = Script(probing(submit=IDEMPOTENT))
    script.play(LOST, ACCEPTED, DONE)
    assert kinds(script) == ["submit", "submit", "poll"]


def test_a_hint_beyond_the_bound_can_end_the_probing() -> None:
    """on_excess="fail", and the submit stays unknown."""
    script = Script(probing(hints=Hints(maximum="5m", on_excess="fail")))
    script.play(LOST, http(503, None, {"retry-after": "3600"}))
    assert script.state.outcome is Outcome.SUBMIT_UNKNOWN


def test_what_the_probe_finds_may_be_over() -> None:
    """`submitted` judges it as it would the submit's answer."""
    script = Script(probing(submitted=AT_ONCE))
    script.play(LOST, http(200, {"jobId": "j7", "state": "DONE"}))
    assert (script.state.outcome, script.state.polls) == (Outcome.SUCCEEDED, 0)


def test_a_probe_by_a_callable_finds_or_returns_none() -> None:
    """None is "not found"."""
    script = Script(probing(probe=lambda: None))
    script.play(LOST, returned(None), returned({"jobId": "j7"}), DONE)
    assert script.state.outcome is Outcome.SUCCEEDED


def test_an_accepted_probe_is_enough_where_the_poll_names_nothing() -> None:
    """The job is polled by its key."""
    script = Script(probing(poll=GET))
    script.play(LOST, http(204), FAILED)
    assert script.state.outcome is Outcome.FAILED
    script = Script(probing(poll=lambda: None, args={"job": "{submit.body.jobId}"}))
    script.play(LOST, http(200, {}), http(200, {"jobId": "j7"}), state("DONE"))
    assert script.state.outcome is Outcome.SUCCEEDED


def test_a_probe_finds_the_id_that_a_batch_asks_for() -> None:
    """What the batch names of the submit's answer is its id."""
    many = Request("GET", "https://api.example.com/jobs", params={"ids": "{batch.ids}"})
    script = Script(probing(poll=Batch(many, id="{submit.body.jobId}", items="body.jobs", item_id="id")))
    script.play(LOST, http(200, {}))
    assert script.state.phase is Phase.PROBING
    script.play(http(200, {"jobId": "j7"}))
    assert script.state.phase is Phase.WAITING


@pytest.mark.parametrize("name", ["baseline", "probe", "submitted"])
def test_what_goes_with_a_submit_needs_one(name: str) -> None:
    """Without it there is nothing before or after."""
    given: dict[str, Any] = {name: AT_ONCE if name == "submitted" else BASELINE}
    with pytest.raises(SpecError, match=f"{name}: needs a submit"):
        spec(**given)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"baseline": Request("GET", "{submit.body.url}")}, "baseline: {submit…} is known only after"),
        ({"probe": Request("GET", "{poll.body.url}")}, "probe: {poll…} is known only after"),
        ({"probe": Request("GET", "https://api.example.com/{baseline.body.n}")}, "probe: {baseline…} needs a baseline"),
        ({"poll": Request("GET", "https://api.example.com/{baseline.body.n}")}, "poll: {baseline…} needs a baseline"),
    ],
    ids=["baseline", "probe", "probe_baseline", "poll_baseline"],
)
def test_an_answer_that_is_not_there_yet_cannot_be_named(fields: dict[str, Any], words: str) -> None:
    """When the spec is written."""
    with pytest.raises(SpecError) as refused:
        spec(submit=POST, **fields)
    assert words in str(refused.value)


def test_a_baseline_fills_in_what_comes_after_it() -> None:
    """The submit, the probe, the poll and the target of a redirect."""
    url = "https://api.example.com/{baseline.body.n}"
    made = based(submit=Request("POST", url), probe=Request("GET", url), poll=Request("GET", url), redirect=url)
    assert made.baseline is not None


def test_a_call_of_another_sort_is_an_illegal_move() -> None:
    """What is made after the end is no step of a job's life."""
    script = Script(spec())
    with pytest.raises(RuntimeError, match="cannot make the move fetch"):
        sending(script.state, CallKind.FETCH, 0)


# Denials.


def test_a_denied_poll_is_made_again_at_once_with_fresh_credentials() -> None:
    """PC-069: once per occurrence, as soon as the floor allows; it counts like any poll."""
    script = Script(spec(strategy=Fixed("10s")))
    script.play(RUNNING, http(401))
    assert script.restart(11 * SECOND) == Call(CallKind.POLL, 30 * SECOND, refresh=True)
    script.play(RUNNING, http(403), DONE)
    assert script.polls_at() == [0, 10, 11, 21, 22]
    assert script.state.outcome is Outcome.SUCCEEDED


def test_denials_in_a_row_spend_the_small_budget() -> None:
    """The second one waits, without another refresh."""
    script = Script(spec(strategy=Fixed("10s")))
    script.play(http(401), http(401))
    assert script.restart(script.now + 60 * SECOND) == Call(CallKind.POLL, 30 * SECOND)
    script.play(http(401))
    assert script.state.outcome is Outcome.UNREACHABLE
    assert script.polls_at() == [0, 1, 71]
    script = Script(spec(errors=Errors(max_denied=1)))
    assert script.play(http(401)).outcome is Outcome.UNREACHABLE


def test_a_call_that_never_left_keeps_the_denial() -> None:
    """The refresh itself failed, say: the next call asks for it again."""
    script = Script(spec(strategy=Fixed("10s")))

    def refused(kind: CallKind, now: int) -> Observation:
        return Observation(kind, now, now, error=CallError(ErrorKind.REFUSED, "no secret", sent=False))

    script.play(http(401), refused)
    assert script.state.streak.denied == 1
    assert script.restart(script.now + 60 * SECOND) == Call(CallKind.POLL, 30 * SECOND, refresh=True)
    script.play(http(500))
    assert script.state.streak.denied == 0


def test_a_denial_with_a_hint_waits_for_it() -> None:
    """A 403 that limits traffic."""
    script = Script(spec(strategy=Fixed("10s")))
    script.play(http(403, None, {"retry-after": "45"}), DONE)
    assert script.polls_at() == [0, 45]
