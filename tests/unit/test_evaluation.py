from __future__ import annotations

from typing import Any

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarry.core.conditions import Acceptors, Expression
from tarry.core.evaluation import BUDGET, Judging, Listing, Reading, TooCostly, size
from tarry.core.expressions import search
from tarry.words import Verdict

MANY = {"items": [{"state": "DONE", "size": n % 7, "name": "x" * 300} for n in range(20_000)]}
DOUBLED = "[@,@]|" * 8


@pytest.mark.parametrize(
    "expression",
    [
        "items[?state != 'DONE']",
        "items[*].[state, size][]",
        "length(items)",
        "sort_by(items, &size)[0].name",
        "max_by(items, &size).size",
        "items[*].name | join('', @) | length(@)",
        "items[::2] | length(@)",
        "to_string(items) | length(@)",
        "sum(items[*].size)",
    ],
)
def test_a_large_answer_can_be_read(expression: str) -> None:
    """What goes through all of a large answer once is well within bounds, and right."""
    assert search(expression, MANY) == jmespath.search(expression, MANY)


@pytest.mark.parametrize(
    "expression",
    [
        "map(&to_string(@), items) | [@,@,@,@] | to_string(@)",
        "items[*].name | " + DOUBLED + "to_string(@)",
        "items | " + DOUBLED + "@",
        "items[*].[@,@][] | [*].[@,@][] | [*].[@,@][] | [*].[@,@][]",
        f"[({DOUBLED} @) == ({DOUBLED} @)] | [@,@,@,@,@,@]",
        "items[*].name | [@,@,@,@,@,@,@,@,@,@][] | [@,@,@,@,@,@,@,@,@,@][]",
        "items | [@[::],@[::],@[::],@[::],@[::],@[::],@[::],@[::]][] | [@[::],@[::],@[::],@[::],@[::],@[::],@[::]]",
    ],
)
@pytest.mark.parametrize("reading", [Reading, Judging, Listing])
def test_a_runaway_ends(expression: str, reading: type[Reading]) -> None:
    """An expression that multiplies what it is given is given up, before it takes the memory."""
    with pytest.raises(TooCostly, match="1,000,000 steps"):
        search(expression, MANY, reading)


def test_huge_numbers_count_for_what_they_are() -> None:
    """A number of thousands of digits is not a step."""
    with pytest.raises(TooCostly):
        search(DOUBLED + "to_string(@)", [1 << 14_000] * 20)


@pytest.mark.parametrize(
    ("value", "steps"),
    [(None, 1), (True, 1), ("x" * 32, 3), (1 << 640, 11), (["a", ["b"]], 4), ({"k": {"l": 1}}, 5)],
)
def test_the_size_of_a_value_counts_all_that_is_inside(value: object, steps: int) -> None:
    """Each scalar, name, list and object is one, long texts and numbers are more."""
    assert size(value, BUDGET) == steps


def test_counting_stops_where_it_is_enough() -> None:
    """A value is not gone through past what was asked for."""
    shared: list[Any] = []
    for _ in range(100):
        shared = [shared, shared]
    assert 50 < size(shared, 50) < 60


@pytest.mark.parametrize(
    ("expression", "body", "is_true"),
    [
        ("body.done == body.total", {}, False),
        ("body.done == body.total", {"done": None, "total": None}, False),
        ("body.done == body.total", {"done": 3, "total": 3}, True),
        ("body.done == body.total", {"done": 0, "total": 0}, True),
        ("body.done == body.total", {"done": 3}, False),
        ("body.done != body.total", {}, False),
        ("!(body.done != body.total)", {}, False),
        ("!(body.done == body.total)", {}, False),
        ("!(body.done == body.total)", {"done": 3}, True),
        ("!(!(body.done == body.total))", {}, False),
        ("body.jobs[?done == total]", {"jobs": [{}]}, False),
        ("body.error == `null`", {}, True),
        ("!(body.error != `null`)", {}, True),
        ("body.a < body.b", {}, False),
    ],
)
def test_two_missing_values_make_nothing_true(expression: str, body: object, is_true: bool) -> None:
    """Counters that are not there yet are not equal counters, whichever way the question is put."""
    verdict = Acceptors([(expression, "succeeded"), ("`true`", "pending")]).judge({"body": body}).verdict
    assert (verdict is Verdict.SUCCEEDED) == is_true


def test_an_expression_with_nothing_to_compare_is_not_done() -> None:
    """`Expression` compares as `Acceptors` does."""
    assert Expression("body.done == body.total").judge({"body": {}}).verdict is Verdict.PENDING


@pytest.mark.parametrize(
    ("error", "has"),
    [
        (None, False),
        ("", False),
        ({}, False),
        ([], False),
        ("   ", False),
        ("boom", True),
        ({"code": 1}, True),
        (0, True),
    ],
)
def test_an_error_of_blanks_can_be_told_from_one(error: object, has: bool) -> None:
    """`trim` makes the test for an error that says something."""
    condition = Acceptors([("body.error && trim(to_string(body.error))", "failed"), ("body.state", "succeeded")])
    verdict = condition.judge({"body": {"state": "COMPLETED", "error": error}}).verdict
    assert verdict is (Verdict.FAILED if has else Verdict.SUCCEEDED)


def test_trim_takes_texts_and_nothing() -> None:
    """A missing text stays missing, as with `lower`."""
    assert search("trim(a)", {"a": "\t x y \n"}) == "x y"
    assert search("trim(a)", {}) is None


NAMES = st.sampled_from(["a", "b", "c"])
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "DONE"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
STEPS = st.sampled_from(
    [".a", ".b", "[0]", "[-1]", "[*]", "[]", ".*", "[1:]", "[?a]", "[?a == b]", "[?!(a)]", ".[a, b]"]
)
PATHS = st.builds(lambda head, steps: head + "".join(steps), NAMES, st.lists(STEPS, max_size=4))
EXPRESSIONS = st.recursive(
    PATHS | st.sampled_from(["`1`", "`null`", "'DONE'", "`[]`", "@"]),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["==", "!=", "<", ">=", "&&", "||", "|"]), inner)
        | st.builds("!({})".format, inner)
        | st.builds("{}({})".format, st.sampled_from(["length", "type", "to_string", "keys", "sort", "sum"]), inner)
        | st.builds("map(&{}, {})".format, inner, inner)
        | st.builds("contains({}, {})".format, inner, inner)
        | st.builds("[{}, {}]".format, inner, inner)
    ),
    max_leaves=5,
)


def outcome(call: Any) -> object:
    """What a call gives, or the kind of what it raises."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001  # whatever it raises is to be the same
        return type(error)


@given(EXPRESSIONS, DOCUMENTS)
def test_reading_is_jmespath(expression: str, document: object) -> None:
    """For any expression and document, within bounds, the answer is that of JMESPath, errors included."""
    assert outcome(lambda: search(expression, document)) == outcome(lambda: jmespath.search(expression, document))


@given(EXPRESSIONS, DOCUMENTS)
def test_no_expression_ends_a_job_by_accident(expression: str, document: object) -> None:
    """Judging and listing answer or raise an ordinary error, which is a failed poll."""
    for reading in (Judging, Listing):
        found = outcome(lambda reading=reading: search(expression, document, reading))
        assert not isinstance(found, type) or issubclass(found, Exception)
