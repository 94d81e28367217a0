"""The gate of calls: side by side, and a suspect alone."""

from __future__ import annotations

from tarry.runtime.gate import Gate, Place


def place(rung: list[str], name: str, *, alone: bool = False) -> Place:
    """A place whose bell writes its name down."""
    return Place(alone, lambda: rung.append(name))


def test_calls_go_side_by_side_without_a_bell() -> None:
    """Where nobody is to be alone, every call goes through at once, and no loop is roused for it."""
    gate, rung = Gate(), list[str]()
    places = [place(rung, str(number)) for number in range(3)]
    for one in places:
        gate.line_up(one)
    assert all(one.granted for one in places)
    assert rung == []


def test_a_suspect_goes_alone_and_in_its_turn() -> None:
    """It waits for the calls under way, those behind it wait for it, and two suspects go one after the other."""
    gate, rung = Gate(), list[str]()
    first, after = place(rung, "first"), place(rung, "after")
    suspect, other = place(rung, "suspect", alone=True), place(rung, "other", alone=True)
    for one in (first, suspect, other, after):
        gate.line_up(one)
    assert [first.granted, suspect.granted, other.granted, after.granted] == [True, False, False, False]
    for leaving, granted in ((first, suspect), (suspect, other), (other, after)):
        gate.leave(leaving)
        assert [one.granted for one in (suspect, other, after)] == [one is granted for one in (suspect, other, after)]
    assert rung == ["suspect", "other", "after"]


def test_a_place_that_is_given_up_holds_nobody_back() -> None:
    """A job that is stopped while it waits leaves the line; leaving twice, or a place never taken, changes nothing."""
    gate, rung = Gate(), list[str]()
    first, suspect, after = place(rung, "first"), place(rung, "suspect", alone=True), place(rung, "after")
    for one in (first, suspect, after):
        gate.line_up(one)
    gate.leave(suspect)
    assert after.granted
    gate.leave(suspect)
    gate.leave(place(rung, "never"))
    gate.leave(first)
    gate.leave(first)
    late = place(rung, "late", alone=True)
    gate.line_up(late)
    assert not late.granted
    gate.leave(after)
    assert late.granted


def test_a_place_that_can_wait_no_longer_goes_past_a_suspect() -> None:
    """Beside it, while those in line wait on until the suspect has left."""
    gate, rung = Gate(), list[str]()
    suspect, hurried, after = place(rung, "suspect", alone=True), place(rung, "hurried"), place(rung, "after")
    for one in (suspect, hurried, after):
        gate.line_up(one)
    gate.go_ahead(hurried)
    gate.go_ahead(hurried)
    assert (hurried.granted, after.granted, gate.inside) == (True, False, 2)
    gate.leave(hurried)
    assert not after.granted
    gate.leave(suspect)
    assert (rung, gate.inside) == (["after"], 1)


def test_a_suspect_that_can_wait_no_longer_goes_beside_others() -> None:
    """It is not alone then, and keeps nobody out."""
    gate, rung = Gate(), list[str]()
    first, suspect, after = place(rung, "first"), place(rung, "suspect", alone=True), place(rung, "after")
    for one in (first, suspect):
        gate.line_up(one)
    gate.go_ahead(suspect)
    gate.line_up(after)
    assert (suspect.alone, suspect.granted, after.granted) == (False, True, True)
