from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from tarry import CheckpointError, Errors, Fixed, JobSpec, Limits, Match, Outcome, Request, Verdict
from tarry.codec import (
    ANSWER_LIMIT,
    BODY_LIMIT,
    decode_observation,
    decode_spec,
    decode_state,
    decode_timeline,
    decode_validators,
    differences,
    encode_answer,
    encode_observation,
    encode_spec,
    encode_state,
    encode_validators,
    fingerprint,
    state_of,
)
from tarry.core import CallError, JobState, Observation
from tarry.core.answers import Validators
from tarry.core.noting import MAX_SEEN, MAX_UNKNOWN
from tarry.core.state import Confirming, Seen, Stage, Streak
from tarry.ports import JobRow
from tarry.words import SECOND, CallKind, ErrorKind, Phase, WaitSource
from tests.unit.scripted import GET, POST, Script, http, spec

NOW = 1_790_000_000_000_000
PLAIN = JobState("orders", Phase.WAITING, NOW, None, None)
FULL = JobState(
    key="orders",
    phase=Phase.DONE,
    created_at=NOW,
    deadline=NOW + 1,
    due=NOW + 2,
    wait_source=WaitSource.HINT_BOUND,
    polls=1,
    polled_at=NOW + 3,
    submit_tries=2,
    lost_at=NOW + 10,
    submitted_at=NOW + 4,
    hold_until=NOW + 5,
    nudged_at=NOW + 7,
    closing=True,
    found=4,
    hops=3,
    streak=Streak(5, 4, NOW + 6, 3, 2),
    failed_polls=6,
    confirming=Confirming(Outcome.PARTIAL, 2),
    verdict=Verdict.BLOCKED,
    status="ok\n\u2028\x00",
    progress=0.25,
    seen=(Seen("body.state", "a", 1), Seen("body.state", "b", 2)),
    unknown=("a", "b"),
    error="e",
    wait=7,
    stage=Stage(1, 2, NOW + 9),
    changed_at=NOW + 10,
    stalled=True,
    outcome=Outcome.FAILED,
    reason="r",
    finished_at=NOW + 8,
)


def row(job: JobState, **changes: Any) -> JobRow:
    """A row that agrees with its state, but for the changes."""
    values: dict[str, Any] = {field.name: None for field in fields(JobRow)}
    values |= {
        "id": 1,
        "namespace": "default",
        "key": job.key,
        "state": encode_state(job),
        "phase": job.phase,
        "polls": job.polls,
        "polled_at": job.polled_at,
        "due": job.due,
        "deadline": job.deadline,
        "outcome": job.outcome,
    }
    return JobRow(**(values | changes))


# States.


@pytest.mark.parametrize("state", [PLAIN, FULL, replace(FULL, progress="half"), replace(FULL, progress=1.0)])
def test_a_state_comes_back_as_it_was(state: JobState) -> None:
    """Every field."""
    assert decode_state(encode_state(state)) == state


def test_the_full_state_differs_from_the_default_everywhere() -> None:
    """So the round trip above proves each field."""
    same = [f.name for f in fields(JobState) if getattr(FULL, f.name) == getattr(PLAIN, f.name)]
    assert same == ["key", "created_at"]


@pytest.mark.parametrize("name", [f.name for f in fields(JobState) if f.name not in {"phase", "outcome"}])
def test_each_field_comes_back_alone(name: str) -> None:
    """Whatever the others are; 0 and an empty text are no defaults where those are None."""
    for value in [getattr(FULL, name), 0, ""]:
        state = replace(PLAIN, **{name: value})
        if type(value) is type(getattr(FULL, name)):
            assert decode_state(encode_state(state)) == state


def test_a_state_of_a_usual_job_is_written_as_ever() -> None:
    """Byte for byte, so that versions can be compared in a database."""
    usual = JobState(
        "orders", Phase.WAITING, NOW, None, NOW + 2, wait_source=WaitSource.STRATEGY, polls=3, polled_at=NOW + 1
    )
    usual = replace(usual, found=3, verdict=Verdict.PENDING, status="RUNNING", wait=5, changed_at=NOW, stalled=True)
    usual = replace(usual, seen=(Seen("body.state", "RUNNING", 3),), progress=0.5, streak=Streak(1, 1, NOW))
    assert encode_state(usual) == (
        f'{{"v":1,"key":"orders","phase":"waiting","created_at":{NOW},"due":{NOW + 2},"wait_source":"strategy",'
        f'"polls":3,"polled_at":{NOW + 1},"found":3,"verdict":"pending","status":"RUNNING","progress":0.5,'
        f'"seen":[["body.state","RUNNING",3]],"wait":5,"changed_at":{NOW},"streak":[1,1,{NOW},0,0],"stalled":true}}'
    )


def test_defaults_are_left_out() -> None:
    """A fresh job takes little."""
    assert json.loads(encode_state(PLAIN)) == {"v": 1, "key": "orders", "phase": "waiting", "created_at": NOW}


def test_a_key_that_no_utf8_holds_is_written_all_the_same() -> None:
    """The store refuses it, and says so."""
    odd = replace(PLAIN, key="\ud800", verdict=Verdict.PENDING)
    assert decode_state(encode_state(odd)) == odd


def test_a_whole_number_is_progress_too() -> None:
    """JSON written by hand or by another language may have 1 for 1.0."""
    assert decode_state('{"v":1,"key":"k","phase":"waiting","created_at":1,"progress":1}').progress == 1.0


NASTY = '"\\\x00\ud800\U0001f600€\u2028'


def test_the_worst_state_is_under_2_kb() -> None:
    """With all bounded texts full of what takes most room, and numbers as long as they get."""
    job = spec(
        until=Match("body.state", succeeded="DONE"),
        progress="body.progress",
        reason="body.state",
        strategy=Fixed("1s"),
        limits=Limits(max_polls=999_999_999),
        confirm=1000,
        errors=Errors(not_found_grace=0),
    )
    script = Script(job)
    for n in range(MAX_UNKNOWN + MAX_SEEN):
        script.play(http(200, {"state": f"{n}{NASTY * 50}", "progress": NASTY * 50}))
    script.play(http(500, {"x": NASTY * 100}))
    worst = replace(
        script.state,
        key="k" * 512,
        created_at=NOW,
        deadline=NOW,
        due=NOW,
        polls=999_999_999,
        polled_at=NOW,
        submit_tries=999_999_999,
        found=999_999_999,
        hops=10,
        submitted_at=NOW,
        hold_until=NOW,
        nudged_at=NOW,
        closing=True,
        streak=Streak(999_999_999, 999_999_999, NOW, 999_999, 999_999),
        failed_polls=999_999_999,
        confirming=Confirming(Outcome.SUBMIT_UNKNOWN, 1000),
        seen=tuple(replace(one, times=999_999_999) for one in script.state.seen),
        wait=NOW,
        wait_source=WaitSource.STRATEGY_ERROR,
        stage=Stage(99, 999_999_999, NOW),
        changed_at=NOW,
        stalled=True,
        finished_at=NOW,
        reason=script.state.error,
    )
    assert script.state.unknown
    assert script.state.seen
    size = len(encode_state(worst).encode())
    assert size < 2048


def test_many_short_values_stay_under_2_kb() -> None:
    """All places taken, each text small."""
    script = Script(spec(strategy=Fixed("1s")))
    script.play(*(http(200, {"state": f"s-{n:02}"}) for n in range(50)))
    full = replace(script.state, seen=tuple(replace(one, times=999_999_999) for one in script.state.seen))
    assert (len(full.seen), len(full.unknown)) == (MAX_SEEN, MAX_UNKNOWN)
    assert len(encode_state(full).encode()) < 2048 - 700


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "state: damaged"),
        ("{", "state: damaged"),
        ("[" * 100_000, "state: damaged"),
        ("[]", "state: damaged: it has no version"),
        ('{"v":"1"}', "no version"),
        ('{"v":2,"key":"k"}', "state: has version 2; this version of Tarry reads 1"),
        ('{"v":1,"key":"k","phase":"waiting","created_at":NaN}', "NaN is no JSON"),
        ('{"v":1,"phase":"waiting","created_at":1}', "state.key: is missing"),
        (
            '{"v":1,"key":"k","phase":"waiting","created_at":1,"progress":1e999}',
            "state.progress: damaged: expected a num",
        ),
        ('{"v":1,"key":"k","created_at":1}', "state.phase: is missing"),
        ('{"v":1,"key":"k","phase":"waiting"}', "state.created_at: is missing"),
        ('{"v":1,"key":"k","phase":"waiting","created_at":1,"later":2}', "state: unknown field 'later'"),
        ('{"v":1,"key":"k","phase":"done","created_at":1}', "phase done with outcome None"),
        ('{"v":1,"key":"k","phase":"waiting","created_at":1,"outcome":"lost"}', "phase waiting with outcome lost"),
    ],
)
def test_a_damaged_state_is_refused(text: str, problem: str) -> None:
    """With the name of what is wrong."""
    with pytest.raises(CheckpointError, match=problem):
        decode_state(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", 1),
        ("phase", "sleeping"),
        ("created_at", "1"),
        ("created_at", True),
        ("created_at", 1.5),
        ("deadline", None),
        ("wait_source", "magic"),
        ("polls", -1),
        ("closing", 1),
        ("streak", {}),
        ("streak", [1, 2, 3]),
        ("confirming", ["won", 1]),
        ("verdict", 1),
        ("progress", True),
        ("seen", "abc"),
        ("seen", [["a", "b"]]),
        ("unknown", [1]),
        ("outcome", "DONE"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(field: str, value: Any) -> None:
    """Whatever the JSON holds in its place."""
    stored = json.loads(encode_state(FULL)) | {field: value}
    with pytest.raises(CheckpointError, match=rf"^state\.{field}: damaged: "):
        decode_state(json.dumps(stored))


def test_the_columns_of_the_row_are_right() -> None:
    """A permit written off and a deadline moved are in the row alone."""
    state = state_of(row(PLAIN, polls=7, polled_at=NOW, due=NOW + 1, deadline=NOW + 2))
    assert state == replace(PLAIN, polls=7, polled_at=NOW, due=NOW + 1, deadline=NOW + 2)


@pytest.mark.parametrize(("column", "value"), [("key", "other"), ("phase", Phase.BLOCKED), ("outcome", Outcome.LOST)])
def test_a_row_that_contradicts_its_state_is_refused(column: str, value: Any) -> None:
    """Nobody can tell which of the two is right."""
    with pytest.raises(CheckpointError, match=f"its row has {column} {value}"):
        state_of(row(PLAIN, **{column: value}))


def test_a_damaged_row_is_named() -> None:
    """By the key of its job."""
    with pytest.raises(CheckpointError, match=r"job 'orders': state: damaged"):
        state_of(row(PLAIN, state="nonsense"))


SENT = '{"status":200,"headers":{"a":"b"},"body":[1],"url":"https://api.example.com/jobs"}'


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("timeline", "{"),
        ("timeline", "{}"),
        ("timeline", "[1]"),
        ("timeline", '[["1","pending",null]]'),
        ("timeline", "[[1,null,null]]"),
        ("timeline", '[[1,"pending",2]]'),
        ("timeline", "[" * 100_000),
        ("timeline", '[1,0,"pending"]'),
        ("timeline", '["1",0,"pending",null]'),
        ("timeline", '[1,"0","pending",null]'),
        ("timeline", '[2,0,"pending",null]'),
        ("timeline", '[2,0,"pending",null,1]'),
        ("timeline", '[2,0,"pending",null,["pending",null,"1"]]'),
        ("timeline", '[2,0,"pending",null,["pending",1,1]]'),
        ("timeline", '[2,0,"pending",null,["pending",null,1,1]]'),
        ("submit", "{"),
        ("submit", "null"),
        ("submit", '"text"'),
        ("submit", "{}"),
        ("submit", SENT.replace("200", "NaN")),
        ("submit", SENT.replace("200", '"200"')),
        ("submit", SENT.replace('"b"', "1")),
        ("submit", SENT.replace('"url"', '"uri"')),
        ("validators", "{"),
        ("validators", "{}"),
        ("validators", '["u","e"]'),
        ("validators", '[null,"e",null]'),
        ("validators", '["u",1,null]'),
        ("validators", '["u",null,[]]'),
    ],
)
def test_what_a_poll_needs_is_read_before_it(column: str, text: str) -> None:
    """The answer to the submit and the timeline are damaged before anything is sent, not after."""
    with pytest.raises(CheckpointError, match=f"^job 'orders': {column}: damaged: "):
        state_of(row(PLAIN, **{column: text}))


def test_a_progress_that_no_float_holds_is_damaged() -> None:
    """A whole number of any size is JSON, and not every one is a share."""
    stored = json.loads(encode_state(FULL)) | {"progress": 10**400}
    with pytest.raises(CheckpointError, match=r"^state\.progress: damaged: "):
        decode_state(json.dumps(stored))


def test_a_sound_row_is_read_whole() -> None:
    """With the answer to its submit and its timeline, or without: neither is part of the state."""
    sound = row(PLAIN, timeline='[[0,"pending","hint"],[2000,"succeeded",null]]', submit=SENT)
    assert state_of(sound) == state_of(row(PLAIN)) == PLAIN
    assert decode_timeline(sound.timeline) == [(0, "pending", "hint"), (2000, "succeeded", None)]


@pytest.mark.parametrize("found", [None, Validators("u", "e"), Validators("u", None, "d")], ids=["none", "tag", "date"])
def test_validators_come_back_as_they_were(found: Validators | None) -> None:
    """Also that there are none."""
    stored = encode_validators(found)
    assert decode_validators(stored) == found
    assert state_of(row(PLAIN, validators=stored)) == PLAIN


# Specs.

SPECS = [
    spec(),
    spec(submit=POST, input={"a": [1, 2.5, None, "ü"]}, labels={"team": "x"}, confirm=3),
    spec(poll=json.dumps, args={"obj": 1}),
    spec(limits=Limits(max_polls=None, total_duration=None), until=~Match("body.a", succeeded=1)),
    JobSpec.model_validate({"poll": {"method": "GET", "url": GET.url}, "until": {"type": "status"}}),
]


@pytest.mark.parametrize("made", SPECS)
def test_a_spec_comes_back_as_it_was(made: JobSpec) -> None:
    """With what was set, and no more: a default that changes later is adopted."""
    again = decode_spec(encode_spec(made))
    assert again == made
    assert encode_spec(again) == encode_spec(made)
    assert "min_interval" not in encode_spec(made)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x", "spec: damaged"),
        ('{"v":9,"spec":{}}', "spec: has version 9"),
        ('{"v":1}', "spec: cannot be read"),
        ('{"v":1,"spec":{"pol":1}}', "spec: cannot be read"),
    ],
)
def test_a_damaged_spec_is_refused(text: str, problem: str) -> None:
    """Never taken for an empty one."""
    with pytest.raises(CheckpointError, match=problem):
        decode_spec(text)


def test_the_fingerprint_is_of_the_submit_and_the_input() -> None:
    """All else may change under the same key."""
    base = spec(submit=POST, input={"a": 1, "b": 2})
    same = spec(
        submit=POST, input={"b": 2, "a": 1}, strategy=Fixed("9s"), poll=Request("GET", "https://x.example.com/")
    )
    assert fingerprint(base) == fingerprint(same)
    assert len(fingerprint(base)) == 64
    others = [
        spec(submit=Request("POST", POST.url, json={"dataset": "other"}), input={"a": 1, "b": 2}),
        spec(submit=POST, input={"a": 1}),
        spec(submit=POST),
        spec(input={"a": 1, "b": 2}),
    ]
    assert len({fingerprint(other) for other in [base, *others]}) == 5


def test_without_a_submit_the_poll_counts() -> None:
    """And the input that its template may name."""
    assert fingerprint(spec()) == fingerprint(spec(confirm=2))
    other = spec(poll=Request("GET", "https://api.example.com/jobs/2"))
    assert len({fingerprint(one) for one in (spec(), other, spec(input=1), spec(input=2))}) == 4


def test_a_callable_counts_by_its_name_and_arguments() -> None:
    """Not by its code."""
    one = spec(poll=json.dumps, args={"obj": 1})
    assert fingerprint(one) == fingerprint(spec(poll=json.dumps, args={"obj": 1}))
    assert len({fingerprint(s) for s in (one, spec(poll=json.loads), spec(poll=json.dumps, args={"obj": 2}))}) == 3


def test_the_arguments_of_a_request_do_not_count() -> None:
    """They are those of a callable."""
    assert fingerprint(spec(submit=POST, args={"a": 1})) == fingerprint(spec(submit=POST))


def test_differences_are_dotted_names() -> None:
    """Sorted; what one side did not set is a difference too, and values are not shown."""
    old = spec(limits=Limits(max_polls=3), confirm=2, labels={"a": "1"})
    new = spec(limits=Limits(max_polls=4, min_interval="2s"), poll=Request("GET", GET.url, params={"x": 1}))
    assert differences(old, new) == ["confirm", "labels", "limits.max_polls", "limits.min_interval", "poll.params"]
    assert differences(old, old) == []


# Observations.


def seen(body: Any = None, *, is_json: bool = True, **changes: Any) -> Observation:
    return replace(Observation(CallKind.POLL, NOW, NOW + 5, 200, {}, body, is_json, GET.url), **changes)


@pytest.mark.parametrize(
    "one",
    [
        seen({"a": [1, None, 2.5, "ü\x00"]}),
        seen("<html>", is_json=False, headers={"content-type": "text/html", "retry-after": "5"}),
        seen(status=None, url=None, is_json=False, error=CallError(ErrorKind.CONNECT, "refused", sent=False)),
    ],
)
def test_an_observation_comes_back_as_it_was(one: Observation) -> None:
    """As long as it is small."""
    assert decode_observation(encode_observation(one)) == one


def test_only_helpful_headers_are_kept() -> None:
    """A cookie is not stored."""
    one = seen(headers={"etag": "x", "set-cookie": "s=1", "x-unheard-of": "y", "location": "/" + "l" * 9000})
    kept = decode_observation(encode_observation(one)).headers
    assert set(kept) == {"etag", "location"}
    assert len(kept["location"]) == 4096


def test_keep_selects_what_is_stored_of_the_body() -> None:
    """Of JSON alone; an expression that fails on this body costs the body, not the poll."""
    one = seen({"big": "x", "small": 1})
    assert decode_observation(encode_observation(one, "small")).body == 1
    assert decode_observation(encode_observation(one, "nothing")).body is None
    assert decode_observation(encode_observation(one, "sum(big)")).body == "[keep: JMESPathTypeError]"
    assert decode_observation(encode_observation(seen("text", is_json=False), "small")).body == "text"


@pytest.mark.parametrize("body", ["€" * 20_000, {"a": "€" * 20_000}, list(range(20_000))])
def test_a_large_body_is_cut_with_a_mark(body: Any) -> None:
    """It is text then, whatever it was, and never half a character."""
    stored = decode_observation(encode_observation(seen(body)))
    assert isinstance(stored.body, str)
    assert stored.body.endswith(" bytes]")
    assert "… [cut, " in stored.body
    assert len(stored.body.encode()) < BODY_LIMIT + 40
    assert not stored.is_json


def test_a_body_of_just_the_limit_is_whole() -> None:
    """And one byte more is not."""
    assert decode_observation(encode_observation(seen("x" * BODY_LIMIT))).body == "x" * BODY_LIMIT
    assert decode_observation(encode_observation(seen("x" * (BODY_LIMIT + 1)))).body != "x" * (BODY_LIMIT + 1)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "body",
    [
        float("nan"),
        {"a": [float("inf"), -float("inf")]},
        "\ud800",
        {"\udfff": 1, 2: {"b": "\ud800"}},
        [10**5000],
        nested(900),
        nested(5000),
        (1, 2),
        object(),
    ],
    ids=["nan", "infinite", "surrogate", "names", "huge", "deep", "deeper", "tuple", "object"],
)
def test_what_json_cannot_hold_never_reaches_the_text(body: Any) -> None:
    """Bodies of callables included; the text is strict JSON in clean UTF-8."""

    def strict(name: str) -> None:
        raise AssertionError(name)

    for text in (encode_observation(seen(body)), encode_answer(seen(body))):
        text.encode("utf-8")
        json.loads(text, parse_constant=strict)


def test_details_and_urls_are_bounded_and_clean() -> None:
    """They come from outside too."""
    one = seen(url="https://x.example.com/" + "\ud800" * 9000, error=CallError(ErrorKind.PROTOCOL, "\ud800" * 9000))
    stored = decode_observation(encode_observation(one))
    assert stored.url is not None
    assert stored.error is not None
    assert (len(stored.url), len(stored.error.detail)) == (8192, 500)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        '{"v":1}',
        '{"v":2,"kind":"poll","started_at":1,"finished_at":2}',
        '{"v":1,"kind":"look","started_at":1,"finished_at":2}',
        '{"v":1,"kind":"poll","started_at":"1","finished_at":2}',
        '{"v":1,"kind":"poll","started_at":1,"finished_at":2,"status":"200"}',
        '{"v":1,"kind":"poll","started_at":1,"finished_at":2,"headers":[]}',
        '{"v":1,"kind":"poll","started_at":1,"finished_at":2,"headers":{"a":1}}',
        '{"v":1,"kind":"poll","started_at":1,"finished_at":2,"is_json":1}',
        '{"v":1,"kind":"poll","started_at":1,"finished_at":2,"error":{"kind":"connect"}}',
        '{"v":1,"kind":"poll","started_at":1,"finished_at":2,"error":[1]}',
    ],
)
def test_a_damaged_observation_is_refused(text: str) -> None:
    """One error for all that can be wrong with it."""
    with pytest.raises(CheckpointError, match=r"^observation: "):
        decode_observation(text)


def test_the_submits_answer_is_the_document_that_templates_see() -> None:
    """Status, headers, body and url, without the headers that carry credentials."""
    answered = seen({"jobId": "j1"}, headers={"x-job": "j1", "set-cookie": "s=1", "location": "/jobs/1"}, status=202)
    assert json.loads(encode_answer(answered)) == {
        "status": 202,
        "headers": {"x-job": "j1", "location": "/jobs/1"},
        "body": {"jobId": "j1"},
        "url": GET.url,
    }


def test_the_submits_answer_is_bounded() -> None:
    """Far above what an answer to a submit takes."""
    assert len(encode_answer(seen("x" * (2 * ANSWER_LIMIT)))) < ANSWER_LIMIT + 1000


def test_a_stored_job_goes_on_as_if_nothing_had_happened() -> None:
    """A state read back decides as the one that was written."""
    script = Script(spec(strategy=Fixed("10s")))
    script.play(http(200, {"state": "QUEUED"}), http(500), http(200, {"state": "odd"}))
    assert decode_state(encode_state(script.state)) == script.state
    assert script.now == 25 * SECOND
