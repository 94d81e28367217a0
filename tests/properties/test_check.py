from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tarry import Outcome, Verdict, check
from tarry.words import ErrorKind
from tests.vendors.vendors import Vendor, vendors

WORDS = {*Verdict, "unchanged", "invalid"}
NAMES = st.sampled_from(["status", "state", "error", "data", "result", "done", "name", "jobs", "conditions", "type"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
BODIES = st.recursive(
    SCALARS | st.sampled_from(["DONE", "SUCCEEDED", "failed"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=10,
)
HEADERS = st.dictionaries(st.sampled_from(["retry-after", "location", "asyncresult"]), st.text(max_size=6), max_size=2)
ANSWERS = st.fixed_dictionaries(
    {}, optional={"status": st.integers(100, 599), "body": BODIES, "headers": HEADERS, "text": st.text(max_size=9)}
) | st.fixed_dictionaries({"error": st.sampled_from([str(kind) for kind in ErrorKind])})


@given(st.sampled_from(vendors()), st.lists(ANSWERS, max_size=4))
def test_no_answer_upsets_a_spec(vendor: Vendor, answers: list[Any]) -> None:
    """Whatever comes in place of what the service promises is a verdict, and the job ends or waits."""
    told = check(vendor.spec, answers, submit=vendor.submit_answer, baseline=vendor.baseline_answer)
    assert len(told) == len(answers)
    for one in told:
        assert one.verdict in WORDS
        assert (one.outcome is None) != (one.wait is None)
        assert one.outcome is not Outcome.SUCCEEDED or one.verdict in {"succeeded", "unchanged"}
