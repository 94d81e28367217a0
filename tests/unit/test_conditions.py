from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pydantic import TypeAdapter

from tarry.core.conditions import (
    Acceptors,
    AllOf,
    AnyCondition,
    AnyOf,
    Condition,
    Custom,
    Expression,
    InvalidAnswer,
    Judgement,
    Match,
    Not,
    Status,
)
from tarry.core.function import Function, as_function
from tarry.core.judgement import short
from tarry.errors import SpecError
from tarry.words import Verdict

EXPORT = Match("body.state", succeeded="SUCCEEDED", failed="FAILED", pending=["QUEUED", "RUNNING"])


def state(value: object) -> dict[str, Any]:
    return {"status": 200, "headers": {}, "body": {"state": value}}


def is_done(document: dict[str, Any]) -> bool:
    return document["body"]["state"] == "DONE"


async def is_done_later(document: dict[str, Any]) -> bool:
    return document["body"]["state"] == "DONE"


class Judges:
    async def __call__(self, document: dict[str, Any]) -> bool:
        return bool(document)

    def plainly(self, document: dict[str, Any]) -> bool:
        return bool(document)


# Match


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        ("SUCCEEDED", Verdict.SUCCEEDED),
        ("succeeded", Verdict.SUCCEEDED),
        ("Running", Verdict.PENDING),
        ("FAILED", Verdict.FAILED),
        (None, Verdict.PENDING),
        ("DONE", Verdict.UNKNOWN),
        ({"state": "SUCCEEDED"}, Verdict.UNKNOWN),
        (["SUCCEEDED"], Verdict.UNKNOWN),
        (1, Verdict.UNKNOWN),
        (float("nan"), Verdict.UNKNOWN),
    ],
)
def test_match_sorts_a_status(value: object, verdict: Verdict) -> None:
    """A named value has its verdict whatever its case, nothing is pending, and what no set names is unknown."""
    assert EXPORT.judge(state(value)).verdict is verdict


def test_match_may_care_about_case_and_fail_what_it_does_not_know() -> None:
    """With `case_sensitive` and unknown="failed" another spelling ends the job; a missing one does not."""
    strict = Match("body.state", succeeded="Done", case_sensitive=True, unknown="failed")
    assert strict.judge(state("Done")).verdict is Verdict.SUCCEEDED
    assert strict.judge(state("done")).verdict is Verdict.FAILED
    assert strict.judge(state(None)).verdict is Verdict.PENDING


@pytest.mark.parametrize(
    ("named", "value", "verdict"),
    [
        (1, 1, Verdict.SUCCEEDED),
        (1, 1.0, Verdict.SUCCEEDED),
        (1, True, Verdict.UNKNOWN),
        (1, "1", Verdict.UNKNOWN),
        (True, True, Verdict.SUCCEEDED),
        (True, 1, Verdict.UNKNOWN),
        (False, False, Verdict.SUCCEEDED),
        (0, False, Verdict.UNKNOWN),
        ("", "", Verdict.SUCCEEDED),
    ],
)
def test_match_tells_texts_numbers_and_booleans_apart(named: Any, value: object, verdict: Verdict) -> None:
    """1 and 1.0 are the same number; 1, true and "1" are three values."""
    assert Match("body.state", succeeded=named).judge(state(value)).verdict is verdict


def test_match_names_every_verdict() -> None:
    """Each of its sets answers its own verdict."""
    names = ["succeeded", "failed", "pending", "cancelled", "blocked", "partial", "expired", "skipped"]
    match = Match.model_validate({"path": "body.state", **{name: f"is-{name}" for name in names}})
    assert [match.judge(state(f"is-{name}")).verdict for name in names] == names


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("DONE", "DONE"),
        (True, "true"),
        (False, "false"),
        (20, "20"),
        (0.5, "0.5"),
        pytest.param(10**5000, "a huge number", id="huge"),
        ({"a": 1}, "object"),
        ([1], "list"),
        ("x" * 61, "x" * 59 + "…"),
        ("a\nCRITICAL fake\x1b[2J\ud800", "a\ufffdCRITICAL fake\ufffd[2J\ufffd"),
    ],
)
def test_what_match_saw_is_kept_for_people(value: object, shown: str) -> None:
    """The status is one printable line of at most 60 characters, next to its path."""
    judgement = EXPORT.judge(state(value))
    assert judgement.value == shown
    assert judgement.seen == (("body.state", shown),)


def test_a_missing_status_is_shown_as_missing() -> None:
    """There is no status to show, but the path was looked at."""
    assert EXPORT.judge({"body": None}) == Judgement(Verdict.PENDING, None, (("body.state", "missing"),))


def test_what_is_no_json_is_shown_by_its_kind() -> None:
    """A polled callable may return anything; it is named, never printed."""
    assert short(object()) == "object"
    assert short(b"secret") == "bytes"
    assert short((1, 2)) == "list"


# Status


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (200, Verdict.SUCCEEDED),
        (202, Verdict.PENDING),
        (204, Verdict.UNKNOWN),
        (404, Verdict.FAILED),
        (410, Verdict.EXPIRED),
        (500, Verdict.UNKNOWN),
        (None, Verdict.PENDING),
    ],
)
def test_status_sorts_codes(code: int | None, verdict: Verdict) -> None:
    """The code is the verdict, an exact code before its family; what is not named is unknown."""
    condition = Status(failed="4xx", expired=410)
    assert condition.judge({"status": code}).verdict is verdict
    assert condition.roots == {"status"}


@pytest.mark.parametrize("code", [99, 600, True, "200", "6xx", "2XX", 200.0, None])
def test_status_refuses_what_is_no_code(code: Any) -> None:
    """Codes are 100 to 599 or families from 1xx to 5xx."""
    with pytest.raises(SpecError, match=r"Status\.succeeded\[0\]: no status; write a code"):
        Status(succeeded=[code])


# Acceptors and Expression


def test_the_first_acceptor_that_matches_decides() -> None:
    """Order decides when a success and a failure both match; none matching is unknown."""
    condition = Acceptors([("body.error", "failed"), ("body.state == 'DONE'", "succeeded"), ("body.n", "pending")])
    assert condition.judge({"body": {"state": "DONE", "error": "boom"}}).verdict is Verdict.FAILED
    assert condition.judge(state("DONE")).verdict is Verdict.SUCCEEDED
    assert condition.judge({"body": {"n": 0}}).verdict is Verdict.PENDING
    assert condition.judge(state("x")) == Judgement(
        Verdict.UNKNOWN, "x", (("body.error", "missing"), ("body.state", "x"), ("body.n", "missing"))
    )


@pytest.mark.parametrize("error", ["", None, {}, [], False])
def test_an_empty_error_is_no_error(error: object) -> None:
    """A key without content does not turn a good job into a failure."""
    condition = Acceptors([("body.error", "failed"), ("body.state", "succeeded")])
    assert condition.judge({"body": {"state": "DONE", "error": error}}).verdict is Verdict.SUCCEEDED


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (True, Verdict.SUCCEEDED),
        (1, Verdict.SUCCEEDED),
        (1.0, Verdict.SUCCEEDED),
        (False, Verdict.PENDING),
        (0, Verdict.PENDING),
        (-1, Verdict.FAILED),
    ],
)
def test_an_expression_answers_in_three_states(answer: object, verdict: Verdict) -> None:
    """True or 1 is success, false or 0 goes on, -1 fails."""
    assert Expression("body.state").judge(state(answer)).verdict is verdict


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "nothing (null)"),
        (2, "the number 2"),
        (-2, "the number -2"),
        (0.5, "the number 0.5"),
        (float("nan"), "the number nan"),
        ("succeeded", "the text succeeded"),
        ("", "the text "),
        ([], "list"),
        ({"a": 1}, "object"),
    ],
)
def test_any_other_answer_of_an_expression_is_invalid(answer: object, told: str) -> None:
    """Nothing is taken for true or false; what came is told."""
    with pytest.raises(InvalidAnswer) as caught:
        Expression("body.state").judge(state(answer))
    assert str(caught.value) == told


def test_an_expression_that_raises_has_not_judged() -> None:
    """A wrong type in the answer is an error of this poll, not an invalid answer."""
    with pytest.raises(Exception, match="lower") as caught:
        Expression("lower(body.state) == 'done'").judge(state(5))
    assert not isinstance(caught.value, InvalidAnswer)


def test_only_the_answer_is_shown_and_only_so_much_of_it() -> None:
    """What was seen leaves out the job's input and ends after eight paths."""
    condition = Expression("input.goal == body.a && polls > `1` && " + " && ".join(f"body.p{n}" for n in range(20)))
    with pytest.raises(InvalidAnswer):
        condition.judge({"input": {"goal": 1}, "polls": 2, "body": {"a": 1}})
    seen = Acceptors([(condition.expression, "succeeded")]).judge({"body": {"a": 1}}).seen
    assert [path for path, _ in seen] == ["body.a", *(f"body.p{n}" for n in range(7))]


# Callables


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (True, Verdict.SUCCEEDED),
        (0, Verdict.PENDING),
        (-1, Verdict.FAILED),
        ("blocked", Verdict.BLOCKED),
        (Verdict.PARTIAL, Verdict.PARTIAL),
    ],
)
def test_a_callable_answers_a_verdict_its_word_or_a_number(answer: object, verdict: Verdict) -> None:
    """Whatever it may answer is understood."""
    assert Custom(lambda _document: answer).judge(state("x")) == Judgement(verdict)


@pytest.mark.parametrize("answer", ["done", "SUCCEEDED", None, 2, [True]])
def test_a_callable_that_answers_something_else_is_invalid(answer: object) -> None:
    """Its words are the verdicts' own, in lower case."""
    with pytest.raises(InvalidAnswer):
        Custom(lambda _document: answer).judge(state("x"))


def test_a_callable_cannot_change_what_others_see() -> None:
    """It gets a copy all the way down."""

    def spoil(document: dict[str, Any]) -> bool:
        document["body"]["state"] = "SUCCEEDED"
        document["body"]["list"].append(1)
        return False

    document = {"body": {"state": "QUEUED", "list": []}}
    assert (Custom(spoil) | EXPORT).judge(document).verdict is Verdict.PENDING
    assert document == {"body": {"state": "QUEUED", "list": []}}


@pytest.mark.parametrize("condition", [is_done_later, Judges()])
def test_an_async_condition_is_refused(condition: Callable[..., Any]) -> None:
    """There is nobody to await it: the spec says so at once."""
    with pytest.raises(SpecError, match="an async condition; write a plain function"):
        EXPORT & condition


def test_an_async_condition_that_slipped_in_is_invalid() -> None:
    """Its coroutine is closed, not left unawaited."""
    with pytest.raises(InvalidAnswer, match="coroutine"):
        Custom(is_done_later).judge(state("DONE"))


def test_an_importable_callable_travels_by_name() -> None:
    """Its JSON holds the name alone, and what is loaded from it is equal and calls the same function."""
    condition = TypeAdapter(AnyCondition).validate_python(is_done)
    name = f"{__name__}:is_done"
    dumped = condition.model_dump(mode="json", exclude_unset=True)
    assert dumped == {"type": "custom", "by": {"function": name, "inline": False}}
    loaded = Custom.model_validate(dumped)
    assert loaded == condition
    assert loaded.by.call is None


def test_a_loaded_function_is_found_when_it_is_needed() -> None:
    """A name leads to its callable, once."""
    function = Function(function="json:dumps")
    assert function.call is None
    assert function.load() is json.dumps
    assert function.load() is function.call


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (Function(function="no_such_module:f"), "is not known here"),
        (Function(function="json:no_such_name"), "is not known here"),
        (Function(function=":f"), "is not known here"),
        (Function(function="json:__name__"), "is not known here"),
        (Function(function="app:<lambda>", inline=True), "only in the process that wrote it"),
    ],
)
def test_a_function_that_cannot_be_had_says_why(function: Function, why: str) -> None:
    """LookupError names the function and the reason."""
    with pytest.raises(LookupError, match=why) as caught:
        function.load()
    assert function.function in str(caught.value)


@pytest.mark.parametrize(
    ("call", "inline"),
    [
        (json.dumps, False),
        (json.JSONDecoder.decode, False),
        (lambda: None, True),
        (Judges(), True),
        (Judges().plainly, True),
        (partial(json.dumps), True),
    ],
)
def test_inline_is_what_no_name_leads_back_to(call: Callable[..., Any], *, inline: bool) -> None:
    """Lambdas, bound methods, instances and partials cannot travel."""
    function = as_function(call)
    assert isinstance(function, Function)
    assert function.inline is inline
    assert function.load() is call


def test_a_name_never_imports() -> None:
    """A name may come from a store, so it finds only what this process has imported on its own."""
    assert "this" not in sys.modules
    with pytest.raises(LookupError, match="import this"):
        Function(function="this:s").load()
    assert "this" not in sys.modules


def test_functions_are_equal_by_name() -> None:
    """A loaded function equals the one that was stored, and hashes alike."""
    assert as_function(json.dumps) == Function(function="json:dumps")
    assert hash(as_function(json.dumps)) == hash(Function(function="json:dumps"))
    assert Function(function="json:dumps") != Function(function="json:loads")
    assert Function(function="json:dumps") != "json:dumps"


@pytest.mark.parametrize("value", [5, "text", EXPORT, Match])
def test_only_callables_become_functions(value: object) -> None:
    """Anything else, classes and models included, comes back as it was."""
    assert as_function(value) is value


# Together


@pytest.mark.parametrize(
    ("text", "both", "either"),
    [
        ("succeeded succeeded", "succeeded", "succeeded"),
        ("succeeded pending", "pending", "succeeded"),
        ("pending pending", "pending", "pending"),
        ("failed succeeded", "failed", "succeeded"),
        ("pending failed", "failed", "pending"),
        ("cancelled failed", "cancelled", "cancelled"),
        ("expired pending", "expired", "pending"),
        ("blocked succeeded", "pending", "succeeded"),
        ("blocked unknown", "pending", "blocked"),
        ("unknown pending", "pending", "pending"),
        ("partial succeeded", "partial", "partial"),
        ("succeeded skipped", "skipped", "succeeded"),
        ("failed blocked", "failed", "failed"),
    ],
)
def test_conditions_combine(text: str, both: str, either: str) -> None:
    """`&` takes the first terminal failure, then success of both, then pending; `|` success, pending, the first."""
    one, other = (Custom(lambda _document, word=word: word) for word in text.split())
    assert (one & other).judge({}).verdict == both
    assert (one | other).judge({}).verdict == either


@pytest.mark.parametrize("verdict", list(Verdict))
def test_not_swaps_success_and_pending_only(verdict: Verdict) -> None:
    """A failure stays a failure, and so does everything else."""
    swapped = {Verdict.SUCCEEDED: Verdict.PENDING, Verdict.PENDING: Verdict.SUCCEEDED}
    condition = ~Custom(lambda _document: verdict)
    assert condition.judge({}).verdict is swapped.get(verdict, verdict)


def test_callables_join_from_either_side() -> None:
    """A plain callable stands left or right of & and |."""
    assert (is_done & EXPORT).judge(state("DONE")).verdict is Verdict.PENDING
    assert (EXPORT & is_done).judge(state("FAILED")).verdict is Verdict.FAILED
    assert (is_done | EXPORT).judge(state("DONE")).verdict is Verdict.SUCCEEDED
    assert (EXPORT | is_done).judge(state("DONE")).verdict is Verdict.SUCCEEDED


def test_chains_of_one_kind_stay_flat() -> None:
    """A & b & c is one condition of three parts, and so is a | b | c."""
    assert len((EXPORT & EXPORT & EXPORT).of) == 3
    assert len((EXPORT | EXPORT | EXPORT).of) == 3
    assert len((is_done & (EXPORT & EXPORT)).of) == 3
    assert len(((EXPORT & EXPORT) | EXPORT).of) == 2


def test_what_all_parts_saw_is_kept_once() -> None:
    """The status shown is that of the part which decided; what was seen is merged."""
    failing = Match("body.code", succeeded=0, failed=1)
    judgement = (EXPORT & failing & EXPORT).judge({"body": {"state": "RUNNING", "code": 1}})
    assert judgement == Judgement(Verdict.FAILED, "1", (("body.state", "RUNNING"), ("body.code", "1")))


def test_a_part_after_the_decision_is_not_asked() -> None:
    """A failure ends `&` and a success ends `|`, so a later part cannot spoil them."""

    def never(_document: dict[str, Any]) -> bool:
        raise AssertionError

    assert (EXPORT & never).judge(state("FAILED")).verdict is Verdict.FAILED
    assert (EXPORT | never).judge(state("SUCCEEDED")).verdict is Verdict.SUCCEEDED


def test_what_a_condition_reads_and_calls_is_known() -> None:
    """Roots and callables are found through every combination; a callable reads the body."""
    plain = ~(EXPORT & Expression("status == `200` || input.fast")) | Acceptors([("headers.done", "succeeded")])
    assert plain.roots == {"body", "status", "input", "headers"}
    assert plain.is_plain
    assert plain.functions == ()
    called = ~(Status() | is_done)
    assert called.roots == {"status", "body"}
    assert not called.is_plain
    assert [function.call for function in called.functions] == [is_done]


@pytest.mark.parametrize(
    "condition",
    [
        EXPORT,
        Match("body.n", succeeded=[1, True, "1"], unknown="failed", case_sensitive=True),
        Status(),
        Status(succeeded="2xx", pending=(), failed=[404, "5xx"]),
        Acceptors([("body.done", "succeeded"), ("body.error", "failed")]),
        Expression("body.done"),
        EXPORT & Status() | ~Expression("body.done"),
        AllOf(of=(EXPORT,)) & is_done,
        AnyOf(of=(Not(EXPORT), Status())),
    ],
)
def test_a_condition_survives_json(condition: Condition) -> None:
    """What was set is enough to load an equal condition, through its class and through the union."""
    dumped = json.loads(condition.model_dump_json(exclude_unset=True))
    assert type(condition).model_validate(dumped) == condition
    assert TypeAdapter(AnyCondition).validate_python(dumped) == condition
    assert type(condition).model_validate(condition.model_dump(mode="json")) == condition


def test_conditions_have_a_json_schema() -> None:
    """Editors can complete a condition by its type."""
    schema = TypeAdapter(AnyCondition).json_schema()
    assert set(schema["discriminator"]["mapping"]) == {
        "match",
        "status",
        "acceptors",
        "expression",
        "custom",
        "all_of",
        "any_of",
        "not",
    }
