"""The SQL, all of it, built once for a set of tables.

Every write is a compare-and-swap: what it relies on stands in its WHERE, and
the number of rows it matched says whether it happened. Nothing relies on what
was read before, so the same statements are right where transactions overlap.
Parameters carry the prefix `p_`.
"""

from __future__ import annotations

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
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    update,
)

from tarry.ports import Grip, Listing
from tarry.store.rows import label_fragments
from tarry.store.tables import Tables

# How many columns a Select has is part of its type in one SQLAlchemy and not in the other.
AnySelect: TypeAlias = Any


def p(column: Column[Any]) -> Any:
    """The parameter that goes with a column, of its type."""
    return bindparam(f"p_{column.name}", type_=column.type)


def ids(name: str = "p_ids") -> Any:
    """A parameter for a list of ids; an empty list is fine."""
    return bindparam(name, expanding=True)


def grip_params(grip: Grip) -> dict[str, Any]:
    """The parameters of a holder's proof."""
    return {"p_id": grip.job, "p_fence": grip.fence, "p_nonce": grip.nonce, "p_step": grip.step, "p_cmd": grip.cmd}


class Statements:
    """Statements on jobs, specs and events."""

    def __init__(self, tables: Tables) -> None:
        job, spec, event = tables.job, tables.spec, tables.event
        self._job = job
        self.whole = _whole(job, spec)
        self.find = self.whole.where(job.c.namespace == p(job.c.namespace), job.c.key == p(job.c.key))
        self.by_id = self.whole.where(job.c.id.in_(ids())).order_by(job.c.id)
        self.by_nonce = self.by_id.where(job.c.owner == p(job.c.owner), job.c.nonce == p(job.c.nonce))
        self.free = self.by_id.where(_is_free(job))
        self.glance = _glance(job)
        self.add_spec = _add_spec(spec)
        self.add_job = _add_job(job)
        self.claim = _claim(job)
        self.reserve = _reserve(job)
        self.checkpoint = _checkpoint(job)
        self.release = _release(job)
        self.cancel = _cancel(job)
        self.ask_to_cancel = (
            update(job)
            .where(job.c.id == p(job.c.id), job.c.run == p(job.c.run))
            .where(job.c.outcome.is_(None), job.c.cancel_requested_at.is_(None))
            .values(cancel_requested_at=p(job.c.cancel_requested_at), event_seq=job.c.event_seq + 1)
        )
        self.told = (
            update(job)
            .where(job.c.id == p(job.c.id), job.c.run == p(job.c.run), job.c.told < p(job.c.told))
            .values(told=p(job.c.told))
        )
        self.fetched = _fetched(job)
        self.applied = _applied(job)
        self.cancelled = _cancelled(job)
        self.named = select(job.c.id).where(job.c.namespace == p(job.c.namespace), job.c.key == p(job.c.key))
        self.after = _events_after(event)
        self.add_event: Insert = insert(event)
        self.trim: Delete = delete(event).where(event.c.job == p(event.c.job), event.c.seq <= p(event.c.seq))
        self.cursor = select(job.c.run, job.c.event_seq).where(job.c.id == p(job.c.id))

    def listing(self, page: Listing) -> AnySelect:
        """One page; the parts that were not asked for are not in it."""
        job = self._job
        chosen = [job.c.namespace == page.namespace, job.c.id > page.after]
        if page.outcomes:
            chosen.append(job.c.outcome.in_([outcome.value for outcome in page.outcomes]))
        if page.phases:
            chosen.append(job.c.phase.in_([phase.value for phase in page.phases]))
        if page.prefix:
            # LIKE would fold case.
            chosen.append(func.substr(job.c.key, 1, len(page.prefix)) == page.prefix)
        for name, value in page.labels.items():
            first, later = label_fragments(name, value)
            chosen.append(or_(func.instr(job.c.labels, first) > 0, func.instr(job.c.labels, later) > 0))
        return self.whole.where(*chosen).order_by(job.c.id).limit(page.limit)


def _whole(job: Table, spec: Table) -> AnySelect:
    columns = [column for column in job.c if column.name != "spec"]
    # Outer: a job whose spec is gone must be seen as damaged, not as missing.
    return select(*columns, spec.c.json.label("spec")).select_from(job.outerjoin(spec, job.c.spec == spec.c.hash))


def _glance(job: Table) -> AnySelect:
    seen = (job.c.id, job.c.owner, job.c.wake, job.c.cmd, job.c.step, job.c.outcome)
    return select(*seen).where(job.c.id.in_(ids())).order_by(job.c.id)


def _add_spec(spec: Table) -> Insert:
    missing = select(p(spec.c.hash), p(spec.c.json)).where(~exists().where(spec.c.hash == p(spec.c.hash)))
    return insert(spec).from_select(["hash", "json"], missing)


def _add_job(job: Table) -> Insert:
    return insert(job).values(run=1, fence=0, step=0, cmd=0, paused=0, reserved=0, strikes=0, told=0)


def _held(job: Table, *, any_command: bool = False) -> ColumnElement[bool]:
    """The row is as the holder's grip says, and not over; `any_command`: also if a command came since."""
    return and_(
        job.c.id == p(job.c.id),
        job.c.fence == p(job.c.fence),
        job.c.nonce == p(job.c.nonce),
        job.c.step == p(job.c.step),
        true() if any_command else job.c.cmd == p(job.c.cmd),
        job.c.owner.is_not(None),
        job.c.outcome.is_(None),
    )


def _is_free(job: Table) -> ColumnElement[bool]:
    return and_(job.c.outcome.is_(None), job.c.owner.is_(None), job.c.paused == 0)


def _wakes(job: Table, at: Any) -> Any:
    """When a job that nobody holds wants an owner: never while it is paused."""
    return case((job.c.paused == 1, None), else_=at)


def _claim(job: Table) -> Update:
    return (
        update(job)
        .where(job.c.id == p(job.c.id), _is_free(job))
        .values(
            owner=p(job.c.owner),
            nonce=p(job.c.nonce),
            fence=job.c.fence + 1,
            step=job.c.step + 1,
            wake=None,
        )
    )


def _reserve(job: Table) -> Update:
    within = or_(job.c.max_polls.is_(None), job.c.polls < job.c.max_polls)
    return update(job).where(_held(job), job.c.reserved == 0, within).values(reserved=1, step=job.c.step + 1)


def _checkpoint(job: Table) -> Update:
    over = p(job.c.outcome).is_not(None)
    leaves = or_(over, bindparam("p_left") == 1)
    answers = ("submit", "baseline", "poll", "status_url", "validators")
    kept = ("floor", "spec", "last", *answers, "output", "timeline", "carried", "told")
    plain = ("state", "phase", "polls", "polled_at", "reserved", "deadline", "max_polls", "outcome", "finished_at")
    return (
        update(job)
        # A count that fell would permit polls that were already made.
        .where(_held(job), job.c.polls <= p(job.c.polls))
        .values(
            {
                **{name: p(job.c[name]) for name in plain},
                **{name: func.coalesce(p(job.c[name]), job.c[name]) for name in kept},
                "due": p(job.c.due),
                "step": job.c.step + 1,
                "fence": job.c.fence + bindparam("p_left"),
                "owner": case((leaves, None), else_=job.c.owner),
                "wake": case((and_(leaves, ~over), _wakes(job, p(job.c.due))), else_=None),
                "paused": case((over, 0), else_=job.c.paused),
                "event_seq": job.c.event_seq + bindparam("p_events"),
            }
        )
    )


def _release(job: Table) -> Update:
    return (
        update(job)
        .where(_held(job, any_command=True))
        .values(
            owner=None,
            reserved=0,
            fence=job.c.fence + 1,
            step=job.c.step + 1,
            wake=_wakes(job, func.coalesce(job.c.due, bindparam("p_now"))),
        )
    )


def spent(job: Table) -> ColumnElement[int]:
    """The polls with the permit counted in, and never above the limit."""
    counted = job.c.polls + job.c.reserved
    return case((counted > job.c.max_polls, job.c.max_polls), else_=counted)


def _cancel(job: Table) -> Update:
    # A poll that is permitted may leave as late as it is due: a run after this one keeps its distance.
    latest = case((job.c.due > p(job.c.finished_at), job.c.due), else_=p(job.c.finished_at))
    return (
        update(job)
        .where(job.c.id == p(job.c.id), job.c.step == p(job.c.step), job.c.outcome.is_(None))
        .values(
            state=p(job.c.state),
            phase=p(job.c.phase),
            outcome=p(job.c.outcome),
            finished_at=p(job.c.finished_at),
            polls=spent(job),
            polled_at=case((job.c.reserved > 0, latest), else_=job.c.polled_at),
            reserved=0,
            owner=None,
            nonce=None,
            wake=None,
            paused=0,
            due=None,
            fence=job.c.fence + 1,
            step=job.c.step + 1,
            event_seq=job.c.event_seq + bindparam("p_events"),
        )
    )


def _fetched(job: Table) -> Update:
    return (
        update(job)
        .where(job.c.id == p(job.c.id), job.c.step == p(job.c.step))
        .where(job.c.outcome.is_not(None), job.c.output.is_(None))
        .values(
            state=p(job.c.state),
            output=p(job.c.output),
            step=job.c.step + 1,
            event_seq=job.c.event_seq + bindparam("p_events"),
        )
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


def _applied(job: Table) -> AnySelect:
    """The row as a write with this grip left it: one step on, under the same nonce, which nobody else has.

    `p_left` is 1 for a write that gave the job up (then the fence went on, too),
    `p_reserved` the permit that it granted.
    """
    return select(literal(1)).where(
        job.c.id == p(job.c.id),
        job.c.fence == p(job.c.fence) + bindparam("p_left"),
        job.c.nonce == p(job.c.nonce),
        job.c.step == p(job.c.step) + 1,
        job.c.reserved == bindparam("p_reserved"),
    )


def _events_after(event: Table) -> AnySelect:
    # Numbers go on from run to run.
    later = and_(event.c.run >= bindparam("p_run"), event.c.seq > bindparam("p_seq"))
    return (
        select(event.c.run, event.c.seq, event.c.kind, event.c.at, event.c.data)
        .where(event.c.job == p(event.c.job), later)
        .order_by(event.c.seq)
        .limit(bindparam("p_limit"))
    )
