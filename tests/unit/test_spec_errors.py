from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tarry.core.conditions import Acceptors, Expression, Match, Status
from tarry.core.limits import Limits
from tarry.core.request import Request
from tarry.core.spec import JobSpec
from tarry.core.strategies import Exponential, Linear
from tarry.errors import SpecError

POLL = Request("GET", "https://api.example.com/jobs/1")
UNTIL = Match("body.state", succeeded="DONE")


def refused(make: Callable[[], object]) -> SpecError:
    with pytest.raises(SpecError) as caught:
        make()
    return caught.value


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"limits": {"max_polls": True}}, "limits.max_polls", "must be a valid integer (got bool)"),
        ({"limits": {"max_polls": "5"}}, "limits.max_polls", "must be a valid integer (got str)"),
        ({"limits": {"max_polls": 0}}, "limits.max_polls", "must be greater than or equal to 1 (got int)"),
        ({"limits": {"max_pols": 3}}, "limits.max_pols", "unknown name; did you mean max_polls?"),
        ({"limits": {"zzz": 3}}, "limits.zzz", "unknown name"),
        ({"limits": {"min_interval": "5"}}, "limits.min_interval", 'write "5s" for seconds (got str)'),
        ({"limits": {"total_duration": None}}, "limits", "write both as None"),
        ({"limits": 5}, "limits", "must be a Limits (got int)"),
        ({"confirm": 0}, "confirm", "must be greater than or equal to 1"),
        ({"untill": UNTIL}, "untill", "did you mean until?"),
        ({"poll": 5}, "poll", "must be a Request or a Function or a Batch (got int)"),
        ({"poll": {"method": "GET", "urll": "x"}}, "poll.urll", "did you mean url? (and 1 more)"),
        ({"poll": {"function": "m:f", "inlin": True}}, "poll.inlin", "did you mean inline?"),
        ({"until": 5}, "until", "no condition; write one such as Match("),
        ({"until": Match}, "until", "no condition; write one such as Match("),
        ({"until": {"type": "mtch"}}, "until.type", "did you mean match?"),
        ({"until": {"type": 5}}, "until.type", "no kind of it; one of match, status"),
        ({"until": {"path": "body.x"}}, "until.type", "is missing"),
        ({"until": {"type": "match", "path": "body.x"}}, "until.succeeded", "nothing can succeed"),
        ({"until": {"type": "match", "succeeded": "x"}}, "until.path", "is missing"),
        (
            {"until": {"type": "all_of", "of": [UNTIL, {"type": "match", "path": "!body.x", "succeeded": 1}]}},
            "until.of[1].path",
            "write !(a.b)",
        ),
        ({"until": {"type": "all_of", "of": []}}, "until.of", "at least 1 item"),
        (
            {"until": {"type": "acceptors", "pairs": [["body.x", "done"]]}},
            "until.pairs[0][1]",
            "must be 'pending', 'blocked', 'succeeded'",
        ),
        (
            {"until": {"type": "match", "path": "body.x", "succeeded": None}},
            "until.succeeded[0]",
            "must be a valid string or a valid integer or a valid number or a valid boolean (got NoneType)",
        ),
        ({"strategy": 5}, "strategy", "no strategy; write one such as Fixed("),
        (
            {"strategy": {"type": "exponential", "initial": "5m", "maximum": "1m"}},
            "strategy.maximum",
            "shorter than initial",
        ),
        ({"labels": {"team": 5}}, "labels.team", "must be a valid string (got int)"),
        ({"labels": {"not a name": 5}}, "labels", "must be a valid string (got int)"),
        ({"hints": {"path": "boddy.x"}}, "hints.path", "did you mean body"),
        ({"errors": {"max_denied": 0}}, "errors.max_denied", "must be greater"),
        ({"limits": {"max_polls": 0, "min_interval": 0}}, "limits.", "(and 1 more)"),
    ],
)
def test_a_fault_is_told_with_its_full_path_once(changes: dict[str, Any], field: str, problem: str) -> None:
    """Made by call or loaded from JSON, a bad spec names the dotted field, the kind of value and the way out."""
    given = {"poll": POLL, "until": UNTIL, **changes}
    for make in (lambda: JobSpec(**given), lambda: JobSpec.model_validate(given)):
        error = refused(make)
        assert error.field.startswith(f"JobSpec.{field}") if field.endswith(".") else error.field == f"JobSpec.{field}"
        assert problem in str(error)


@pytest.mark.parametrize(
    ("make", "field", "problem"),
    [
        (Match, "Match.path", "is missing"),
        (lambda: Match("body.a", "b"), "Match", "takes 1 positional arguments, got 2"),
        (lambda: Match("body.a", path="body.b"), "Match.path", "given twice"),
        (lambda: Match("body.a", succeeded=["a", "b"], failed="A"), "Match.failed", "succeeded names too"),
        (lambda: Match("state", succeeded="a"), "Match.path", "body.state"),
        (lambda: Match("body.a", pending="a"), "Match.succeeded", "nothing can succeed"),
        (lambda: Match("body.a", succeeded="a", case_sensitive=1), "Match.case_sensitive", "boolean (got int)"),
        (lambda: Match("body.a", succeeded=float("nan")), "Match.succeeded[0]", "finite"),
        (lambda: Status(succeeded=202), "Status.pending", "succeeded names its default; write pending=()"),
        (lambda: Status(succeeded=()), "Status.succeeded", "nothing can succeed"),
        (lambda: Acceptors([]), "Acceptors.pairs", "at least 1"),
        (lambda: Acceptors([("body.a", "failed")]), "Acceptors.pairs", "nothing in it can succeed"),
        (lambda: Expression("lenth(body)"), "Expression.expression", "did you mean length()?"),
        (lambda: Expression("body["), "Expression.expression", "not JMESPath"),
        (lambda: Linear("5s", maximum="1s"), "Linear.maximum", "shorter than initial"),
        (lambda: Exponential("5s", jitter="most"), "Exponential.jitter", "'none', 'half' or 'full' (got str)"),
        (lambda: Limits(max_polls=2**63), "Limits.max_polls", "less than or equal to 1000000000 (got int)"),
        (lambda: UNTIL & 5, "AllOf.of[1]", "no condition"),
        (JobSpec, "JobSpec.poll", "is missing (and 1 more)"),
        (lambda: JobSpec.model_validate(5), "JobSpec", "must be a JobSpec (got int)"),
        (lambda: JobSpec.model_validate_json('{"poll"'), "JobSpec", "EOF"),
        (lambda: JobSpec.model_validate_json('{"poll": 5}'), "JobSpec.poll", "must be a Request"),
    ],
)
def test_every_part_tells_its_own_faults(make: Callable[[], object], field: str, problem: str) -> None:
    """A part that is made on its own names itself."""
    error = refused(make)
    assert error.field == field
    assert problem in error.problem


def test_a_spec_that_is_right_loads_from_json() -> None:
    """Loading gives the same spec as making it did."""
    spec = JobSpec(poll=POLL, until=UNTIL, strategy=Linear("5s", maximum="1m"), limits=Limits(max_polls=3))
    dumped = spec.model_dump(mode="json", exclude_unset=True)
    assert JobSpec.model_validate(dumped) == spec
    assert JobSpec.model_validate_json(spec.model_dump_json(exclude_unset=True)) == spec


@pytest.mark.parametrize(
    "make",
    [
        lambda: Match("body.a", succeeded="hunter2", failed="hunter2"),
        lambda: JobSpec(poll="hunter2", until=UNTIL),
        lambda: JobSpec(poll=POLL, until=UNTIL, limits={"max_polls": "hunter2"}),
        lambda: JobSpec(poll=POLL, until={"type": "hunter2"}),
        lambda: JobSpec(poll=POLL, until=UNTIL, limits={"min_interval": "hunter2"}),
        lambda: Exponential("5s", jitter="hunter2"),
    ],
)
def test_a_value_is_never_shown(make: Callable[[], object]) -> None:
    """A value in the wrong place may be a secret: only its kind is told."""
    error = refused(make)
    assert "hunter2" not in str(error)
    assert "hunter2" not in repr(error)


def test_a_spec_error_pickles() -> None:
    """Another process sees the same facts."""
    error = refused(lambda: JobSpec(poll=POLL, untill=UNTIL))
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.field, copy.problem, copy.faults, str(copy)) == (error.field, error.problem, 2, str(error))
