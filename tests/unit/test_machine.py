from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tarry import (
    Acceptors,
    Errors,
    Exponential,
    Expression,
    Fixed,
    Hints,
    Limits,
    Match,
    Outcome,
    Request,
    Status,
    Verdict,
)
from tarry.core import Call, IllegalMove, Stop, Wait, cancelled, resume, sending, start, step
from tarry.core.state import Streak
from tarry.words import MINUTE, SECOND, CallKind, ErrorKind, Phase, WaitSource
from tests.unit.scripted import DONE, FAILED, GET, POST, RUNNING, Script, broken, http, returned, spec, state

FAST = {"strategy": Fixed("10s"), "limits": Limits(max_polls=50, total_duration="1h")}
IDEMPOTENT = Request("POST", "https://api.example.com/jobs", idempotent=True)
PUT = Request("PUT", "https://api.example.com/jobs/1")


def outcome(script: Script) -> Outcome | None:
    return script.state.outcome


# The life of a job without a submit.


def test_the_first_poll_is_at_once() -> None:
    """Nothing is waited for, and the whole timeout is there."""
    made, decision = start(spec(), "orders", 5)
    assert decision == Call(CallKind.POLL, 30 * SECOND)
    assert (made.phase, made.created_at, made.deadline) == (Phase.WAITING, 5, 5 + 24 * 3600 * SECOND)


def test_a_job_that_is_done_at_its_first_poll_is_done() -> None:
    """One poll, no wait."""
    script = Script(spec(**FAST))
    assert script.play(DONE).outcome is Outcome.SUCCEEDED
    assert script.decision == Stop(Outcome.SUCCEEDED)
    assert (script.state.polls, script.state.due, script.state.finished_at) == (1, None, 0)


def test_it_is_polled_until_it_is_done() -> None:
    """Pending answers are no errors; the status is kept."""
    script = Script(spec(**FAST))
    script.play(RUNNING, state(None), http(200, {}), DONE)
    assert script.polls_at() == [0, 10, 20, 30]
    assert (script.state.failed_polls, script.state.status) == (0, "DONE")


def test_a_failure_before_the_first_look_is_a_failure() -> None:
    """PC-009: the first answer is judged like any other."""
    script = Script(spec(until=Match("body.result_state", succeeded="SUCCESS", failed="FAILED")))
    script.play(http(200, {"life_cycle_state": "TERMINATED", "result_state": "FAILED"}))
    assert (outcome(script), script.state.polls) == (Outcome.FAILED, 1)


@pytest.mark.parametrize(
    ("verdict", "ended"),
    [(v, Outcome(v)) for v in ("succeeded", "partial", "skipped", "failed", "cancelled", "expired")],
)
def test_each_terminal_verdict_has_its_outcome(verdict: str, ended: Outcome) -> None:
    """And the outcome keeps the verdict's word."""
    script = Script(spec(until=Acceptors([("body.x", verdict), ("body.ok", "succeeded")])))
    script.play(http(200, {"x": 1}))
    assert outcome(script) is ended


def test_blocked_is_a_phase_of_its_own() -> None:
    """It is not terminal, a failed poll does not end it, an unchanged answer neither, a pending one does."""
    script = Script(spec(**FAST))
    phases = [script.play(answer).phase for answer in (state("HELD"), http(500), http(304), RUNNING, DONE)]
    assert phases == [Phase.BLOCKED, Phase.BLOCKED, Phase.BLOCKED, Phase.WAITING, Phase.DONE]


def test_an_unknown_status_waits_and_is_remembered_once() -> None:
    """PC-001: each new value once, so that it can be told once."""
    script = Script(spec(**FAST))
    script.play(state("odd"), state("odd"), state("even"), RUNNING)
    assert script.state.unknown == ("odd", "even")
    assert [(one.value, one.times) for one in script.state.seen] == [("odd", 2), ("even", 1), ("RUNNING", 1)]


def test_an_unknown_status_can_end_the_wait() -> None:
    """PC-001: with unknown="failed" the third poll is the last."""
    until = Match("body.status", succeeded="completed", pending="in_progress", unknown="failed")
    script = Script(spec(until=until, reason="body.incomplete_details.reason", **FAST))
    running = http(200, {"status": "in_progress"})
    script.play(running, running, http(200, {"status": "incomplete", "incomplete_details": {"reason": "max"}}))
    assert (outcome(script), script.state.status, script.state.reason) == (Outcome.FAILED, "incomplete", "max")


def test_many_unknown_values_stay_bounded() -> None:
    """At most 16 are remembered, and at most 8 values are counted."""
    script = Script(spec(strategy=Fixed("1s")))
    script.play(*(state(f"s{n}") for n in range(40)))
    assert (len(script.state.unknown), len(script.state.seen)) == (16, 8)


# Confirming.


def test_equal_verdicts_in_a_row_confirm() -> None:
    """PC-005: the third of a run ends the job, and a restart in between does not break the run."""
    script = Script(spec(until=Expression("body.enabled == `false`"), confirm=3, **FAST))
    on, off = http(200, {"enabled": True}), http(200, {"enabled": False})
    script.play(on, off, on, off, off)
    assert script.state.confirming is not None
    assert script.state.confirming.times == 2
    script.restart(script.now)
    assert script.play(off).outcome is Outcome.SUCCEEDED
    assert script.state.polls == 6


def test_failed_polls_neither_extend_nor_break_the_run() -> None:
    """Two successes with an error and an unchanged answer in between are two in a row."""
    script = Script(spec(confirm=2, **FAST))
    script.play(DONE, http(500), http(304), DONE)
    assert (outcome(script), script.state.polls) == (Outcome.SUCCEEDED, 4)


def test_another_terminal_verdict_starts_the_run_anew() -> None:
    """Failed and succeeded do not confirm each other."""
    script = Script(spec(confirm=2, **FAST))
    assert script.play(DONE, FAILED).outcome is None
    assert script.play(FAILED).outcome is Outcome.FAILED


def test_a_run_cut_short_by_a_limit_is_no_success() -> None:
    """It ends exhausted or timed out."""
    script = Script(spec(confirm=3, limits=Limits(max_polls=2), strategy=Fixed("1s")))
    assert script.play(DONE, DONE).outcome is Outcome.EXHAUSTED
    script = Script(spec(confirm=3, limits=Limits(total_duration="10s"), strategy=Fixed("20s")))
    assert script.play(DONE, DONE).outcome is Outcome.TIMED_OUT


# Limits.


@pytest.mark.parametrize(("most", "ends_at"), [(1, 0), (3, 20)])
def test_exhausted_at_once_after_the_last_poll(most: int, ends_at: int) -> None:
    """PC-038: no sleep follows the last permitted poll."""
    script = Script(spec(strategy=Fixed("10s"), limits=Limits(max_polls=most)))
    script.play(RUNNING, forever=True)
    assert (outcome(script), script.state.polls, script.now) == (Outcome.EXHAUSTED, most, ends_at * SECOND)


def test_success_on_the_last_poll_is_success() -> None:
    """PC-038: success beats exhaustion."""
    script = Script(spec(strategy=Fixed("10s"), limits=Limits(max_polls=3)))
    assert script.play(RUNNING, RUNNING, DONE).outcome is Outcome.SUCCEEDED


def test_a_spent_count_found_on_resume_ends_the_job() -> None:
    """A permit written off after a crash counts: no poll is left, none is made."""
    job = spec(strategy=Fixed("10s"), limits=Limits(max_polls=3))
    made, _ = start(job, "orders", 0)
    ended, decision = resume(job, replace(made, polls=3), SECOND)
    assert (decision, ended.outcome) == (Stop(Outcome.EXHAUSTED), Outcome.EXHAUSTED)


def test_the_deadline_ends_the_wait_after_a_closing_poll() -> None:
    """PC-033: polls at 0, 1, 3, and one brought forward to leave it a tenth of the time."""
    script = Script(spec(strategy=Exponential("1s"), limits=Limits(total_duration="5s")))
    script.play(RUNNING, forever=True)
    assert script.polls_at() == [0, 1, 3, 4.5]
    assert (outcome(script), script.now) == (Outcome.TIMED_OUT, 4.5 * SECOND)
    assert script.calls[-1][2] == 0.5 * SECOND


def test_success_at_the_closing_poll_is_success() -> None:
    """PC-033: also when the answer takes until the deadline."""
    script = Script(spec(strategy=Fixed("3s"), limits=Limits(total_duration="5s")))
    script.play(RUNNING, RUNNING, http(200, {"state": "DONE"}, took=SECOND // 2))
    assert (outcome(script), script.now) == (Outcome.SUCCEEDED, 5 * SECOND)


def test_counters_and_deadline_outlive_a_restart() -> None:
    """PC-041: the process killed after poll 5 and started again at 17 s goes on at 31 s."""
    script = Script(spec(strategy=Exponential("1s", maximum="60s"), limits=Limits(total_duration="100s", max_polls=20)))
    script.play(*[RUNNING] * 4)
    script._call(RUNNING)
    assert script.restart(17 * SECOND) == Wait(31 * SECOND, WaitSource.STRATEGY)
    script.play(RUNNING, forever=True)
    assert script.polls_at() == [0, 1, 3, 7, 15, 31, 63, 90]
    assert outcome(script) is Outcome.TIMED_OUT


def test_a_call_never_outlasts_the_deadline() -> None:
    """A poll in flight at the deadline is cut, and then the job has timed out."""
    script = Script(spec(strategy=Fixed("8s"), limits=Limits(total_duration="10s", poll_timeout="5s")))
    script.play(RUNNING)
    assert isinstance(script.decision, Call)
    assert script.decision.timeout == 2 * SECOND
    assert script.play(broken(ErrorKind.TIMEOUT, took=2 * SECOND)).outcome is Outcome.TIMED_OUT


def test_a_request_may_have_a_shorter_timeout() -> None:
    """`total_timeout` of the request holds within `poll_timeout`."""
    _, decision = start(spec(poll=Request("GET", GET.url, total_timeout="3s")), "orders", 0)
    assert decision == Call(CallKind.POLL, 3 * SECOND)
    _, decision = start(spec(poll=Request("GET", GET.url, total_timeout="300s")), "orders", 0)
    assert decision == Call(CallKind.POLL, 30 * SECOND)


def overdue(**fields: Any) -> Script:
    """A job polled once at 0, found again well after its deadline."""
    script = Script(spec(strategy=Fixed("60s"), limits=Limits(total_duration="10m"), **fields))
    script.play(RUNNING)
    return script


def test_down_past_the_deadline_one_closing_poll_is_made() -> None:
    """It has its whole time, and its verdict counts."""
    script = overdue()
    assert script.restart(20 * MINUTE) == Call(CallKind.POLL, 30 * SECOND)
    assert script.play(DONE).outcome is Outcome.SUCCEEDED
    script = overdue()
    script.restart(20 * MINUTE)
    assert script.play(RUNNING).outcome is Outcome.TIMED_OUT


def test_a_closing_poll_is_not_made_twice() -> None:
    """One that left after the deadline and never came back was the one."""
    script = overdue()
    script.restart(20 * MINUTE)
    script.state = sending(script.state, CallKind.POLL, 20 * MINUTE)
    assert script.restart(30 * MINUTE) == Stop(Outcome.TIMED_OUT)


def test_a_spent_count_forbids_the_closing_poll() -> None:
    """Past both limits the job has timed out."""
    script = Script(spec(strategy=Fixed("60s"), limits=Limits(total_duration="10m", max_polls=2)))
    script.play(RUNNING)
    script.state = replace(script.state, polls=2)
    assert script.restart(20 * MINUTE) == Stop(Outcome.TIMED_OUT)


def test_a_hint_of_429_forbids_the_closing_poll() -> None:
    """It still holds, and the job was polled before."""
    script = Script(spec(strategy=Fixed("60s"), limits=Limits(total_duration="10m")))
    script.play(RUNNING)
    script.state = replace(script.state, hold_until=30 * MINUTE)
    assert script.restart(20 * MINUTE) == Stop(Outcome.TIMED_OUT)
    script = overdue()
    script.state = replace(script.state, hold_until=15 * MINUTE)
    assert script.restart(20 * MINUTE) == Call(CallKind.POLL, 30 * SECOND)


def test_the_closing_poll_of_an_overdue_job_keeps_the_floor() -> None:
    """Two polls are no closer than `min_interval`, deadline or not."""
    script = Script(spec(strategy=Fixed("60s"), limits=Limits(total_duration="10m", min_interval="60s")))
    script.play(RUNNING)
    script.state = replace(script.state, polled_at=10 * MINUTE - SECOND)
    assert script.restart(10 * MINUTE) == Wait(11 * MINUTE - SECOND, WaitSource.FLOOR)
    assert script.restart(11 * MINUTE) == Call(CallKind.POLL, 30 * SECOND)


def test_a_job_never_polled_gets_its_closing_poll() -> None:
    """However late it is found."""
    made, _ = start(spec(limits=Limits(total_duration="10m")), "orders", 0)
    assert resume(spec(limits=Limits(total_duration="10m")), made, 60 * MINUTE)[1] == Call(CallKind.POLL, 30 * SECOND)


# Failed polls.


def test_a_gateway_page_is_no_verdict() -> None:
    """PC-022: error pages, empty and broken answers are failed polls; the job goes on and succeeds."""
    script = Script(spec(until=Match("body.status", succeeded="completed", pending="running"), **FAST))
    script.play(
        http(200, {"status": "running"}),
        http(502, "<html>", {"content-type": "text/html"}),
        http(200),
        broken(ErrorKind.PROTOCOL),
        http(200, "<html>"),
        http(200, {"status": "completed"}),
    )
    assert (outcome(script), script.state.polls, script.state.failed_polls) == (Outcome.SUCCEEDED, 6, 4)
    assert script.state.streak == Streak()


IMPATIENT = Errors(max_consecutive=5, min_outage="0s")


def test_the_budget_ends_an_outage() -> None:
    """PC-023: five failures in a row are one too many, and the outcome is not "failed"."""
    script = Script(spec(errors=IMPATIENT, **FAST))
    script.play(RUNNING, http(500), http(500), http(500), DONE)
    assert outcome(script) is Outcome.SUCCEEDED
    script = Script(spec(errors=IMPATIENT, **FAST))
    script.play(RUNNING, http(503), forever=True)
    assert (outcome(script), script.state.polls) == (Outcome.UNREACHABLE, 6)
    assert script.state.reason == "5 polls in a row failed: http_status: HTTP 503"


def test_a_good_poll_resets_the_budget() -> None:
    """PC-023: failures one at a time never end a job, and all of them are counted."""
    script = Script(spec(errors=Errors(max_consecutive=2, min_outage="0s"), **FAST))
    script.play(*[http(500), RUNNING] * 20)
    assert (outcome(script), script.state.failed_polls) == (None, 20)


def test_an_outage_has_to_last() -> None:
    """Ten failures within a minute are not fifteen minutes of outage."""
    script = Script(spec(strategy=Fixed("1s"), errors=Errors(min_outage="15m")))
    script.play(*[http(500)] * 10)
    assert outcome(script) is None
    script.play(http(500), forever=True)
    assert outcome(script) is Outcome.UNREACHABLE
    assert script.now >= 15 * MINUTE


@pytest.mark.parametrize(
    "answer",
    [http(429), http(503, None, {"retry-after": "10"}), broken(ErrorKind.POOL)],
    ids=["429", "503 with a hint", "full pool"],
)
def test_congestion_spends_no_budget(answer: Any) -> None:
    """It backs off, and only the deadline ends it."""
    script = Script(spec(errors=Errors(max_consecutive=1, min_outage="0s"), **FAST))
    script.play(*[answer] * 5)
    assert (outcome(script), script.state.streak.length, script.state.streak.spent) == (None, 5, 0)
    waits = [b - a for a, b in zip(script.polls_at(), script.polls_at()[1:], strict=False)]
    assert waits == sorted(waits)
    assert waits[-1] > waits[0]


@pytest.mark.parametrize("status", [401, 403])
def test_denied_has_a_small_budget_of_its_own(status: int) -> None:
    """Three in a row end the job, saying so; another answer in between starts the count anew."""
    script = Script(spec(**FAST))
    script.play(http(status), http(status), http(500), http(status), http(status))
    assert outcome(script) is None
    script.play(http(status))
    assert outcome(script) is Outcome.UNREACHABLE
    assert script.state.reason == f"access denied 3 times in a row: HTTP {status}"


def test_a_404_soon_after_the_start_is_not_ready() -> None:
    """Within the grace it is pending and spends nothing; later three in a row mean lost."""
    script = Script(spec(**FAST))
    script.play(http(404), http(404), http(404), http(404))
    assert (script.now, script.state.failed_polls, script.state.verdict) == (40 * SECOND, 0, Verdict.PENDING)
    script.play(http(404), http(404))
    assert outcome(script) is None
    script.play(http(404))
    assert (outcome(script), script.state.polls) == (Outcome.LOST, 7)
    assert script.state.reason == "not found 3 times in a row: HTTP 404"


def test_a_job_once_seen_has_no_grace() -> None:
    """A 404 after a good answer counts at once."""
    script = Script(spec(strategy=Fixed("1s")))
    script.play(RUNNING, http(404), http(404), http(404))
    assert (outcome(script), script.state.polls) == (Outcome.LOST, 4)


def test_no_hidden_limit_ends_a_long_grace() -> None:
    """PC-037: 700 times not found within a grace of four hours, then done."""
    job = spec(strategy=Fixed("10s"), limits=Limits(total_duration="4h"), errors=Errors(not_found_grace="4h"))
    script = Script(job)
    script.play(*[http(404)] * 700, DONE)
    assert (outcome(script), script.state.polls) == (Outcome.SUCCEEDED, 701)


def test_410_is_lost_at_once() -> None:
    """Gone is gone."""
    script = Script(spec(**FAST))
    assert script.play(http(410, {"error": "purged"})).outcome is Outcome.LOST
    assert script.state.reason == 'HTTP 410: {"error":"purged"}'


def test_the_verdict_not_found_is_as_a_404() -> None:
    """Grace first, then three in a row."""
    job = spec(
        until=Acceptors([("body.gone", "not_found"), ("body.ok", "succeeded")]),
        errors=Errors(not_found_grace=0),
        **FAST,
    )
    script = Script(job)
    script.now = 1
    gone = http(200, {"gone": True})
    script.play(RUNNING, gone, gone, gone)
    assert outcome(script) is Outcome.LOST


def test_the_verdict_transient_is_a_failed_poll() -> None:
    """It spends the budget and says what it was."""
    script = Script(spec(until=Acceptors([("body.again", "transient"), ("body.ok", "succeeded")]), **FAST))
    script.play(http(200, {"again": "yes"}))
    assert (script.state.failed_polls, script.state.streak.spent) == (1, 1)
    assert str(script.state.error).startswith("reported: ")


def test_the_verdict_redirect_has_no_target_yet() -> None:
    """The job ends as invalid, with the reason."""
    script = Script(spec(until=Acceptors([("body.next", "redirect"), ("body.ok", "succeeded")])))
    assert script.play(http(200, {"next": "/2"})).outcome is Outcome.INVALID
    assert "redirect" in str(script.state.reason)


def test_304_is_a_good_poll_that_says_nothing_new() -> None:
    """Verdict, status and counts stay, the run of failures ends."""
    script = Script(spec(**FAST))
    script.play(RUNNING, http(500), http(304))
    assert (script.state.status, script.state.verdict) == ("RUNNING", Verdict.PENDING)
    assert (script.state.streak, script.state.failed_polls, script.state.polls) == (Streak(), 1, 3)


# What a condition is shown.


def test_a_condition_that_reads_the_status_is_shown_every_response() -> None:
    """PC-007, PC-029: 303 can mean done, 400 failed, an empty 202 pending."""
    until = Status(succeeded=[200, 303], pending=202, failed=400)
    script = Script(spec(until=until, **FAST))
    assert script.play(http(202), http(303, None, {"location": "/result/1"})).outcome is Outcome.SUCCEEDED
    script = Script(spec(until=until, **FAST))
    script.play(http(202), http(400, {"error": {"message": "quota"}}))
    assert (outcome(script), script.state.polls) == (Outcome.FAILED, 2)
    assert script.state.reason == 'HTTP 400: {"error":{"message":"quota"}}'


@pytest.mark.parametrize(("status", "kind"), [(500, "http_status"), (429, "http_status"), (302, "redirect")])
def test_a_status_that_no_set_names_is_not_judged(status: int, kind: str) -> None:
    """It is the failed poll that it would be without a condition on the status."""
    script = Script(spec(until=Status(succeeded=200, pending=202), **FAST))
    script.play(http(status))
    assert str(script.state.error).startswith(f"{kind}: HTTP {status}")
    assert script.state.failed_polls == 1


def test_an_unjudged_404_keeps_its_meaning() -> None:
    """Shown to the condition, which has no word for it, it is still not found."""
    script = Script(spec(until=Status(succeeded=200, pending=202), strategy=Fixed("1s")))
    assert script.play(http(202), *[http(404)] * 3).outcome is Outcome.LOST


def test_accepted_codes_are_judged_by_any_condition() -> None:
    """A 404 with a body that says pending is pending."""
    script = Script(spec(poll=Request("GET", GET.url, accepted=[404, "5xx"]), **FAST))
    script.play(state("RUNNING", 404), state("RUNNING", 503), state("DONE", 404))
    assert (outcome(script), script.state.failed_polls) == (Outcome.SUCCEEDED, 0)


def test_an_accepted_304_is_judged() -> None:
    """Who asks for it gets it."""
    script = Script(spec(poll=Request("GET", GET.url, accepted=[304]), until=Status(succeeded=304)))
    assert script.play(http(304)).outcome is Outcome.SUCCEEDED


def test_errors_are_shown_to_a_condition_that_reads_error() -> None:
    """A service that goes away when it is done can be awaited."""
    until = Acceptors([("error == 'connect'", "succeeded")])
    assert Script(spec(until=until)).play(broken()).outcome is Outcome.SUCCEEDED
    assert Script(spec(until=Status(succeeded=200))).play(broken()).failed_polls == 1


def test_a_callable_condition_is_shown_good_answers_alone() -> None:
    """An outage stays an outage, whatever the condition would make of a missing body."""
    for condition in (lambda seen: seen["body"] == "x", lambda seen: seen["body"]["x"] == 1, lambda _: None):
        script = Script(spec(until=condition, **FAST))
        script.play(broken(), http(500))
        assert (script.state.failed_polls, script.state.streak.spent) == (2, 2)
        assert script.state.error == "http_status: HTTP 500"


@pytest.mark.parametrize("until", ["contains(body.x, 'a') && status == `200`", "status"])
def test_a_condition_that_cannot_judge_an_error_page_has_not_judged_it(until: str) -> None:
    """It raised, or gave no verdict: the poll failed by its status, and the job goes on."""
    script = Script(spec(until=Expression(until), **FAST))
    script.play(http(500, {}))
    assert (script.state.error, script.state.failed_polls) == ("http_status: HTTP 500: {}", 1)


@pytest.mark.parametrize("status", [202, 204])
def test_an_empty_202_or_204_is_pending(status: int) -> None:
    """There was nothing to read, and nothing else was to be expected."""
    script = Script(spec(**FAST))
    script.play(http(status))
    assert (script.state.failed_polls, script.state.verdict) == (0, Verdict.PENDING)


def test_an_empty_body_is_judged_where_the_status_is_read_too() -> None:
    """The condition can do without the body."""
    script = Script(spec(until=Acceptors([("status == `200` && !body", "succeeded")])))
    assert script.play(http(200)).outcome is Outcome.SUCCEEDED


def test_a_condition_that_raises_is_a_failed_poll() -> None:
    """Its error is kept; the job goes on."""

    def clumsy(seen: Any) -> bool:
        raise ZeroDivisionError("oh no\n" * 100)

    script = Script(spec(until=clumsy, **FAST))
    script.play(RUNNING)
    assert script.state.failed_polls == 1
    assert str(script.state.error).startswith("condition: ZeroDivisionError: oh no\\n")
    assert len(str(script.state.error)) <= 160


def test_an_answer_that_is_no_verdict_ends_the_job() -> None:
    """Never taken for "truthy"."""
    script = Script(spec(until=Expression("body.state")))
    assert script.play(RUNNING).outcome is Outcome.INVALID
    assert "RUNNING" in str(script.state.reason)


@pytest.mark.parametrize(("answer", "ended"), [(True, "succeeded"), (1, "succeeded"), (-1, "failed")])
def test_the_answers_of_an_expression(answer: Any, ended: str) -> None:
    """True and 1 succeed, -1 fails; false and 0 wait."""
    script = Script(spec(until=Expression("body.x"), **FAST))
    script.play(http(200, {"x": False}), http(200, {"x": 0}), http(200, {"x": answer}))
    assert outcome(script) is Outcome(ended)


def test_a_polled_callable_has_no_status() -> None:
    """What it returned is the body; what it raised is a failed poll."""
    script = Script(spec(poll=lambda: None, **FAST))
    script.play(returned({"state": "RUNNING"}), broken(ErrorKind.CALLABLE), returned({"state": "DONE"}))
    assert (outcome(script), script.state.failed_polls) == (Outcome.SUCCEEDED, 1)


# Words for people.


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, 0.0), (0.5, 0.5), (1, 1.0), (50, 0.5), (100, 1.0), ("half way", "half way"), ("x" * 300, "x" * 45 + "…")],
)
def test_progress_is_a_share_or_a_short_text(value: Any, shown: Any) -> None:
    """Percentages become shares."""
    script = Script(spec(progress="body.done", **FAST))
    script.play(http(200, {"state": "RUNNING", "done": value}))
    assert script.state.progress == shown


@pytest.mark.parametrize("value", [None, True, -1, 101, 1e300, float("nan"), [], {}])
def test_odd_progress_is_none(value: Any) -> None:
    """And leaves the last one as it was."""
    script = Script(spec(progress="body.done", **FAST))
    script.play(http(200, {"done": 0.25}), http(200, {"done": value}))
    assert script.state.progress == 0.25


def test_progress_that_cannot_be_read_harms_nothing() -> None:
    """An expression for people that raises on this body is no failed poll."""
    script = Script(spec(progress="sum(body.done)", **FAST))
    script.play(http(200, {"state": "RUNNING", "done": "x"}))
    assert (script.state.progress, script.state.failed_polls) == (None, 0)


def test_the_reason_of_a_failure_is_what_reason_selects() -> None:
    """PC-027: text as it is, anything else as JSON."""
    body = {"state": "FAILED", "error": {"code": "OperationPreempted", "message": "taken"}}
    script = Script(spec(reason="body.error"))
    script.play(http(200, body))
    assert script.state.reason == '{"code":"OperationPreempted","message":"taken"}'
    script = Script(spec())
    script.play(http(200, body))
    assert script.state.reason is None


# Submits.


def submitted(call: Any = POST, **fields: Any) -> Script:
    return Script(spec(submit=call, strategy=Fixed("10s"), **fields))


ACCEPTED = http(202, {"jobId": "j1"})


def test_a_submit_comes_first() -> None:
    """Then the first poll, at once."""
    script = submitted()
    assert script.decision == Call(CallKind.SUBMIT, 30 * SECOND)
    assert script.play(ACCEPTED).phase is Phase.WAITING
    assert script.decision == Call(CallKind.POLL, 30 * SECOND)
    assert (script.state.submitted_at, script.state.submit_tries, script.state.polls) == (0, 1, 0)
    assert script.play(DONE).outcome is Outcome.SUCCEEDED


def test_the_submits_answer_is_seen_by_the_condition() -> None:
    """As {status, headers, body, url}."""
    script = submitted(until=Acceptors([("submit.body.jobId == body.id", "succeeded")]))
    assert script.play(ACCEPTED, http(200, {"id": "j1"})).outcome is Outcome.SUCCEEDED


def test_a_hint_of_the_submit_delays_the_first_poll() -> None:
    """PC-020: the poll at 10 s finds the job, an earlier one would not have."""
    script = submitted()
    script.play(http(202, {}, {"retry-after": "10"}), RUNNING, DONE)
    assert script.polls_at() == [10, 20]


def test_the_initial_delay_runs_from_the_acceptance() -> None:
    """And a shorter hint does not cut it."""
    script = submitted(limits=Limits(initial_delay="7s"))
    script.play(http(202, {}, {"retry-after": "3"}), DONE)
    assert script.polls_at() == [7]


def test_a_callables_return_is_an_acceptance() -> None:
    """It has no status."""
    script = submitted(lambda: None)
    assert script.play(returned({"jobId": "j1"})).phase is Phase.WAITING


@pytest.mark.parametrize("call", [POST, IDEMPOTENT, lambda: None])
def test_a_submit_that_never_left_is_sent_again(call: Any) -> None:
    """With backoff, as often as the deadline allows."""
    script = submitted(call)
    refused = broken(ErrorKind.CONNECT, sent=False)
    script.play(refused, refused, refused, ACCEPTED)
    assert script.submits_at() == [0, 5, 15, 35]
    assert (script.state.submit_tries, script.state.streak) == (4, Streak())


def test_a_429_is_sent_again_after_its_hint() -> None:
    """It is a lower bound; without one the backoff holds."""
    script = submitted()
    script.play(http(429, None, {"retry-after": "60"}), http(429), ACCEPTED)
    assert script.submits_at() == [0, 60, 70]


LOST = [broken(ErrorKind.TIMEOUT), broken(ErrorKind.PROTOCOL), http(408), http(500), http(503)]


@pytest.mark.parametrize("answer", LOST)
def test_a_lost_answer_stops_a_submit_that_may_not_be_repeated(answer: Any) -> None:
    """Nobody knows whether it arrived: a person decides."""
    script = submitted()
    assert script.play(answer).outcome is Outcome.SUBMIT_UNKNOWN
    assert len(script.calls) == 1


@pytest.mark.parametrize("answer", LOST)
@pytest.mark.parametrize("call", [IDEMPOTENT, PUT])
def test_a_lost_answer_to_a_repeatable_submit_is_asked_for_again(answer: Any, call: Any) -> None:
    """The service honours the key, or the method is PUT."""
    script = submitted(call)
    script.play(answer, ACCEPTED)
    assert script.submits_at() == [0, 5]
    assert script.state.phase is Phase.WAITING


def test_a_409_to_a_repeated_submit_is_adopted() -> None:
    """The earlier try arrived; to a first try it is a refusal."""
    script = submitted(IDEMPOTENT)
    script.play(http(500), http(409))
    assert script.state.phase is Phase.WAITING
    assert submitted(IDEMPOTENT).play(http(409)).outcome is Outcome.FAILED


@pytest.mark.parametrize("status", [400, 401, 404, 422, 301])
def test_a_refused_submit_fails_the_job(status: int) -> None:
    """The reason has the status and the beginning of the body."""
    script = submitted()
    script.play(http(status, {"error": "no such dataset"}))
    assert outcome(script) is Outcome.FAILED
    assert script.state.reason == f'submit refused: HTTP {status}: {{"error":"no such dataset"}}'


def test_a_submit_found_half_sent_is_only_repeated_where_that_is_safe() -> None:
    """PC-048: the process died between the intent and the answer."""
    for call, decision in ((POST, Stop(Outcome.SUBMIT_UNKNOWN)), (IDEMPOTENT, Call(CallKind.SUBMIT, 30 * SECOND))):
        script = submitted(call)
        script.state = sending(script.state, CallKind.SUBMIT, 0)
        assert script.restart(SECOND) == decision
    assert script.state.phase is Phase.SUBMITTING
    script.play(ACCEPTED)
    assert script.state.submit_tries == 2


def test_the_deadline_ends_the_submitting() -> None:
    """One last try is brought forward; then the job has timed out."""
    script = submitted(limits=Limits(total_duration="60s"))
    script.play(broken(sent=False), forever=True)
    assert script.submits_at() == [0, 5, 15, 35, 54]
    assert outcome(script) is Outcome.TIMED_OUT
    script = submitted(limits=Limits(total_duration="60s"))
    assert script.restart(60 * SECOND) == Stop(Outcome.TIMED_OUT)


def test_a_submit_cut_by_the_deadline_may_have_arrived() -> None:
    """Unknown where it may not be repeated, timed out where it may."""
    for call, ended in ((POST, Outcome.SUBMIT_UNKNOWN), (IDEMPOTENT, Outcome.TIMED_OUT)):
        script = submitted(call, limits=Limits(total_duration="10s"))
        assert script.play(broken(ErrorKind.TIMEOUT, took=10 * SECOND)).outcome is ended


def test_a_submit_answered_at_the_deadline_gets_its_closing_poll() -> None:
    """The job exists now, and may be done."""
    script = submitted(limits=Limits(total_duration="10s"))
    script.play(http(202, {}, took=10 * SECOND))
    assert script.decision == Call(CallKind.POLL, 30 * SECOND)


def test_a_driver_without_checkpoints_may_leave_sending_out() -> None:
    """`step` then counts the try itself."""
    job = spec(submit=POST)
    made, _ = start(job, "orders", 0)
    accepted, decision = step(job, made, ACCEPTED(CallKind.SUBMIT, 0), 0)
    assert (accepted.phase, accepted.submit_tries) == (Phase.WAITING, 1)
    assert decision == Call(CallKind.POLL, 30 * SECOND)


# Clocks, endings, mistakes.


def test_a_clock_set_back_does_not_lengthen_a_wait() -> None:
    """An hour back, and the poll is still due within ten seconds."""
    script = Script(spec(**FAST), now=3600 * SECOND)
    script._call(RUNNING)
    script.state = replace(script.state, polled_at=None)
    assert script.restart(0) == Wait(10 * SECOND, WaitSource.FLOOR)


def test_a_state_without_a_due_time_is_due() -> None:
    """Whatever lost it."""
    made, _ = start(spec(), "orders", 0)
    assert resume(spec(), replace(made, due=None), 5)[1] == Call(CallKind.POLL, 30 * SECOND)
    made, _ = start(spec(submit=POST), "orders", 0)
    assert resume(spec(submit=POST), replace(made, due=None), 5)[1] == Call(CallKind.SUBMIT, 30 * SECOND)


def test_an_outcome_is_written_once() -> None:
    """What comes after the end is an illegal move; a look at it changes nothing."""
    script = Script(spec())
    ended = script.play(DONE)
    assert resume(script.spec, ended, 99) == (ended, Stop(Outcome.SUCCEEDED))
    for kind in CallKind:
        with pytest.raises(IllegalMove):
            step(script.spec, ended, RUNNING(kind, 99), 99)
    with pytest.raises(IllegalMove):
        cancelled(ended, 99)


def test_a_poll_before_the_submit_is_an_illegal_move() -> None:
    """A bug of the driver, told at once."""
    made, _ = start(spec(submit=POST), "orders", 0)
    with pytest.raises(IllegalMove):
        step(spec(submit=POST), made, DONE(CallKind.POLL, 0), 0)


def test_cancelled_ends_a_job_here() -> None:
    """Nothing is due any more."""
    made, _ = start(spec(), "orders", 0)
    ended = cancelled(made, 7)
    assert (ended.outcome, ended.due, ended.finished_at) == (Outcome.CANCELLED, None, 7)


def test_a_hint_beyond_the_bound_can_end_the_wait() -> None:
    """on_excess="fail": timed out, with the hint named."""
    script = Script(spec(hints=Hints(maximum="5m", on_excess="fail"), **FAST))
    script.play(state("RUNNING", headers={"retry-after": "3600"}))
    assert outcome(script) is Outcome.TIMED_OUT
    assert script.state.reason == "retry-after asks for a wait of 3600 s, more than hints.maximum"
