from __future__ import annotations

import pytest

from tarry import check
from tests.vendors.vendors import Vendor, vendors

WORDLESS = {"fivetran-sync": {"failed"}, "openai-vector-store-batch": {"failed"}}
"""Failures that say nothing of why."""

VENDORS = pytest.mark.parametrize("vendor", vendors(), ids=lambda vendor: vendor.id)


def test_there_are_45_of_them() -> None:
    """Each with a spec in data alone, without a callable."""
    every = vendors()
    assert len(every) == 45
    assert all(vendor.spec.until.is_plain and not vendor.spec.functions for vendor in every)


@VENDORS
def test_each_answer_has_its_verdict(vendor: Vendor) -> None:
    """Every answer that the service may give is understood."""
    assert list(vendor.wrong_verdicts()) == []


@VENDORS
def test_each_hint_is_honoured(vendor: Vendor) -> None:
    """A wait that the service asks for is read to the microsecond, and sets the wait."""
    assert list(vendor.wrong_hints()) == []


@VENDORS
def test_the_status_url_is_found(vendor: Vendor) -> None:
    """The answer to the submit leads to the poll."""
    assert list(vendor.wrong_urls()) == []


def test_a_run_without_an_id_is_looked_up_first() -> None:
    """Where the submit answers nothing, the first polls find the job in a list, and the verdict redirect leads to it."""
    (github,) = (vendor for vendor in vendors() if vendor.id == "github-actions")
    run = {"url": "https://api.example.test/repos/acme/shop/actions/runs/7"}
    listed = [{"body": {"workflow_runs": []}}, {"body": {"workflow_runs": [run]}}]
    done = {"body": {"status": "completed", "conclusion": "success"}}
    told = check(github.spec, [*listed, done], submit=github.submit_answer)
    assert [(one.verdict, one.error) for one in told] == [("pending", None), ("redirect", None), ("succeeded", None)]


@VENDORS
def test_a_failure_has_words(vendor: Vendor) -> None:
    """Where an answer that ends the job says why, the error says it too."""
    silent = {
        name
        for name, example in vendor.examples.items()
        if example["expect"] == "failed" and vendor.spec.reason is not None and not vendor.checked(name).error
    }
    assert silent <= WORDLESS.get(vendor.id, set())
