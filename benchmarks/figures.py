"""The figures: what each is made of, and its target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from benchmarks.meter import Reading

Readings = Mapping[str, Reading]
"""What the parts found in one round, by the name of the part."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    `parts` are functions of this package, each run in a process of its own; `value` makes the
    figure of what they found. `at` says on which side of `target` it has to be; without one it is there to compare.
    """

    name: str
    title: str
    parts: tuple[str, ...]
    value: Callable[[Readings], float]
    at: Literal["most", "least"]
    target: float | None
    unit: str = ""

    def is_met(self, value: float) -> bool:
        """Whether the figure is as good as it has to be."""
        if self.target is None:
            return True
        return value <= self.target if self.at == "most" else value >= self.target


def _ratio(name: str, title: str, parts: tuple[str, str], target: float | None, *, of: str = "polls_s") -> Figure:
    """The first part's rate over the second's."""
    first, second = parts
    return Figure(name, title, parts, lambda found: found[first][of] / found[second][of], "least", target, "×")


def _most(name: str, title: str, part: str, of: str, target: float | None, unit: str, *, per: float = 1) -> Figure:
    """One reading of one part, as it is."""
    return Figure(name, title, (part,), lambda found: found[part][of] / per, "most", target, unit)


def _growth(name: str, title: str, large: tuple[str, str], small: tuple[str, str], target: float) -> Figure:
    """How many times more one reading is than another, each given as its part and its name there."""
    (first, of), (second, beside) = large, small
    parts = (first,) if first == second else (first, second)
    return Figure(name, title, parts, lambda found: found[first][of] / found[second][beside], "most", target, "×")


BARE, BARE_HTTPX = "loops.bare_aiohttp", "loops.bare_httpx"
AIOHTTP, HTTPX, PG = "durable.sqlite_aiohttp", "durable.sqlite_httpx", "durable.postgres_aiohttp"
HOSTS, AMONG = "durable.many_hosts", "crowd.among"

FIGURES = (
    _ratio("sqlite", "aiohttp, SQLite ÷ a bare aiohttp loop", (AIOHTTP, BARE), 0.6),
    _ratio("postgres", "aiohttp, PostgreSQL ÷ a bare aiohttp loop", (PG, BARE), 0.6),
    _ratio(
        "changing",
        "aiohttp, SQLite, no answer like the one before ÷ a bare aiohttp loop",
        ("durable.sqlite_changing", BARE),
        None,
    ),
    _ratio("httpx", "httpx, SQLite ÷ a bare httpx loop at its best", (HTTPX, BARE_HTTPX), 0.85),
    _growth("hosts", "httpx: CPU a poll with 1,000 hosts ÷ with one", (HOSTS, "cpu_us"), (HTTPX, "cpu_us"), 1.5),
    _ratio("dbos", "aiohttp, SQLite ÷ DBOS on SQLite", (AIOHTTP, "dbos_peer.sqlite"), 30),
    _ratio("dbos-postgres", "aiohttp, PostgreSQL ÷ DBOS on PostgreSQL", (PG, "dbos_peer.on_postgres"), 30),
    _ratio("temporal", "aiohttp, SQLite ÷ Temporal's dev server", (AIOHTTP, "temporal_peer.activity"), 10),
    _ratio(
        "tenacity",
        "aiohttp, SQLite ÷ tenacity with aiohttp, which keeps nothing",
        (AIOHTTP, "loops.tenacity_aiohttp"),
        None,
    ),
    _ratio("naive", "aiohttp, SQLite ÷ a commit a poll by hand", (AIOHTTP, "loops.naive_aiohttp"), None),
    _most("cpu", "Tarry's own CPU a poll", "alone.cpu", "cpu_us", 60, "µs"),
    _most("late", "lateness, 10,000 jobs every 5 s: median", "pace.lateness", "p50_ms", 2, "ms"),
    _most("late-p99", "lateness, 10,000 jobs every 5 s: 99 %", "pace.lateness", "p99_ms", 25, "ms"),
    _most(
        "late-as-it-comes",
        "the same where Python's collector looks as often as it comes",
        "pace.lateness_as_it_comes",
        "p99_ms",
        None,
        "ms",
    ),
    _most("awaited", "memory of a job awaited here", "alone.awaited", "bytes", 4, "KB", per=1000),
    Figure(
        "stored",
        "memory of a waiting job that only the store holds",
        (AMONG,),
        lambda found: max(found[AMONG]["rss_many"] - found[AMONG]["rss_few"], 0) / found[AMONG]["more"],
        "most",
        10,
        "B",
    ),
    _most("rss", "memory of a worker with 10⁶ jobs in the store", AMONG, "rss_many", 300, "MB", per=1e6),
    _growth(
        "waiting",
        "CPU a poll beside 10⁶ waiting jobs ÷ beside 10³",
        (AMONG, "cpu_us_many"),
        (AMONG, "cpu_us_few"),
        1.3,
    ),
    _most("start", "from the start to the first poll, 10⁶ jobs in the store", "crowd.first_poll", "first_s", 1, "s"),
    _most("restart", "1,000 overdue among 10⁴: all polled and written", "crowd.overdue_some", "all_s", 1.5, "s"),
    _most("restart-million", "1,000 overdue among 10⁶: all polled and written", "crowd.overdue_many", "all_s", 3, "s"),
    Figure(
        "restart-dbos",
        "the restart of 1,000 jobs ÷ DBOS's",
        ("crowd.overdue_some", "dbos_peer.restart"),
        lambda found: found["dbos_peer.restart"]["all_s"] / found["crowd.overdue_some"]["all_s"],
        "least",
        10,
        "×",
    ),
    Figure(
        "single",
        "one job that is over at the first look: more than the bare call",
        ("durable.single",),
        lambda found: found["durable.single"]["wait_ms"] - found["durable.single"]["bare_ms"],
        "most",
        5,
        "ms",
    ),
)

ONCE = frozenset({"dbos_peer.restart"})
"""Parts that take minutes and are run once."""

OFTEN = frozenset(
    {BARE, BARE_HTTPX, AIOHTTP, HTTPX, PG, HOSTS, "alone.cpu"}
    | {"loops.tenacity_aiohttp", "loops.naive_aiohttp"}
    | {"dbos_peer.sqlite", "dbos_peer.on_postgres", "temporal_peer.activity"}
)
"""Parts that take seconds and do nothing but poll: a machine's moods show most in them, so they are run more often."""
