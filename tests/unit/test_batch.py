"""`Batch`: what is asked, and what each member sees of the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tarry import Batch, JobSpec, Match, Request, SpecError
from tarry.core.observation import CallError, Observation
from tarry.core.templates import TemplateError, render_json, render_text, render_url
from tarry.words import CallKind, ErrorKind

URL = "https://api.example.com/jobs"
UNTIL = Match("body.state", succeeded="DONE")


def batch(request: Request | None = None, **changes: Any) -> Batch:
    """A batch that asks with a query."""
    return Batch(request or Request("GET", URL, params={"ids": "{batch.ids}"}), **{"items": "body.jobs", **changes})


def answer(body: Any, status: int = 200, **changes: Any) -> Observation:
    """What the call as a whole saw."""
    return Observation(
        CallKind.POLL, 1, 2, status=status, headers={"retry-after": "7"}, body=body, is_json=True, **changes
    )


def filled(value: Any, *ids: str | int) -> Any:
    """Parts of the request for these ids, filled in."""
    return render_json(value, {"batch": {"ids": list(ids)}})


def test_ids_are_joined_repeated_or_listed() -> None:
    """By commas in a text, once each in a list of a parameter, as they are alone in a JSON body."""
    whole = Request(
        "POST",
        f"{URL}/{{batch.ids}}",
        headers={"X-Jobs": "{batch.ids}"},
        params={"id": ["{batch.ids}"], "ids": "{batch.ids}", "all": True},
        json={"in": "{batch.ids}", "any": ["of {batch.ids}", 1]},
    )
    asked = batch(whole).asking(2)
    values = {"batch": {"ids": ["a/b", 2]}}
    assert render_url(asked.url, values) == f"{URL}/a%2Fb,2"
    assert filled(asked.headers, "a", 2) == {"X-Jobs": "a,2"}
    assert filled(asked.params, "a", 2) == {"id": ["a", 2], "ids": "a,2", "all": True}
    assert filled(asked.json_body, "a", 2) == {"in": ["a", 2], "any": ["of a,2", 1]}
    text = batch(Request("POST", URL, content="jobs {batch.ids}")).asking(1)
    assert render_text(str(text.content), values) == "jobs a/b"
    form = batch(Request("POST", URL, data={"id": ["{batch.ids}"]})).asking(1)
    assert filled(form.data, "{secret.TOKEN}") == {"id": ["{secret.TOKEN}"]}


@pytest.mark.parametrize(
    ("id", "found"),
    [("{key}", "orders,1"), ("{submit.body.id}", 7), ("j-{submit.body.id}", "j-7")],
)
def test_the_id_keeps_its_type(id: str, found: str | int) -> None:
    """A number alone stays a number; where ids are listed, a comma is part of one."""
    listed = batch(Request("POST", URL, json={"ids": "{batch.ids}"}), id=id)
    assert listed.id_of({"key": "orders,1", "submit": {"body": {"id": 7}}}) == found


@pytest.mark.parametrize("id", ["a,b", "", "x" * 513, True, 1.5, None, ["a"]])
def test_an_id_that_cannot_be_asked_for_is_refused(id: Any) -> None:
    """In words that do not repeat it."""
    with pytest.raises(TemplateError, match="the id of the job"):
        batch(id="{input.id}").id_of({"input": {"id": id}})


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ({"jobs": [{"id": "a", "state": "DONE"}, {"id": 7, "state": "NEW"}, {"state": "?"}, "odd", {"id": "a"}]}, {}),
        ({"jobs": {"a": {"id": "a", "state": "DONE"}, "7": {"id": 7, "state": "NEW"}}}, {}),
        ([{"id": "a", "state": "DONE"}, {"id": 7, "state": "NEW"}], {"items": "body"}),
        (
            [{"id": "a", "state": "DONE", "job": {"n": ["a"]}}, {"id": 7, "state": "NEW", "job": {"n": [7]}}],
            {"items": "body", "item_id": "job.n[0]"},
        ),
    ],
    ids=["list", "object", "whole", "deep"],
)
def test_each_member_sees_its_own_item(body: Any, changes: dict[str, Any]) -> None:
    """As its body, with the status and headers of the whole; of two with one id the first counts."""
    seen = answer(body)
    shares = batch(**changes).shares(seen, ["a", 7])
    bodies: dict[str, Any] = {name: share.body for name, share in shares.items()}
    assert {name: (body["id"], body["state"]) for name, body in bodies.items()} == {"a": ("a", "DONE"), "7": (7, "NEW")}
    assert all((share.status, share.headers, share.is_json) == (200, seen.headers, True) for share in shares.values())


@pytest.mark.parametrize(
    ("missing", "status", "kind"),
    [("not_found", 404, None), ("pending", 304, None), ("transient", None, ErrorKind.BAD_BODY)],
)
def test_an_id_that_is_left_out_means_what_is_said(missing: Any, status: int | None, kind: ErrorKind | None) -> None:
    """Not found, nothing new, or a failed poll; the others are not touched by it."""
    shares = batch(missing=missing).shares(answer({"jobs": [{"id": "a"}]}), ["a", "b"])
    assert shares["a"].body == {"id": "a"}
    lost = shares["b"]
    assert (lost.status, lost.body, lost.error and lost.error.kind) == (status, None, kind)


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        (answer({"jobs": None}), ErrorKind.BAD_BODY),
        (answer("text"), ErrorKind.BAD_BODY),
        (answer({}, 404), ErrorKind.HTTP_STATUS),
        (answer({}, 410), ErrorKind.HTTP_STATUS),
        (answer({}, 503), None),
        (answer({}, 429), None),
        (Observation(CallKind.POLL, 1, 2, error=CallError(ErrorKind.TIMEOUT, "slow")), ErrorKind.TIMEOUT),
    ],
    ids=["no-items", "text", "404", "410", "503", "429", "timeout"],
)
def test_a_call_that_failed_failed_for_each(seen: Observation, kind: ErrorKind | None) -> None:
    """No member takes the trouble of the whole for an answer about itself."""
    shares = batch().shares(seen, ["a", "b"])
    assert set(shares) == {"a", "b"}
    for share in shares.values():
        assert (share.error and share.error.kind) == kind
        assert share.status == (seen.status if kind is None else None)


def test_an_accepted_status_is_an_answer() -> None:
    """`accepted` is that of the request."""
    request = Request("GET", URL, params={"ids": "{batch.ids}"}, accepted=[404])
    assert batch(request).shares(answer({"jobs": [{"id": "a"}]}, 404), ["a"])["a"].body == {"id": "a"}


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"request": Request("GET", URL)}, "Batch.request", "has no {batch.ids}"),
        ({"request": Request("GET", URL + "/{key}/{batch.ids}")}, "Batch.request", "has {key…}, which differs"),
        ({"request": Request("GET", URL + "/{batch.id}")}, "Batch.request", "write {batch.ids} as it is"),
        ({"request": Request("GET", "{batch.ids}")}, "Batch.request.url", "a placeholder for its host"),
        ({"request": Request("GET", "https://{batch.ids}.example.com/x")}, "Batch.request.url", "its host"),
        ({"id": "job"}, "Batch.id", "write {key}"),
        ({"id": "{secret.X}"}, "Batch.id", "write {key}"),
        ({"id": "{key}{poll.body.x}"}, "Batch.id", "write {key}"),
        ({"items": "body.jobs[?state]"}, "Batch.items", "more than a path"),
        ({"items": "jobs"}, "Batch.items", "body"),
        ({"item_id": "[].id"}, "Batch.item_id", "more than a path"),
        ({"window": "3s"}, "Batch.window", "longer than 2s"),
        ({"chunk": 0}, "Batch.chunk", "greater than or equal to 1"),
    ],
)
def test_a_batch_that_cannot_work_is_refused(changes: dict[str, Any], field: str, problem: str) -> None:
    """At once, naming the field, alone or within a spec."""
    given = {"request": Request("GET", URL, params={"ids": "{batch.ids}"}), "items": "body.jobs", **changes}
    with pytest.raises(SpecError) as caught:
        Batch(**given)
    assert caught.value.field == field
    assert problem in str(caught.value)
    with pytest.raises(SpecError) as caught:
        JobSpec(poll=given, until=UNTIL)  # type: ignore[arg-type]  # as it comes from JSON
    assert caught.value.field == field.replace("Batch", "JobSpec.poll")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"poll": Request("GET", URL, params={"ids": "{batch.ids}"})}, "poll: {batch…} is filled in a Batch only"),
        ({"poll": batch(id="{submit.body.id}")}, "poll: {submit…} needs a submit"),
    ],
    ids=["request", "submit"],
)
def test_a_spec_checks_what_a_batch_names(spec: dict[str, Any], problem: str) -> None:
    """`{batch.ids}` belongs into a batch, and `{submit…}` needs a submit."""
    with pytest.raises(SpecError, match=r"JobSpec") as caught:
        JobSpec(until=UNTIL, **spec)
    assert problem in str(caught.value)


def test_a_batch_is_data() -> None:
    """It travels as JSON; batches that differ in `id` alone share a group."""
    spec = JobSpec(poll=batch(window=0), until=UNTIL)
    assert JobSpec.model_validate(json.loads(spec.model_dump_json(exclude_unset=True))) == spec
    assert batch().group == batch(id="{input.id}").group
    assert batch().group != batch(chunk=2).group
