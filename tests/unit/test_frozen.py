"""Changed copies of frozen values."""

from __future__ import annotations

import dataclasses
import inspect
import pickle

import pytest

from tarry.core.state import JobState
from tarry.frozen import copier, getter, maker, quick, replace
from tarry.words import Phase

STATE = JobState("orders", Phase.WAITING, 1, None, 2)


def test_a_copy_differs_in_what_was_changed_alone() -> None:
    """It is what `dataclasses.replace` gives, and the original stays as it was."""
    changed = replace(STATE, polls=3, status="RUNNING")
    assert changed == dataclasses.replace(STATE, polls=3, status="RUNNING")
    assert type(changed) is JobState
    assert STATE.polls == 0
    assert hash(changed) != hash(STATE)
    assert pickle.loads(pickle.dumps(changed)) == changed


def test_a_copy_is_frozen() -> None:
    """As the original is."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        replace(STATE, polls=3).polls = 4  # type: ignore[misc]  # what must not work


def test_what_is_no_field_is_refused() -> None:
    """A slip is an error, not a value that nobody reads."""
    with pytest.raises(AttributeError, match="pols"):
        replace(STATE, pols=3)


def test_a_copier_gives_what_replace_gives() -> None:
    """For the fields that it was made for: all of them have to be given, and no other."""
    counted = copier(JobState, "polls", "status")
    assert counted(STATE, polls=3, status="RUNNING") == replace(STATE, polls=3, status="RUNNING")
    assert STATE.polls == 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        counted(STATE, polls=3, status=None).polls = 4  # type: ignore[misc]  # what must not work
    with pytest.raises(TypeError, match="status"):
        counted(STATE, polls=3)
    with pytest.raises(AttributeError, match="pols"):
        copier(JobState, "polls", "pols")


def test_a_getter_gives_fields_in_the_order_of_their_names() -> None:
    """It is what `operator.attrgetter` gives; a slip is an error at once."""
    assert getter(JobState, "due", "key")(STATE) == (2, "orders")
    with pytest.raises(AttributeError, match="pols"):
        getter(JobState, "polls", "pols")


@quick
@dataclasses.dataclass(frozen=True, slots=True)
class _Quick:
    kind: str
    twin: int = 3
    data: dict[str, int] = dataclasses.field(default_factory=dict)


def test_a_quick_class_makes_what_the_dataclass_would_make() -> None:
    """Given by position, by name or left out; whatever its fields are called."""
    assert dataclasses.astuple(_Quick("a")) == ("a", 3, {})
    assert dataclasses.astuple(_Quick("a", data={"b": 1}, twin=4)) == ("a", 4, {"b": 1})
    assert _Quick("a").data is not _Quick("a").data
    assert replace(_Quick("a"), twin=4) == dataclasses.replace(_Quick("a"), twin=4) == _Quick("a", 4)
    assert copier(_Quick, "kind", "data")(_Quick("a"), kind="b", data={"c": 1}) == _Quick("b", data={"c": 1})


def test_a_value_of_a_quick_class_is_frozen() -> None:
    """It is one of the class itself, which nothing can change."""
    made = _Quick("a")
    assert type(made) is _Quick
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.twin = 4  # type: ignore[misc]  # what must not work


def test_a_maker_makes_what_a_call_of_the_class_makes() -> None:
    """The same arguments, the same defaults, the same errors; what it made is frozen."""
    made = maker(_Quick)
    assert made("a") == _Quick("a")
    assert made("a", data={"b": 1}, twin=4) == _Quick("a", 4, {"b": 1})
    assert made("a").data is not made("a").data
    assert type(made("a")) is _Quick
    with pytest.raises(dataclasses.FrozenInstanceError):
        made("a").twin = 4  # type: ignore[misc]  # what must not work
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'kind'"):
        made()  # type: ignore[call-arg]  # what must not work


def test_a_quick_class_shows_the_signature_of_the_dataclass() -> None:
    """For whoever reads the reference, or asks for help."""
    assert str(inspect.signature(_Quick)) == (
        "(kind: 'str', twin: 'int' = 3, data: 'dict[str, int]' = <factory>) -> None"
    )
    with pytest.raises(TypeError, match=r"_Quick\.__init__\(\) missing 1 required positional argument: 'kind'"):
        _Quick()  # type: ignore[call-arg]  # what must not work
