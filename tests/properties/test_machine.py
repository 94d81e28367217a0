from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tarry import Errors, Fixed, Hints, Limits, Linear, Outcome, Request
from tarry.codec import decode_state, encode_state
from tarry.core import Answers, Call, Stop, Wait, nudged, resume, sending, step
from tarry.core.answers import StatusUrl, Validators
from tarry.core.cadence import Due
from tarry.core.resuming import hastened, is_still, scheduled
from tarry.words import SECOND, CallKind, ErrorKind, Phase, WaitSource, micros
from tests.unit.scripted import GET, POST, Answer, Script, broken, http, returned, spec, state

STATES = st.sampled_from(["RUNNING", "QUEUED", "HELD", "odd", None, 7])
HEADERS: Any = st.sampled_from([{}, {}, {"retry-after": "3"}, {"retry-after": "9999999999"}, {"retry-after": "0"}])
STATUSES = st.sampled_from([200, 202, 204, 301, 304, 400, 401, 403, 404, 408, 409, 429, 500, 502, 503, 529])
UNDECIDED: st.SearchStrategy[Answer] = st.one_of(
    st.builds(state, STATES, st.just(200), HEADERS),
    st.builds(http, STATUSES, st.sampled_from([None, "<html>", {}, [], 1]), HEADERS),
    st.builds(broken, st.sampled_from(list(ErrorKind)), sent=st.booleans()),
    st.builds(returned, st.sampled_from([None, {}, {"state": "RUNNING"}])),
)
ENDINGS = st.sampled_from([state("DONE"), state("FAILED"), http(410)])
ANSWERS = st.lists(st.one_of(UNDECIDED, UNDECIDED, UNDECIDED, ENDINGS), min_size=1, max_size=25)


@st.composite
def jobs(draw: st.DrawFn, *, submits: bool = True) -> Any:
    total = draw(st.none() | st.integers(1, 600))
    return spec(
        submit=draw(st.sampled_from([None, POST, Request("PUT", GET.url)])) if submits else None,
        strategy=draw(st.sampled_from([Fixed("1s"), Fixed("40s"), Linear("2s", jitter="full")])),
        limits=Limits(
            min_interval=draw(st.sampled_from(["0.5s", "1s", "30s"])),
            max_polls=draw(st.none() | st.integers(1, 12)),
            total_duration=total,
            initial_delay=draw(st.sampled_from([0, 5, 1000])),
        ),
        errors=Errors(max_consecutive=draw(st.integers(1, 5)), min_outage=draw(st.sampled_from([0, 60]))),
        hints=Hints(on_excess=draw(st.sampled_from(["cap", "fail"]))),
        confirm=draw(st.sampled_from([1, 1, 2])),
        progress="body.state",
    )


@given(jobs(), ANSWERS)
def test_limits_and_floor_hold_for_any_answers(job: Any, answers: list[Answer]) -> None:
    """Polls never exceed max_polls, never start closer than the floor, never start or last past the deadline."""
    script = Script(job)
    # Without a deadline a submit may be put off for ever.
    has_an_end = job.limits.total_duration or (job.limits.max_polls and job.submit is None)
    ended = script.play(*answers, forever=bool(has_an_end))
    polls = [call for call in script.calls if call[0] is CallKind.POLL]
    assert ended.polls == len(polls)
    assert job.limits.max_polls is None or len(polls) <= job.limits.max_polls
    floor = micros(job.limits.min_interval)
    assert all(after[1] - before[1] >= floor for before, after in pairwise(polls))
    if ended.deadline is not None:
        assert all(at + timeout <= ended.deadline for _, at, timeout in script.calls)
    assert all(0 < timeout <= 30 * SECOND for _, _, timeout in script.calls)


@given(jobs(), ANSWERS)
def test_a_state_is_always_whole(job: Any, answers: list[Answer]) -> None:
    """It stores and comes back, stays small, and is over if and only if the decision is to stop."""
    script = Script(job)
    script.play(*answers)
    found, decision = script.state, script.decision
    assert decode_state(encode_state(found)) == found
    assert len(encode_state(found).encode()) < 2048
    assert isinstance(decision, Stop) == (found.phase is Phase.DONE) == (found.outcome is not None)
    assert (found.due is None) == (found.phase is Phase.DONE)
    assert found.failed_polls <= found.polls


@given(jobs(), ANSWERS, st.integers(0, 10**10))
def test_an_outcome_is_given_once(job: Any, answers: list[Answer], later: int) -> None:
    """Whoever looks at a job that is over finds it as it was."""
    script = Script(job)
    ended = script.play(*answers)
    if isinstance(script.decision, Stop):
        assert resume(job, ended, script.now + later) == (ended, script.decision)
        assert ended.outcome is script.decision.outcome


@given(jobs(submits=False), st.lists(UNDECIDED, max_size=10))
def test_no_success_is_lost(job: Any, answers: list[Answer]) -> None:
    """A poll that is made and says done (as often as has to be confirmed) ends the job as done."""
    script = Script(job)
    script.play(*answers)
    for _ in range(job.confirm):
        if isinstance(script.decision, Stop):
            return
        before = script.state
        script.play(state("DONE"))
        assert script.state.polls == before.polls + 1
    last = script.state.confirming
    assert last is not None
    assert (script.state.outcome is Outcome.SUCCEEDED) == (last.times >= job.confirm)


@given(jobs(), ANSWERS)
def test_a_restart_changes_nothing(job: Any, answers: list[Answer]) -> None:
    """Resuming a stored state at the same moment decides what was decided."""
    script = Script(job)
    for answer in answers:
        script.play(answer)
        found, decision = script.state, script.decision
        assert resume(job, decode_state(encode_state(found)), script.now) == (found, decision)


@given(jobs(), st.lists(UNDECIDED, max_size=8), st.integers(0, 10) | st.integers(0, 1000), st.integers(-2, 2))
def test_a_call_that_waited_for_its_turn_is_still_the_one(
    job: Any, answers: list[Answer], waited: int, close: int
) -> None:
    """Where that is told by the deadline alone, resuming says it as well; at the deadline it is never told."""
    script = Script(job)
    script.play(*answers)
    found, call = script.state, script.decision
    if isinstance(call, Stop):
        return
    assert isinstance(call, Call)
    at_most = None if found.deadline is None else found.deadline - call.timeout
    for now in (script.now + waited * SECOND, max(script.now, (at_most or 0) + close)):
        assert is_still(found, call, now) == (at_most is None or now <= at_most)
        if is_still(found, call, now):
            assert resume(job, found, now) == (found, call)


CLOCKS = st.sampled_from([0, 0, 0, 1, 40 * SECOND, -1, -2 * SECOND, -40 * SECOND])
NUDGES = st.sampled_from([None, None, None, 0, 1, SECOND])


@given(jobs(), st.lists(st.tuples(st.one_of(UNDECIDED, UNDECIDED, ENDINGS), CLOCKS, NUDGES), min_size=1, max_size=25))
def test_a_step_decides_what_resuming_its_state_would(job: Any, polls: list[tuple[Answer, int, int | None]]) -> None:
    """Also where somebody asked for a poll, or the clock was moved, while the call was under way."""
    script = Script(job, now=3600 * SECOND)
    for answer, moved, nudge in polls:
        script.play()
        if not isinstance(script.decision, Call):
            return
        kind, now = script.decision.kind, script.now
        before = sending(script.state, kind, now)
        if nudge is not None:
            before = nudged(job, before, now + nudge)
        script.now = now + moved
        script.state, script.decision = step(job, before, answer(kind, now), script.now, script.answers)
        assert resume(job, script.state, script.now) == (script.state, script.decision)


NEAR = st.integers(-3, 3).map(lambda seconds: 3600 * SECOND + seconds * SECOND)


@given(st.sampled_from(["0.5s", "5s"]), st.sampled_from([Phase.WAITING, Phase.BLOCKED]), NEAR, *[st.none() | NEAR] * 3)
def test_what_was_planned_this_moment_is_what_resuming_gives(
    floor: str, phase: Phase, due: int, polled_at: int | None, nudged_at: int | None, hold_until: int | None
) -> None:
    """A wait that lies ahead is known as one, but not past the floor, a nudge or a clock that was set back."""
    now = 3600 * SECOND
    script = Script(spec(limits=Limits(min_interval=floor)), now=now)
    state = replace(script.state, phase=phase, polled_at=polled_at, nudged_at=nudged_at)
    planned = replace(state, due=due, wait_source=WaitSource.HINT, wait=due - now, hold_until=hold_until)
    expected = resume(script.spec, hastened(script.spec, planned, now), now)
    assert scheduled(script.spec, state, Due(due, WaitSource.HINT, hold_until), now) == expected


@given(jobs(), ANSWERS, st.lists(st.integers(0, 400), min_size=1, max_size=5))
def test_downtime_never_adds_a_second_submit_or_poll(job: Any, answers: list[Answer], pauses: list[int]) -> None:
    """However long the process is down, it finds at most one call to make, and makes no second submit unsafely."""
    script = Script(job)
    for answer, pause in zip(answers, pauses, strict=False):
        script.play(answer)
        if isinstance(script.decision, Stop):
            break
        decision = script.restart(script.now + pause * SECOND)
        if isinstance(decision, Wait):
            assert decision.due > script.now
    if job.submit == POST:
        left = [answer for answer in script.calls if answer[0] is CallKind.SUBMIT]
        assert len(left) == script.state.submit_tries


MOVING = st.builds(
    http, st.sampled_from([200, 307]), st.just({"state": "go"}), st.just({"location": "/b", "etag": '"x"'})
)
READING: dict[str, Any] = {
    "nothing": {},
    "the last answer": {"fetch": Request("GET", "https://api.example.com/{poll.body.state}")},
    "the first answer": {"result": "baseline.body"},
    "marks": {"poll": Request("GET", GET.url, conditional=True)},
}
BEFORE = st.builds(
    Answers,
    status_url=st.none()
    | st.builds(
        StatusUrl, st.just("https://api.example.com/b"), st.none(), st.sampled_from([GET.url, "https://old.example"])
    ),
    validators=st.none() | st.just(Validators(GET.url, etag='"old"')),
)


@given(st.sampled_from(sorted(READING)), BEFORE, st.lists(st.one_of(UNDECIDED, MOVING), min_size=1, max_size=5))
def test_what_is_kept_is_the_same_where_nothing_has_to_be(what: str, before: Answers, answers: list[Answer]) -> None:
    """A spec that reads nothing of earlier answers keeps just what one keeps that is not known to be such."""
    plain = spec(redirect="{poll.headers.location}", strategy=Fixed("1s"), **READING[what])
    assert plain.is_forgetful == (what == "nothing")
    unknown = plain.model_copy()
    vars(unknown)["is_forgetful"] = False
    one, other = (Script(each, answers=before) for each in (plain, unknown))
    for answer in answers:
        assert one.play(answer) == other.play(answer)
        assert one.answers == other.answers


@given(jobs(), st.integers(0, 10**9))
def test_a_submit_found_half_sent_is_never_repeated_silently(job: Any, pause: int) -> None:
    """Only a PUT is; a POST without the promise waits for a person."""
    script = Script(job)
    if job.submit is None or not isinstance(script.decision, Call):
        return
    script.state = sending(script.state, CallKind.SUBMIT, 0)
    decision = script.restart(pause)
    if job.submit == POST:
        assert decision == Stop(Outcome.SUBMIT_UNKNOWN)
    else:
        assert decision == Stop(Outcome.TIMED_OUT) or isinstance(decision, Call)


@given(jobs(submits=False), st.integers(0, 10**9), st.integers(1, 12))
def test_a_state_found_at_any_time_is_polled_at_most_once_past_its_deadline(job: Any, late: int, polls: int) -> None:
    """And never at all once max_polls are spent."""
    script = Script(job)
    script.state = replace(script.state, polls=polls, polled_at=script.state.created_at)
    decision = script.restart(late)
    if job.limits.max_polls is not None and polls >= job.limits.max_polls:
        assert isinstance(decision, Stop)
    script.play(state("RUNNING"))
    if script.state.deadline is not None and late >= script.state.deadline:
        assert script.state.outcome in {Outcome.TIMED_OUT, Outcome.EXHAUSTED}
        assert len(script.calls) <= 1
