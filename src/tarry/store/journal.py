"""What goes with a job's row: its events, numbered by the row and only the newest kept, and its spec, stored once."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from tarry.ports import Event, StoredEvent
from tarry.store.rows import clean, event_rows, spec_hash, stored_event
from tarry.store.statements import Statements


def append(connection: Connection, sql: Statements, job: int, events: Sequence[Event]) -> None:
    """As `append_all`, for one job."""
    if events:
        append_all(connection, sql, [(job, events)])


def append_all(connection: Connection, sql: Statements, told: Sequence[tuple[int, Sequence[Event]]]) -> None:
    """Store events that each job's row has just counted in its `event_seq`, in the same transaction."""
    sql.add_events.count(connection, [row for job, events in told for row in event_rows(job, events)])
    sql.trim.count(connection, [(job,) for job, _ in told])


def begin(connection: Connection, sql: Statements, told: Sequence[tuple[int, Sequence[Event]]]) -> None:
    """As `append_all`, for jobs that were just made: there is nothing older to drop."""
    sql.add_events.count(connection, [row for job, events in told for row in event_rows(job, events)])


def add_spec(connection: Connection, sql: Statements, spec: str) -> None:
    """Store the spec where it is not stored yet, and hold it to the end of the transaction."""
    row = {"p_hash": spec_hash(spec), "p_json": clean(spec)}
    # Between the two somebody may have forgotten it.
    while connection.execute(sql.lock_spec, row).first() is None:
        connection.execute(sql.add_spec, row)


def read_after(
    connection: Connection, sql: Statements, job: int, key: str, after: tuple[int, int], limit: int
) -> list[StoredEvent]:
    """At most `limit` events past the cursor, a gap event first when some were dropped before they were read."""
    run, seq = after
    params = {"p_job": job, "p_run": run, "p_seq": seq, "p_limit": limit}
    found = [stored_event(key, row) for row in connection.execute(sql.after, params).mappings()]
    is_beginning = bool(found) and seq == 0 and found[0].run == run and found[0].kind == "reset"
    if found and found[0].seq > seq + 1 and not is_beginning:
        found.insert(0, _gap(found[0], found[0].seq - seq - 1))
    return found[:limit]


def _gap(oldest: StoredEvent, missed: int) -> StoredEvent:
    event = Event("gap", oldest.at, {"missed": missed})
    return StoredEvent.of(oldest.key, oldest.run, oldest.seq - 1, event)
