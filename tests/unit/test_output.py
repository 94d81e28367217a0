"""A success stays one, whatever its output is."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import JobSpec, Match, Request
from tarry.core.output import LIMIT, output_of


def spec_with(result: str | None) -> JobSpec:
    """A spec that selects this."""
    poll = Request("GET", "https://api.example.com/jobs/1")
    return JobSpec(poll=poll, until=Match("body.state", succeeded="OK"), result=result)


@pytest.mark.parametrize(
    ("result", "body", "output"),
    [
        (None, {"state": "OK"}, {"state": "OK"}),
        ("body.rows", {"rows": 3}, 3),
        ("body.rows", {}, None),
        ("body.rows", {"rows": float("nan")}, None),
    ],
)
def test_the_output_is_what_is_selected(result: str | None, body: Any, output: Any) -> None:
    """Without a selection it is the body; what JSON cannot hold is left out."""
    assert output_of(spec_with(result), {"body": body}) == (output, None)


@pytest.mark.parametrize(
    ("result", "body", "problem"),
    [
        ("length(body.rows)", {}, "result: JMESPathTypeError"),
        ("body", "x" * (LIMIT + 1), "larger than 1048576 bytes"),
    ],
)
def test_an_output_that_cannot_be_had_is_none_and_says_why(result: str, body: Any, problem: str) -> None:
    """The job has succeeded all the same."""
    output, said = output_of(spec_with(result), {"body": body})
    assert output is None
    assert problem in (said or "")
