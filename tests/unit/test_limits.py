from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tarry.core.limits import Limits
from tarry.core.policies import Errors, Hints
from tarry.errors import SpecError


def test_the_defaults() -> None:
    """Unsaid, a job is polled at most once a second, for at most a day, 30 s a call."""
    limits = Limits()
    assert limits.min_interval == timedelta(seconds=1)
    assert limits.max_polls is None
    assert limits.total_duration == timedelta(hours=24)
    assert limits.poll_timeout == timedelta(seconds=30)
    assert limits.initial_delay == timedelta(0)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"max_polls": 0}, "max_polls"),
        ({"max_polls": -1}, "max_polls"),
        ({"max_polls": True}, "max_polls"),
        ({"max_polls": "5"}, "max_polls"),
        ({"max_polls": 5.0}, "max_polls"),
        ({"max_polls": 2**63}, "max_polls"),
        ({"min_interval": 0}, "min_interval"),
        ({"min_interval": None}, "min_interval"),
        ({"total_duration": 0}, "total_duration"),
        ({"total_duration": "5"}, "total_duration"),
        ({"poll_timeout": -1}, "poll_timeout"),
        ({"initial_delay": -1}, "initial_delay"),
        ({"initial_delay": None}, "initial_delay"),
    ],
)
def test_a_bad_limit_is_refused_by_name(given: dict[str, Any], field: str) -> None:
    """Each value that can be no limit raises SpecError that names it."""
    with pytest.raises(SpecError) as caught:
        Limits(**given)
    assert caught.value.field == f"Limits.{field}"


def test_a_wait_without_limit_has_to_be_written() -> None:
    """total_duration=None alone is refused; with max_polls, or with both written as None, it stands."""
    with pytest.raises(SpecError, match="write both as None"):
        Limits(total_duration=None)
    assert Limits(total_duration=None, max_polls=None).max_polls is None
    assert Limits(total_duration=None, max_polls=3).total_duration is None


@pytest.mark.parametrize(
    "limits",
    [Limits(), Limits(max_polls=500, total_duration="2h"), Limits(total_duration=None, max_polls=None)],
)
def test_limits_survive_json(limits: Limits) -> None:
    """What was set is enough to load the same limits again, a written None included."""
    assert Limits.model_validate(limits.model_dump(mode="json", exclude_unset=True)) == limits


@pytest.mark.parametrize("policy", [Errors(min_outage=0), Hints(path="body.pollIntervalMs", unit="ms")])
def test_policies_survive_json(policy: Errors | Hints) -> None:
    """The policies load from what they dump."""
    assert type(policy).model_validate(policy.model_dump(mode="json", exclude_unset=True)) == policy


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"path": "boddy.wait"}, "did you mean body"),
        ({"path": "input.wait"}, "which is none of body, headers, status"),
        ({"path": ""}, "empty"),
        ({"unit": "minutes"}, "'s', 'ms'"),
        ({"maximum": 0}, "longer than 0"),
    ],
)
def test_a_bad_hint_policy_is_refused(given: dict[str, Any], problem: str) -> None:
    """A path that no response can hold, and an unknown unit, are errors of the spec."""
    with pytest.raises(SpecError, match=problem):
        Hints(**given)
    assert Hints(path=None).path is None
