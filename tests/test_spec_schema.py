"""The JSON Schema of spec files: published, current, and at one with the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from jsonschema import Draft202012Validator

from tarry import (
    Acceptors,
    Batch,
    Errors,
    Exponential,
    Expression,
    Fixed,
    Hints,
    JobSpec,
    Limits,
    Linear,
    Match,
    Request,
    SpecError,
    Status,
)
from tarry.specs import spec_schema

PUBLISHED = Path(__file__).parent.parent / "docs/spec.schema.json"
VENDORS = sorted((Path(__file__).parent / "vendors/specs").glob("*.json"))
VALID = Draft202012Validator(spec_schema())
POLL = Request("GET", "https://api.example.com/jobs/{submit.body.jobId}", accepted=(404, "5xx"), read_timeout="5s")
MATCH = Match("body.state", succeeded="DONE", failed=["BAD", 3])
SPECS = [
    JobSpec(
        submit=Request(
            "POST", "https://api.example.com/jobs", json={"a": [1]}, params={"b": [1, "c"]}, idempotent=True
        ),
        poll=POLL,
        until=(MATCH & Status(succeeded=["2xx"])) | ~Expression("body.running"),
        strategy=Exponential("2s", factor=1.5, maximum="1m", jitter="half"),
        limits=Limits(max_polls=3, total_duration=None),
        errors=Errors(max_denied=1, min_outage=0),
        hints=Hints(path="body.wait", unit="ms"),
        labels={"team": "data"},
        allowed_hosts=["files.example.com"],
        input={"any": None},
    ),
    JobSpec(poll=json.dumps, args={"obj": 1}, until=Acceptors([("body.done", "succeeded")]), strategy=Linear(1, 2)),
    JobSpec(
        poll=Batch(
            Request("GET", "https://api.example.com/jobs", params={"id": ["{batch.ids}"]}),
            items="body.jobs",
            chunk=7,
            missing="transient",
        ),
        until=MATCH,
    ),
    JobSpec(poll=json.dumps, until=json.loads, strategy=Fixed(0.5), result="body.x", confirm=2),
]


def test_the_published_schema_is_current() -> None:
    """`tarry schema > docs/spec.schema.json` makes it so."""
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == spec_schema()


def test_the_schema_is_one() -> None:
    """It is valid by its own rules, and every field of the spec is described."""
    Draft202012Validator.check_schema(spec_schema())
    assert [name for name, part in spec_schema()["properties"].items() if not part.get("description")] == []


@pytest.mark.parametrize("number", range(len(SPECS)))
@pytest.mark.parametrize("unset", [True, False])
def test_what_a_spec_dumps_is_valid(number: int, unset: bool) -> None:
    """With its defaults or without."""
    VALID.validate(SPECS[number].model_dump(mode="json", exclude_unset=unset))


@pytest.mark.parametrize("path", VENDORS, ids=lambda path: path.stem)
def test_the_spec_of_a_real_service_is_valid(path: Path) -> None:
    """What is written for services that exist, the schema takes."""
    written = json.loads(path.read_text(encoding="utf-8"))
    VALID.validate(written["spec"])


PIECES = some.sampled_from(
    [
        None,
        True,
        0,
        1,
        -1,
        2.5,
        "",
        "5s",
        "body.x",
        "match",
        404,
        "4xx",
        [],
        {},
        ["a"],
        [1],
        {"a": 1},
        {"type": "fixed"},
    ]
)


def ways(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all parts of a value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *(below for step, part in parts for below in ways(part, (*way, step)))]


@given(some.data())
def test_what_the_schema_refuses_the_model_refuses(data: some.DataObject) -> None:
    """Any part of a good spec replaced, dropped or added to: the schema is never stricter than the model."""
    spec = SPECS[data.draw(some.integers(0, len(SPECS) - 1))].model_dump(mode="json", exclude_unset=True)
    *way, last = data.draw(some.sampled_from(ways(spec)[1:]))
    place: Any = spec
    for step in way:
        place = place[step]
    if data.draw(some.booleans()):
        place[last] = data.draw(PIECES)
    else:
        del place[last]
    if not VALID.is_valid(spec):
        with pytest.raises(SpecError):
            JobSpec.model_validate(spec)
