"""What people's commands write into a row, whoever holds the job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Table, Update, bindparam, case, func, literal, select, update

from tarry.ports import Command, Event, Restart
from tarry.store.assigning import assigned
from tarry.store.database import Database
from tarry.store.journal import add_spec, append
from tarry.store.rows import clean, cleaned, json_text, spec_hash
from tarry.store.statements import AnySelect, Statements, p
from tarry.store.tables import Tables


class Commands:
    """Writes commands and new runs; each is a compare-and-swap on `step` and `cmd`.

    `tell` lets other processes hear of what a transaction commits.
    """

    def __init__(self, database: Database, tables: Tables, sql: Statements, tell: Callable[[Connection], None]) -> None:
        self._database = database
        self._tell = tell
        self._sql = sql
        self._command = _command(tables.job)
        self._restart = _restart(tables.job)
        self._restarted = _restarted(tables.job)

    def command(self, command: Command) -> bool:
        """Write it if the job is still at its step and command, and not over."""
        with self._database.write() as connection:
            if connection.execute(self._command, _command_columns(command)).rowcount != 1:
                return False
            self._told(connection, command.job, command.spec, command.events)
            return True

    def restart(self, restart: Restart) -> bool:
        """Begin the run if the job is still at its step and command."""
        columns = _restart_columns(restart)
        with self._database.write() as connection:
            if connection.execute(self._restart, columns).rowcount != 1:
                return connection.execute(self._restarted, columns).first() is not None
            self._told(connection, restart.job, restart.spec, restart.events)
            return True

    def _told(self, connection: Connection, job: int, spec: str | None, events: Sequence[Event]) -> None:
        if spec is not None:
            add_spec(connection, self._sql, spec)
        append(connection, self._sql, job, events)
        self._tell(connection)


def _command(job: Table) -> Update:
    permitted = job.c.polls + job.c.reserved
    due, limit = p(job.c.due), p(job.c.max_polls)
    return assigned(
        update(job)
        .where(job.c.id == p(job.c.id), job.c.step == p(job.c.step), job.c.cmd == p(job.c.cmd))
        .where(job.c.outcome.is_(None)),
        {
            **{name: p(job.c[name]) for name in ("state", "due", "deadline", "floor", "paused")},
            **{name: func.coalesce(p(job.c[name]), job.c[name]) for name in ("spec", "labels")},
            # The last answer was judged by the spec before.
            "validators": case((p(job.c.spec).is_not(None), None), else_=job.c.validators),
            "max_polls": case((limit < permitted, permitted), else_=limit),
            "wake": case((job.c.owner.is_not(None), None), (p(job.c.paused) != 0, None), else_=due),
            "cmd": job.c.cmd + 1,
            # Whoever resumes a job gives it as many chances as it had at first.
            "strikes": case((p(job.c.paused) != job.c.paused, 0), else_=job.c.strikes),
            "event_seq": job.c.event_seq + bindparam("p_events"),
        },
    )


_ANSWERS = ("submit", "baseline", "poll", "status_url", "carried")


def _restart(job: Table) -> Update:
    new = ("token", "fingerprint", "spec", "labels", "state", "phase", "created_at", "polled_at", "due")
    limits = ("deadline", "max_polls", "floor")
    of_polls = ("last", "validators", "output", "timeline")
    gone = ("owner", "nonce", *of_polls, "outcome", "finished_at", "cancel_requested_at")
    return assigned(
        update(job).where(job.c.id == p(job.c.id), job.c.step == p(job.c.step), job.c.cmd == p(job.c.cmd)),
        {
            **{name: p(job.c[name]) for name in (*new, *limits, *_ANSWERS)},
            **dict.fromkeys(gone),
            **dict.fromkeys(("polls", "reserved", "paused", "strikes", "alone"), 0),
            **{name: job.c[name] + 1 for name in ("run", "fence", "step")},
            "wake": p(job.c.due),
            "event_seq": job.c.event_seq + bindparam("p_events"),
        },
    )


def _restarted(job: Table) -> AnySelect:
    """The row as this very restart left it."""
    return select(literal(1)).where(
        job.c.id == p(job.c.id),
        job.c.step == p(job.c.step) + 1,
        job.c.cmd == p(job.c.cmd),
        job.c.nonce.is_(None),
        job.c.token == p(job.c.token),
        job.c.created_at == p(job.c.created_at),
        job.c.state == p(job.c.state),
    )


def _command_columns(command: Command) -> dict[str, Any]:
    plain = ("step", "cmd", "due", "deadline", "max_polls", "floor", "paused")
    return {
        **{f"p_{name}": getattr(command, name) for name in plain},
        "p_id": command.job,
        "p_state": clean(command.state),
        "p_spec": None if command.spec is None else spec_hash(command.spec),
        "p_labels": None if command.labels is None else json_text(dict(command.labels)),
        "p_events": len(command.events),
    }


def _restart_columns(restart: Restart) -> dict[str, Any]:
    plain = ("step", "cmd", "token", "polled_at", "created_at", "due", "deadline", "max_polls", "floor")
    return {
        **{f"p_{name}": getattr(restart, name) for name in plain},
        "p_id": restart.job,
        "p_state": clean(restart.state),
        **{f"p_{name}": cleaned(getattr(restart, name)) for name in _ANSWERS},
        "p_fingerprint": clean(restart.fingerprint),
        "p_phase": restart.phase.value,
        "p_spec": spec_hash(restart.spec),
        "p_labels": json_text(dict(restart.labels)),
        "p_events": len(restart.events),
    }
