"""Turns at hosts: bounds, order, fairness, rests."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import Politeness, Request, SpecError
from tarry.core.function import Function
from tarry.runtime.hosts import LONGEST_REST, Hosts, Turn, host_of
from tarry.testing import FakeClock
from tarry.words import MINUTE, SECOND


class Line:
    """Hosts, and the names of those whose turn came, in order."""

    def __init__(self, **politeness: Any) -> None:
        self.clock = FakeClock()
        self.hosts = Hosts(Politeness(**politeness), self.clock)
        self.came: list[str] = []

    def up(self, name: str, host: str = "a", *, first: bool = False) -> Turn:
        """One more that wants a turn."""
        turn = self.hosts.line_up(host, lambda: self.came.append(name), first=first)
        if turn.granted:
            self.came.append(name)
        return turn

    def run(self, main: Any) -> None:
        """In virtual time."""
        self.clock.run(main)

    async def after(self, seconds: float) -> None:
        """Let time pass."""
        await self.clock.sleep(round(seconds * SECOND))


def test_a_lone_call_has_its_turn_at_once() -> None:
    """Nothing is waited for, however often."""
    line = Line(concurrent=1)
    for number in range(3):
        turn = line.up(str(number))
        assert turn.granted
        line.hosts.leave(turn)
    assert line.hosts._hosts == {}


def test_no_more_than_so_many_at_once_and_in_order() -> None:
    """The next in line has its turn when one leaves; hosts do not count for each other."""
    line = Line(concurrent=2)
    turns = [line.up(name) for name in "1234"]
    line.up("other", "b")
    assert line.came == ["1", "2", "other"]
    line.hosts.leave(turns[1])
    assert line.came == ["1", "2", "other", "3"]
    line.hosts.leave(turns[0])
    assert line.came[-1] == "4"


def test_who_has_no_time_goes_first_and_in_the_end_ahead() -> None:
    """`first` is the head of the line, `go_ahead` is past all bounds, and both count as under way."""
    line = Line(concurrent=1)
    one, two = line.up("one"), line.up("two")
    urgent = line.up("urgent", first=True)
    line.hosts.go_ahead(two)
    line.hosts.go_ahead(two)
    assert two.granted
    line.hosts.leave(one)
    assert line.came == ["one"]
    line.hosts.leave(two)
    assert line.came == ["one", "urgent"]
    assert urgent.granted


def test_whoever_leaves_the_line_is_forgotten() -> None:
    """A turn that nobody wants any more is not granted."""
    line = Line(concurrent=1)
    one, two, three = (line.up(name) for name in ("one", "two", "three"))
    line.hosts.leave(two)
    line.hosts.leave(one)
    assert line.came == ["one", "three"]
    line.hosts.leave(three)
    assert (line.hosts._hosts, line.hosts._waiting) == ({}, {})


def test_so_many_a_second_evenly() -> None:
    """Calls begin one after another, never in a burst, and the last one waits for nothing more."""
    line = Line(per_second=4)

    async def main() -> None:
        turns = [line.up(str(number)) for number in range(5)]
        assert line.came == ["0"]
        await line.after(0.24)
        assert line.came == ["0"]
        await line.after(0.02)
        assert line.came == ["0", "1"]
        await line.after(0.75)
        assert line.came == ["0", "1", "2", "3", "4"]
        for turn in turns:
            line.hosts.leave(turn)

    line.run(main)


def test_a_host_that_asks_for_a_rest_gets_it() -> None:
    """Nobody calls it meanwhile; other hosts are called; a very long rest is one of a minute for the others."""
    line = Line()

    async def main() -> None:
        first = line.up("first")
        line.hosts.rest("a", 5 * SECOND)
        line.hosts.leave(first)
        line.up("second")
        line.up("elsewhere", "b")
        assert line.came == ["first", "elsewhere"]
        await line.after(4)
        line.hosts.rest("a", 3 * SECOND)
        await line.after(2)
        assert line.came == ["first", "elsewhere"]
        await line.after(1)
        assert line.came[-1] == "second"
        line.hosts.rest("a", 60 * MINUTE)
        third = line.up("third")
        await line.after(LONGEST_REST / SECOND)
        assert third.granted

    line.run(main)


def test_a_line_that_emptied_during_a_rest_wakes_nobody() -> None:
    """The end of the rest finds nobody, and that is fine."""
    line = Line()

    async def main() -> None:
        line.hosts.rest("a", SECOND)
        line.hosts.leave(line.up("gone"))
        await line.after(2)

    line.run(main)
    assert line.came == []


def test_dead_hosts_do_not_keep_others_waiting() -> None:
    """Where the process has all the calls it may have, a host with a line of one is served as soon as any other."""
    line = Line(concurrent=16)
    dead = [line.up("dead", host) for host in "abcd" for _ in range(16)]
    for number in range(40):
        line.up(f"more-{number}", "a")
    line.up("alive", "e")
    assert "alive" not in line.came
    for turn in dead[:2]:
        line.hosts.leave(turn)
    assert "alive" in line.came[-2:]


@pytest.mark.parametrize(
    ("target", "host"),
    [
        (Request("GET", "https://API.example.com:8443/jobs?x=1"), "api.example.com:8443"),
        (Request("GET", "https://{input.region}.example.com/jobs"), "eu.example.com"),
        (Request("GET", "{submit.body.url}"), "found.example.com"),
        (Request("GET", "{submit.body.path}"), "submit.example.com"),
        (Request("GET", "https://{input.missing}.example.com/"), ""),
        (Request("GET", "{submit.body.broken}"), "submit.example.com"),
        (Function.of(host_of), "tarry.runtime.hosts:host_of"),
    ],
    ids=["literal", "filled", "found", "relative", "missing", "broken", "callable"],
)
def test_the_host_of_a_call(target: Any, host: str) -> None:
    """As its URL says once it is filled in; a callable is one of its own."""
    body = {"url": "https://found.example.com/1", "path": "/jobs/1", "broken": "https://[/"}
    submit = {"url": "https://submit.example.com/", "body": body}
    assert host_of(target, {"input": {"region": "eu"}, "submit": submit}) == host


@pytest.mark.parametrize("bad", [{"concurrent": 0}, {"concurrent": 65}, {"per_second": 0}, {"per_second": 1001}])
def test_bounds_that_mean_nothing_are_refused(bad: dict[str, Any]) -> None:
    """The field is named."""
    with pytest.raises(SpecError, match=f"Politeness.{next(iter(bad))}"):
        Politeness(**bad)
