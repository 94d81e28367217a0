"""The SQL, all of it, built once for a set of tables.

Every write is a compare-and-swap: what it relies on stands in its WHERE, and
the number of rows it matched says whether it happened. Nothing relies on what
was read before, so the same statements are right where transactions overlap.
Parameters carry the prefix `p_`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

from sqlalchemy import (
    Column,
    ColumnElement,
    Delete,
    Insert,
    Table,
    Update,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite

from tarry.ports import Listing
from tarry.store.assigning import assigned
from tarry.store.batch import Batch, Values
from tarry.store.database import Dialect
from tarry.store.rows import JOB_FIELDS, label_fragments
from tarry.store.tables import Tables
from tarry.words import Phase

# How many columns a Select has is part of its type in one SQLAlchemy and not in the other.
AnySelect: TypeAlias = Any


KEEP_EVENTS = 200
"""How many events of a job are kept."""

PLAIN = ("state", "phase", "polls", "polled_at", "due", "reserved", "deadline", "max_polls")
"""What a checkpoint writes as it is."""

KEPT = ("floor", "last", "timeline", "told")
"""What a checkpoint leaves where it brings none."""

RARELY = ("spec", "submit", "baseline", "poll", "status_url", "validators", "output", "carried")
"""What it leaves likewise, and seldom brings."""


def p(column: Column[Any]) -> Any:
    """The parameter that goes with a column, of its type."""
    return bindparam(f"p_{column.name}", type_=column.type)


def ids(name: str = "p_ids") -> Any:
    """A parameter for a list of ids; an empty list is fine."""
    return bindparam(name, expanding=True)


def by_key_alone(locking: AnySelect, table: Table) -> AnySelect:
    """The rows found by their ids: MariaDB may walk along another index, and locks all that it walks over."""
    return locking.with_hint(table, "FORCE INDEX (PRIMARY)", "mysql")


@cache
def statements_on(tables: Tables, dialect: Dialect) -> Statements:
    """The statements on these tables, made once."""
    return Statements(tables, dialect)


class Statements:
    """Statements on jobs, specs and events."""

    def __init__(self, tables: Tables, dialect: Dialect) -> None:
        job, spec, event = tables.job, tables.spec, tables.event
        self._job = job
        self.whole = whole_rows(job, spec)
        self.find = self.whole.where(job.c.namespace == p(job.c.namespace), job.c.key == p(job.c.key))
        self.by_id = self.whole.where(job.c.id.in_(ids())).order_by(job.c.id)
        mine = and_(job.c.owner == p(job.c.owner), job.c.nonce == p(job.c.nonce))
        # Also those that an earlier try of this very claim took.
        self.takeable = self.by_id.where(or_(_is_free(job), mine))
        self.lock_takeable = by_key_alone(
            select(job.c.id)
            .where(job.c.id.in_(ids()), or_(_is_free(job), mine))
            .order_by(job.c.id)
            .with_for_update(skip_locked=True, key_share=True),
            job,
        )
        self.glance = _glance(job)
        self.moved = Batch(job, ("id", "owner", "cmd"), lambda known: _moved(job, known))
        self.lock_spec = _lock_spec(spec)
        self.add_spec = _add_spec(spec, dialect)
        self.add_job = _add_job(job)
        self.claim = Batch(job, ("id", "owner", "nonce", "reserved"), lambda new: _claim(job, new))
        self.cancel = _cancel(job)
        self.ask_to_cancel = assigned(
            update(job)
            .where(job.c.id == p(job.c.id), job.c.run == p(job.c.run))
            .where(job.c.outcome.is_(None), job.c.cancel_requested_at.is_(None)),
            {"cancel_requested_at": p(job.c.cancel_requested_at), "event_seq": job.c.event_seq + 1},
        )
        self.told = assigned(
            update(job).where(job.c.id == p(job.c.id), job.c.run == p(job.c.run), job.c.told < p(job.c.told)),
            {"told": p(job.c.told)},
        )
        self.fetched = _fetched(job)
        self.cancelled = _cancelled(job)
        self.named = select(job.c.id).where(job.c.namespace == p(job.c.namespace), job.c.key == p(job.c.key))
        self.after = _events_after(event)
        names = ("job", "back", "kind", "at", "data")
        self.add_events = Batch(event, names, lambda new: _add_events(event, job, new))
        self.trim = Batch(event, ("job",), lambda new: _trim(event, job, new))

    def listing(self, page: Listing) -> AnySelect:
        """One page; the parts that were not asked for are not in it."""
        job = self._job
        chosen = [job.c.namespace == page.namespace, job.c.id > page.after]
        if page.outcomes:
            chosen.append(job.c.outcome.in_([outcome.value for outcome in page.outcomes]))
        if page.phases:
            chosen.append(job.c.phase.in_([phase.value for phase in page.phases]))
        if page.prefix:
            # LIKE would fold case. The length is asked of the database, because some count bytes.
            prefix = bindparam("p_prefix", page.prefix, type_=job.c.key.type)
            chosen.append(func.substr(job.c.key, 1, func.length(prefix)) == prefix)
        for name, value in page.labels.items():
            first, later = label_fragments(name, value)
            chosen.append(or_(_holds(job.c.labels, first), _holds(job.c.labels, later)))
        return self.whole.where(*chosen).order_by(job.c.id).limit(page.limit)


def whole_rows(job: Table, spec: Table) -> AnySelect:
    """Jobs with their specs: all columns in the order of a job's fields."""
    columns = [spec.c.json.label(name) if name == "spec" else job.c[name] for name in JOB_FIELDS]
    # Outer: a job whose spec is gone must be seen as damaged, not as missing.
    return select(*columns).select_from(job.outerjoin(spec, job.c.spec == spec.c.hash))


def _glance(job: Table) -> AnySelect:
    seen = (job.c.id, job.c.owner, job.c.wake, job.c.cmd, job.c.step, job.c.outcome)
    return select(*seen).where(job.c.id.in_(ids())).order_by(job.c.id)


def _moved(job: Table, known: Values) -> AnySelect:
    is_another = or_(
        job.c.owner.is_distinct_from(known("owner")), job.c.cmd != known("cmd"), job.c.outcome.is_not(None)
    )
    return select(job.c.id).where(job.c.id == known("id"), is_another)


def _holds(text: Column[Any], part: str) -> ColumnElement[bool]:
    """Whether the text has this part. The databases have no name in common for that question."""
    return func.replace(text, part, "") != text


def _lock_spec(spec: Table) -> AnySelect:
    """Keeps a spec from being forgotten while the job that uses it is not committed yet."""
    return select(spec.c.hash).where(spec.c.hash == p(spec.c.hash)).with_for_update(read=True, key_share=True)


def _add_spec(spec: Table, dialect: Dialect) -> Insert:
    """Adds it, unless somebody has, or just does."""
    row = {"hash": p(spec.c.hash), "json": p(spec.c.json)}
    match dialect:
        case "mysql":
            return mysql.insert(spec).values(row).on_duplicate_key_update(hash=spec.c.hash)
        case "postgresql":
            return postgresql.insert(spec).values(row).on_conflict_do_nothing()
        case "sqlite":
            return sqlite.insert(spec).values(row).on_conflict_do_nothing()


def _add_job(job: Table) -> Insert:
    return insert(job).values(run=1, cmd=0, paused=0, strikes=0, alone=0, told=0)


def _held(job: Table, new: Values, *, any_command: bool = False) -> ColumnElement[bool]:
    """The row is as the holder's grip says, and not over; `any_command`: also if a command came since."""
    return and_(
        *(job.c[name] == new(name) for name in ("id", "fence", "nonce", "step")),
        true() if any_command else job.c.cmd == new("cmd"),
        job.c.owner.is_not(None),
        job.c.outcome.is_(None),
    )


def _is_free(job: Table) -> ColumnElement[bool]:
    return and_(job.c.outcome.is_(None), job.c.owner.is_(None), job.c.paused == 0)


def _wakes(job: Table, at: Any) -> Any:
    """When a job that nobody holds wants an owner: never while it is paused."""
    return case((job.c.paused != 0, None), else_=at)


def _claim(job: Table, new: Values) -> Update:
    return assigned(
        update(job).where(job.c.id == new("id"), _is_free(job)),
        {
            "owner": new("owner"),
            "nonce": new("nonce"),
            "reserved": new("reserved"),
            "fence": job.c.fence + 1,
            "step": job.c.step + 1,
            "wake": None,
        },
    )


def may_reserve(job: Table, new: Values) -> ColumnElement[bool]:
    """The row takes a permit from this holder."""
    within = or_(job.c.max_polls.is_(None), job.c.polls < job.c.max_polls)
    return and_(_held(job, new), job.c.reserved == 0, within)


def reserve(job: Table, new: Values) -> Update:
    """Permits one poll."""
    return assigned(update(job).where(may_reserve(job, new)), {"reserved": 1, "step": job.c.step + 1})


def isolate(job: Table, new: Values) -> Update:
    """Notes that the worker makes no call now but this job's."""
    return assigned(update(job).where(_held(job, new)), {"alone": 1})


def may_checkpoint(job: Table, new: Values) -> ColumnElement[bool]:
    """The row takes a checkpoint of this holder."""
    # A count that fell would permit polls that were already made.
    return and_(_held(job, new), job.c.polls <= new("polls"))


def go_on(job: Table, new: Values) -> Update:
    """Writes a step of a held job that stays with its holder. No column of an index is in it, which costs a third less."""
    return assigned(update(job).where(may_checkpoint(job, new)), _step(job, new))


def checkpoint(job: Table, new: Values) -> Update:
    """Writes any step of a held job; `left` is 1 where the job is given up."""
    over, left = new("outcome").is_not(None), new("left")
    leaves = or_(over, left == 1)
    return assigned(
        update(job).where(may_checkpoint(job, new)),
        {
            **_step(job, new),
            **{name: func.coalesce(new(name), job.c[name]) for name in RARELY},
            **{name: new(name) for name in ("outcome", "finished_at")},
            "fence": job.c.fence + left,
            "owner": case((leaves, None), else_=job.c.owner),
            "wake": case((and_(leaves, ~over), _wakes(job, new("due"))), else_=None),
            "paused": case((over, 0), else_=job.c.paused),
        },
    )


def _step(job: Table, new: Values) -> dict[str, Any]:
    """What every checkpoint writes; `events` is how many go with it."""
    # The commit before a submit says nothing of a call that the process lived through.
    sends = new("phase") == Phase.SENDING.value
    return {
        **{name: new(name) for name in PLAIN},
        **{name: func.coalesce(new(name), job.c[name]) for name in KEPT},
        "step": job.c.step + 1,
        "strikes": case((sends, job.c.strikes), else_=0),
        "alone": case((sends, job.c.alone), else_=0),
        "event_seq": job.c.event_seq + new("events"),
    }


def may_release(job: Table, new: Values) -> ColumnElement[bool]:
    """The row can be given up by this holder."""
    return _held(job, new, any_command=True)


def release(job: Table, new: Values) -> Update:
    """Gives up a held job, its permit unused."""
    return assigned(
        update(job).where(may_release(job, new)),
        {
            "owner": None,
            "reserved": 0,
            "alone": 0,
            "fence": job.c.fence + 1,
            "step": job.c.step + 1,
            "wake": _wakes(job, func.coalesce(job.c.due, new("now"))),
        },
    )


def spent(job: Table) -> ColumnElement[int]:
    """The polls with the permit counted in, and never above the limit."""
    counted = job.c.polls + job.c.reserved
    return case((counted > job.c.max_polls, job.c.max_polls), else_=counted)


def _cancel(job: Table) -> Update:
    # A poll that is permitted may leave as late as it is due: a run after this one keeps its distance.
    latest = case((job.c.due > p(job.c.finished_at), job.c.due), else_=p(job.c.finished_at))
    return assigned(
        update(job).where(job.c.id == p(job.c.id), job.c.step == p(job.c.step), job.c.outcome.is_(None)),
        {
            **{name: p(job.c[name]) for name in ("state", "phase", "outcome", "finished_at")},
            **dict.fromkeys(("owner", "nonce", "wake", "due")),
            **dict.fromkeys(("reserved", "paused", "alone"), 0),
            "polls": spent(job),
            "polled_at": case((job.c.reserved > 0, latest), else_=job.c.polled_at),
            "fence": job.c.fence + 1,
            "step": job.c.step + 1,
            "event_seq": job.c.event_seq + bindparam("p_events"),
        },
    )


def _fetched(job: Table) -> Update:
    return assigned(
        update(job)
        .where(job.c.id == p(job.c.id), job.c.step == p(job.c.step))
        .where(job.c.outcome.is_not(None), job.c.output.is_(None)),
        {
            "state": p(job.c.state),
            "output": p(job.c.output),
            "step": job.c.step + 1,
            "event_seq": job.c.event_seq + bindparam("p_events"),
        },
    )


def _cancelled(job: Table) -> AnySelect:
    """The row as this very cancel left it."""
    return select(literal(1)).where(
        job.c.id == p(job.c.id),
        job.c.step == p(job.c.step) + 1,
        job.c.nonce.is_(None),
        job.c.outcome == p(job.c.outcome),
        job.c.finished_at == p(job.c.finished_at),
        job.c.state == p(job.c.state),
    )


def applied(job: Table, new: Values) -> ColumnElement[bool]:
    """The row is as a write with this grip left it: one step on, under the same nonce, which nobody else has.

    `left` is 1 for a write that gave the job up (then the fence went on, too),
    `reserved` the permit that it granted.
    """
    return and_(
        job.c.id == new("id"),
        job.c.fence == new("fence") + new("left"),
        job.c.nonce == new("nonce"),
        job.c.step == new("step") + 1,
        job.c.reserved == new("reserved"),
    )


def _add_events(event: Table, job: Table, new: Values) -> Insert:
    """An event of a job whose row has counted it; `back` says how many came after it."""
    row = select(job.c.id, job.c.event_seq - new("back"), job.c.run, new("kind"), new("at"), new("data"))
    return insert(event).from_select(["job", "seq", "run", "kind", "at", "data"], row.where(job.c.id == new("job")))


def _trim(event: Table, job: Table, new: Values) -> Delete:
    """Drops the events of a job that are not among its newest."""
    old = event.alias("old")
    last = job.c.event_seq - KEEP_EVENTS
    late = select(old.c.job, old.c.seq).where(job.c.id == new("job"), old.c.job == job.c.id, old.c.seq <= last)
    return delete(event).where(tuple_(event.c.job, event.c.seq).in_(late))


def _events_after(event: Table) -> AnySelect:
    # Numbers go on from run to run.
    later = and_(event.c.run >= bindparam("p_run"), event.c.seq > bindparam("p_seq"))
    return (
        select(event.c.run, event.c.seq, event.c.kind, event.c.at, event.c.data)
        .where(event.c.job == p(event.c.job), later)
        .order_by(event.c.seq)
        .limit(bindparam("p_limit"))
    )
