from __future__ import annotations

from typing import Any

import pytest

from tarry.core.conditions import Match
from tarry.errors import SpecError
from tarry.words import Verdict

ITEMS: dict[str, Any] = {
    "succeeded": "DONE",
    "partial": "MOSTLY",
    "failed": "FAILED",
    "pending": "RUNNING",
    "blocked": "HELD",
}
ALL = Match("body.items[*].state", over="all", **ITEMS)
ANY = Match("body.items[*].state", over="any", **ITEMS)


def items(*states: object) -> dict[str, Any]:
    return {"body": {"items": [{} if state is None else {"state": state} for state in states]}}


@pytest.mark.parametrize(
    ("states", "of_all", "of_any"),
    [
        ([], "pending", "pending"),
        (["DONE"], "succeeded", "succeeded"),
        (["DONE", "done"], "succeeded", "succeeded"),
        (["DONE", "MOSTLY"], "partial", "succeeded"),
        (["DONE", "RUNNING"], "pending", "succeeded"),
        (["RUNNING", "DONE"], "pending", "succeeded"),
        (["DONE", None], "pending", "succeeded"),
        (["DONE", "FAILED"], "failed", "succeeded"),
        (["RUNNING", "FAILED"], "failed", "pending"),
        (["FAILED", "FAILED"], "failed", "failed"),
        (["FAILED", "ODD"], "failed", "unknown"),
        (["DONE", "ODD"], "unknown", "succeeded"),
        (["RUNNING", "ODD"], "unknown", "unknown"),
        (["DONE", "HELD"], "blocked", "succeeded"),
        (["RUNNING", "HELD"], "pending", "pending"),
        (["FAILED", "HELD"], "failed", "blocked"),
        (["DONE", ["DONE"]], "unknown", "succeeded"),
    ],
)
def test_a_list_is_judged_by_its_elements(states: list[object], of_all: str, of_any: str) -> None:
    """All: the first failure, then what is open, then success of each. Any: the first success comes first."""
    assert ALL.judge(items(*states)).verdict == of_all
    assert ANY.judge(items(*states)).verdict == of_any


@pytest.mark.parametrize(
    ("body", "verdict"),
    [({}, "pending"), ({"items": None}, "pending"), ({"items": []}, "pending"), (None, "pending")],
)
def test_a_list_without_elements_is_never_done(body: object, verdict: str) -> None:
    """No list and an empty one are pending: nothing has been seen to be done."""
    assert ALL.judge({"body": body}).verdict == verdict
    assert ANY.judge({"body": body}).verdict == verdict


@pytest.mark.parametrize("found", ["DONE", 7, {"state": "DONE"}])
def test_what_is_no_list_is_a_value_that_no_set_names(found: object) -> None:
    """Where elements are to be judged, a lone value is unknown, even one that a set names."""
    condition = Match("body.states", over="all", succeeded="DONE")
    assert condition.judge({"body": {"states": found}}).verdict is Verdict.UNKNOWN
    strict = Match("body.states", over="all", succeeded="DONE", unknown="failed")
    assert strict.judge({"body": {"states": found}}).verdict is Verdict.FAILED


def test_an_unknown_element_may_fail() -> None:
    """With unknown="failed" an element that no set names is a failure like another."""
    strict = Match("body.items[*].state", over="all", unknown="failed", **ITEMS)
    assert strict.judge(items("DONE", "ODD")).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    "path",
    [
        "body.groups[].items[].state",
        "body.groups[*].items[] | [*].state",
        "body.groups[].items[?id][].state",
        "body.by_name.*.state",
    ],
)
def test_an_element_without_a_value_keeps_the_list_open(path: str) -> None:
    """However the list is selected, what has no state yet is pending, not left out."""
    done, open_ = {"id": 1, "state": "DONE"}, {"id": 2}
    body = {"groups": [{"items": [done]}, {"items": [done, open_]}], "by_name": {"a": done, "b": open_}}
    assert Match(path, over="all", succeeded="DONE").judge({"body": body}).verdict is Verdict.PENDING
    open_["state"] = "DONE"
    assert Match(path, over="all", succeeded="DONE").judge({"body": body}).verdict is Verdict.SUCCEEDED


@pytest.mark.parametrize(
    "path", ["body.groups[*].state", "body.groups[?id].state", "body.groups[].state", "body.groups.*"]
)
def test_a_list_that_is_none_is_pending(path: str) -> None:
    """A path over what is no list selects nothing."""
    assert Match(path, over="all", succeeded="DONE").judge({"body": {"groups": "none"}}).verdict is Verdict.PENDING


def test_the_element_that_decides_is_shown() -> None:
    """The value is the one that made the verdict, and each distinct value was seen."""
    judgement = ALL.judge(items("DONE", "DONE", "RUNNING", "FAILED"))
    assert judgement.value == "FAILED"
    assert [value for _, value in judgement.seen] == ["DONE", "RUNNING", "FAILED"]
    assert ALL.judge(items("DONE", None)).value is None


@pytest.mark.parametrize("written", ["in_progress", "In Progress", "IN-PROGRESS", "inProgress", " in  progress "])
def test_separators_may_be_ignored(written: str) -> None:
    """With `ignore_separators` all spellings of a word are one."""
    condition = Match("body.state", succeeded="DONE", pending="IN_PROGRESS", ignore_separators=True)
    assert condition.judge({"body": {"state": written}}).verdict is Verdict.PENDING


def test_separators_count_otherwise() -> None:
    """Without it they are part of the word; with it two spellings cannot mean two verdicts."""
    condition = Match("body.state", succeeded="DONE", pending="IN_PROGRESS")
    assert condition.judge({"body": {"state": "inProgress"}}).verdict is Verdict.UNKNOWN
    with pytest.raises(SpecError, match="pending"):
        Match("body.state", succeeded="all done", pending="AllDone", ignore_separators=True)


def test_case_may_count_where_separators_do_not() -> None:
    """The two are independent."""
    condition = Match("body.state", succeeded="All Done", case_sensitive=True, ignore_separators=True)
    assert condition.judge({"body": {"state": "All_Done"}}).verdict is Verdict.SUCCEEDED
    assert condition.judge({"body": {"state": "all_done"}}).verdict is Verdict.UNKNOWN
