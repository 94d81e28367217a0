from __future__ import annotations

import re

import pytest
from jmespath.exceptions import JMESPathError

from tarry.core.expressions import DOCUMENT, checked, paths, roots, search

BODY = {"body": {"jobs": [{"state": "RUNNING"}, {"state": "DONE"}], "n": 3}, "headers": {"x-y": "1"}}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("body.jobs[0].state", "RUNNING"),
        ("body.jobs[-1].state", "DONE"),
        ("body.jobs[2].state", None),
        ("body.jobs[-3]", None),
        ("body.n.deeper", None),
        ("body.n[0]", None),
        ("body.missing", None),
        ('headers."x-y"', "1"),
        ("@.body.n", 3),
        ("@", BODY),
        ("body.jobs[*].state", ["RUNNING", "DONE"]),
        ("body.jobs[?state=='DONE'] | [0].state", "DONE"),
        ("lower(body.jobs[0].state)", "running"),
        ("lower(body.missing)", None),
    ],
)
def test_an_expression_selects(expression: str, expected: object) -> None:
    """Plain paths and full JMESPath give what JMESPath says, null where a name is missing."""
    assert search(expression, BODY) == expected


def test_lower_takes_texts_only() -> None:
    """A wrong type is JMESPath's own error, never a guess."""
    with pytest.raises(JMESPathError):
        search("lower(body.n)", BODY)


@pytest.mark.parametrize(
    ("expression", "names", "read"),
    [
        ("body.jobs[0].state", {"body"}, ("body.jobs[0].state",)),
        ('headers."x-y"', {"headers"}, ('headers."x-y"',)),
        ("body.items[?status=='x'].id", {"body"}, ("body.items",)),
        ("body.a[1:2]", {"body"}, ("body.a",)),
        ("body.a[*].b | [0]", {"body"}, ("body.a",)),
        ("body.*", {"body"}, ("body",)),
        ("body.a[]", {"body"}, ("body.a",)),
        ("body | state", {"body"}, ("body.state",)),
        ("@ | body.state", {"body"}, ("body.state",)),
        ("body.{a: x, b: y}", {"body"}, ("body.x", "body.y")),
        ("body.['a']", {"body"}, ("body",)),
        ("contains(['a'], lower(body.s)) && status==`200`", {"body", "status"}, ("body.s", "status")),
        ("body.s == 'a' || body.s == 'b'", {"body"}, ("body.s",)),
        ("sort_by(body.items, &size)", {"body"}, ("body.items",)),
        ("!(error)", {"error"}, ("error",)),
        ("'text' | [0]", set(), ()),
        ("`1`", set(), ()),
        ("@", DOCUMENT, ()),
        ("length(@)", DOCUMENT, ()),
        ("*", DOCUMENT, ()),
        ("[0]", DOCUMENT, ("[0]",)),
    ],
)
def test_what_an_expression_reads_is_known(expression: str, names: set[str], read: tuple[str, ...]) -> None:
    """Its top-level names and plain paths are found; reading the document as a whole means all names."""
    assert roots(expression) == names
    assert paths(expression) == read


@pytest.mark.parametrize(
    ("expression", "way_out"),
    [
        ("", "such as body.state"),
        ("  ", "such as body.state"),
        ("body.a" + "a" * 1000, "1000 characters"),
        ("(" * 400 + "body" + ")" * 400, "deeper than 20"),
        ("(" * 999, "deeper than 20"),
        ("!" * 900 + "body", "deeper than 20"),
        ("|".join(["body"] * 120), "deeper than 20"),
        ("[body,body][]|" * 30 + "@", "multiply without bound"),
        ("body[", "not JMESPath"),
        ("body.%", "not JMESPath"),
        ("!body.done", r"write !\(a.b\)"),
        ("!body[?x]", r"write !\(a.b\)"),
        ("lenth(body)", r"did you mean length\(\)"),
        ("zzzzzz(body)", r"no function zzzzzz\(\)$"),
        ("length(body, status)", "takes 1 argument, got 2"),
        ("contains(body)", "takes 2 arguments, got 1"),
        ("not_null()", "takes 1 argument, got 0"),
    ],
)
def test_what_can_never_work_is_refused(expression: str, way_out: str) -> None:
    """A broken, boundless or misleading expression raises ValueError that says what to do."""
    with pytest.raises(ValueError, match=way_out):
        checked(expression)


@pytest.mark.parametrize(
    ("expression", "instead"),
    [
        ("$.body.state == 'DONE'", "write body.state"),
        ("response.body.state == 'DONE'", "write body.state"),
        ("body.state === 'DONE'", "equal is =="),
        ("body.state = 'DONE'", "equal is =="),
        ("status == 200", "`200`, between backticks"),
        ("body.left <= 0", "`200`, between backticks"),
        ('body.state == "DONE"', "'DONE', between single quotes"),
        ("body.done == true", "written `true`"),
        ("body.items[?done == true]", "written `true`"),
        ("body.error != null", "written `null`"),
        ("body.a and body.b", "and is &&"),
        ("body.state in ['A']", "contains"),
        ("body['state']", "body.name"),
    ],
)
def test_a_slip_of_other_languages_is_told(expression: str, instead: str) -> None:
    """What JavaScript, Python and JSONPath write is refused with what JMESPath wants."""
    with pytest.raises(ValueError, match=re.escape(instead)):
        checked(expression, within=DOCUMENT)


@pytest.mark.parametrize(
    "expression",
    [
        "body.state",
        "!(body.done)",
        "!body",
        "!body == `true`",
        "not_null(body.a, body.b, body.c)",
        "contains(['a', 'b', 'c'], body.state)",
        "a.b.c",
        "[body.a, body.b] | [0]",
    ],
)
def test_what_works_comes_back_unchanged(expression: str) -> None:
    """A sound expression is returned as it was written."""
    assert checked(expression) == expression


@pytest.mark.parametrize(
    ("expression", "way_out"),
    [
        ("state", "did you mean status or body.state"),
        ("boddy.state", "did you mean body"),
        ("xyz", r"did you mean body\.xyz\?"),
        ("poll.body.count", "reads poll"),
        ('headers."X-State"', 'write headers."x-state"'),
        ("headers.Location", r"write headers\.location"),
    ],
)
def test_names_outside_the_document_are_refused(expression: str, way_out: str) -> None:
    """Where a document's names are given, a path that could never match is told apart from a missing value."""
    with pytest.raises(ValueError, match=way_out):
        checked(expression, within=DOCUMENT)


def test_the_whole_document_may_be_read() -> None:
    """An expression without any name is inside any document."""
    assert checked("length(@)", within=frozenset({"body"})) == "length(@)"
