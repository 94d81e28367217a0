"""The oracle: what the service saw and what the database holds, judged from outside the library.

The database is read by plain SQL after every store call. Nothing in here asks the
library whether it is right, except for how a spec is read back.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tarry.codec import decode_spec
from tarry.core.results import JobResult
from tarry.ports import Prepared, StoredEvent
from tarry.words import MILLISECOND, SECOND, CallKind, Instant, Micros, micros
from tests.simulation.service import CONNECT_MAX, Reply, token_of

if TYPE_CHECKING:
    from tests.simulation.processes import Process
    from tests.simulation.world import World

LEASE = 10 * SECOND
HEARD: Micros = SECOND
"""How soon a process hears of a command that another gave."""
LET_GO: Micros = 2 * LEASE
"""How soon nobody holds a paused job any more, where nothing is wrong: after a call, or the lease of one that died."""
_READS = frozenset({"version", "events", "find", "glance", "listing", "moved", "rows"})
_PROVEN = frozenset({"checkpoint", "reserve", "release"})


class Row(NamedTuple):
    """A job's row, as plain SQL gives it."""

    id: int
    key: str
    run: int
    owner: int | None
    fence: int
    nonce: str | None
    step: int
    cmd: int
    paused: int
    polls: int
    reserved: int
    due: Instant | None
    wake: Instant | None
    deadline: Instant | None
    max_polls: int | None
    floor: int
    event_seq: int
    created_at: Instant
    phase: str
    spec: str
    token: str
    outcome: str | None
    finished_at: Instant | None
    output: str | None


_SELECT = f"SELECT {', '.join(Row._fields)} FROM tarry_job ORDER BY id"
_EVENTS = "SELECT seq, run, kind FROM tarry_event WHERE job = ? AND seq > ? ORDER BY seq"
_SPEC = "SELECT json FROM tarry_spec WHERE hash = ?"


@dataclass(slots=True)
class Sent:
    """What is known of a job's calls from the outside."""

    polls: int = 0
    submits_that_left: int = 0
    cancels: int = 0
    last_start: Instant | None = None
    settled_from: tuple[int, int] | None = None
    """(fence, polls) as they were when the last answer to a poll came back."""
    won: tuple[int, str] | None = None
    """(fence, outcome) of a terminal answer that the holder has."""
    winner: int | None = None
    """The worker that has it."""
    accepted: int | None = None
    """The fence under which the holder has the submit's acceptance."""
    body: bytes | None = None
    permitted: tuple[int, Micros] | None = None
    """(step, floor) of a permit that was there before somebody set another floor."""
    paused: tuple[Instant, int] | None = None
    """(when, step) of the pause that holds: whoever made another step since then knows of it."""
    leaves: asyncio.Event = field(default_factory=asyncio.Event)
    """Wakes whoever waits for a poll to be under way."""


class Ledger:
    """Keeps the accounts and tells the world of the first thing that does not add up."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.rows: dict[int, Row] = {}
        self.sent: dict[str, Sent] = {story.key: Sent() for story in world.stories}
        self.events: dict[tuple[int, int], str] = {}
        self._ended: set[tuple[str, str, int]] = set()
        self._runs: dict[tuple[int, Process], int] = {}
        self._claims: set[tuple[int, int]] = set()
        self._nonces: dict[tuple[int, str], Process] = {}

    # Rows.

    def look(self, process: Process, call: str, args: tuple[Any, ...], answer: Any) -> None:
        """What a store call left behind."""
        if call in _READS:
            return
        if call == "register" and isinstance(answer, int):
            process.worker = answer
        self._check_proofs(call, args, answer)
        found = [Row(*values) for values in self._world.sql.execute(_SELECT)]
        changed = [row for row in found if row != self.rows.get(row.id)]
        if changed or call != "bury":
            summary = "; ".join(_shown(row) for row in changed)
            self._world.note(process, f"{call}{_brief(answer)} {summary}".rstrip())
        for row in changed:
            before = self.rows.get(row.id)
            self.rows[row.id] = row
            self._note_pause(row)
            if before is not None:
                self._check_change(before, row, call, process)
            elif row.owner is not None:
                self._check_taken(row, process)
            self._check_row(row)
            self._check_events(row, 0 if before is None else before.event_seq)
        if call == "renew" and answer is False:
            self._world.saw("lease lost")

    def row_of(self, key: str) -> Row | None:
        """The job's row as last seen."""
        return next((row for row in self.rows.values() if row.key == key), None)

    def _check_proofs(self, call: str, args: tuple[Any, ...], answer: Any) -> None:
        """A write counts only while the grip behind it is the row's (or was, until this very write)."""
        if call not in _PROVEN or answer is None:
            return
        for item, applied in zip(args[0], answer, strict=True):
            grip = item.grip if call == "checkpoint" else item
            row = self.rows[grip.job]
            is_held = row.nonce == grip.nonce and grip.fence <= row.fence <= grip.fence + 1
            if applied and not is_held:
                self._broken("a stale write changes nothing", f"{call} with {grip} on {_shown(row)}")
            if not applied and not is_held:
                self._world.saw("fence refusal")

    def _check_row(self, row: Row) -> None:
        sent = self.sent[row.key]
        if sent.polls > row.polls + row.reserved:
            self._broken("requests ≤ polls + reserved", f"{sent.polls} were sent, {_shown(row)}")
        if row.max_polls is not None and row.polls + row.reserved > row.max_polls:
            self._broken("polls + reserved ≤ max_polls", _shown(row))
        if row.outcome is not None:
            if row.reserved or row.owner is not None or row.wake is not None or row.finished_at is None:
                self._broken("an end leaves nothing behind", _shown(row))
        elif row.owner is None and ((row.wake is None) != bool(row.paused) or row.reserved):
            self._broken("a free job has a wake and no permit", _shown(row))

    def _check_change(self, old: Row, new: Row, call: str, process: Process) -> None:
        if call == "restart":
            self._check_restart(old, new)
            return
        if call in {"ask_to_cancel", "settle"} and new == old._replace(event_seq=old.event_seq + 1):
            return  # An event more, of what is owed, and nothing else.
        if old.outcome is not None:
            self._broken("an outcome never changes", f"{_shown(old)} -> {_shown(new)}")
        moved = new.step > old.step or (call == "command" and new.cmd == old.cmd + 1 and new.polls == old.polls)
        if new.fence < old.fence or not moved or new.step < old.step or new.polls < old.polls or new.run != old.run:
            self._broken("fence, step and polls only grow", f"{_shown(old)} -> {_shown(new)}")
        if new.owner is not None and new.owner != old.owner:
            self._check_claim(old, new, process)
        if new.deadline != old.deadline:
            self._check_deadline(old, new)
        if new.spec != old.spec:
            self._world.saw("spec changed")
        if new.floor != old.floor and old.reserved and call == "command":
            self.sent[new.key].permitted = (new.step, old.floor)
        if new.outcome is not None:
            self._check_end(old, new, call)

    def _note_pause(self, row: Row) -> None:
        sent = self.sent[row.key]
        if not row.paused:
            sent.paused = None
        elif sent.paused is None:
            sent.paused = self._world.clock.now(), row.step
            if row.reserved and sent.polls > row.polls:
                self._world.saw("paused during a poll")

    def _check_restart(self, old: Row, new: Row) -> None:
        """A new run: nobody's, with nothing spent; what the last run's holder still sends is not its own."""
        self._world.saw("reset of a held job" if old.owner is not None else "reset")
        grown = new.run == old.run + 1 and new.fence == old.fence + 1 and new.step == old.step + 1
        if not grown or new.polls or new.outcome is not None or new.owner is not None:
            self._broken("a new run begins with nothing", f"{_shown(old)} -> {_shown(new)}")
        sent = self.sent[new.key]
        if old.reserved and sent.last_start is not None:
            # A poll that was permitted may start between the look of who begins the run and the commit: it counts there
            # as one that started then, and the run keeps its distance from that.
            sent.last_start = min(sent.last_start, new.created_at)
        sent.polls, sent.cancels, sent.settled_from, sent.won, sent.winner, sent.accepted = 0, 0, None, None, None, None

    def _check_claim(self, old: Row, new: Row, process: Process) -> None:
        claim = (new.id, new.fence)
        if old.owner is not None or claim in self._claims or new.nonce is None:
            self._broken("one owner at a time", f"{_shown(old)} -> {_shown(new)}")
        # A claim may take several jobs under one nonce; one whose answer was lost is repeated by who made it.
        if self._nonces.setdefault((new.id, new.nonce or ""), process) is not process:
            self._broken("one owner at a time", f"{_shown(old)} -> {_shown(new)}")
        self._check_taken(new, process)
        if old.nonce is None and old.fence > 0:
            self._world.saw("take-over")

    def _check_taken(self, row: Row, process: Process) -> None:
        """Claimed, or taken as it was made: by who asked for it."""
        self._claims.add((row.id, row.fence))
        self._runs[row.id, process] = row.run
        if row.owner != process.worker:
            self._broken("one owner at a time", f"{process} claimed as {row.owner}, it is {process.worker}")

    def _check_deadline(self, old: Row, new: Row) -> None:
        ((text,),) = self._world.sql.execute(_SPEC, (new.spec,)).fetchall()
        total = decode_spec(text).limits.total_duration
        due = None if total is None else new.created_at + micros(total)
        if new.spec == old.spec or new.deadline != due:
            self._broken("a deadline stays", f"{old.deadline} -> {new.deadline} of {_shown(new)}")

    def _check_events(self, row: Row, after: int) -> None:
        found = self._world.sql.execute(_EVENTS, (row.id, after)).fetchall()
        if [seq for seq, _, _ in found] != list(range(after + 1, row.event_seq + 1)):
            self._broken("events in order, without gap or repetition", f"{found} after {after} of {_shown(row)}")
        for seq, _, kind in found:
            self.events[row.id, seq] = kind
            self._world.saw(f"event {kind}")
            if kind == "finished" and (row.outcome is None or seq != row.event_seq):
                self._broken("the end is the last event", f"{found} of {_shown(row)}")

    # Ends.

    def _check_end(self, old: Row, new: Row, call: str) -> None:
        self._world.saw(f"outcome {new.outcome}")
        self._ended.add((new.key, str(new.outcome), new.polls))
        sent = self.sent[new.key]
        if sent.won is not None and sent.won[0] == old.fence and call != "cancel" and new.outcome != sent.won[1]:
            self._broken("an answered end is never lost", f"{sent.won[1]} was answered, {_shown(new)}")
        if sent.accepted == old.fence and new.outcome == "submit_unknown":
            self._broken("an accepted submit is never forgotten", _shown(new))
        problem = self._wrong(old, new, call)
        if problem:
            self._broken("an outcome is right", f"{problem}: {_shown(new)}")

    def _wrong(self, old: Row, new: Row, call: str) -> str | None:
        """Why the outcome cannot be; None when it can."""
        world, service = self._world, self._world.service
        remote = service.of(new.key)
        truth = None if remote is None else remote.state(world.clock.now())
        match new.outcome:
            case "succeeded" | "failed":
                wanted = None if new.outcome == "failed" else json.dumps(f"result of {new.key}")
                fits = truth == new.outcome.upper() and new.output == wanted
                return None if fits else f"the service says {truth}"
            case "cancelled":
                return None if call == "cancel" else "nobody cancelled it"
            case "exhausted":
                return None if new.max_polls is not None and new.polls >= new.max_polls else "polls are left"
            case "timed_out":
                return None if self._is_out_of_time(new) else f"the deadline is {new.deadline}"
            case "submit_unknown":
                return None if not world.story(new.key).idempotent and old.phase == "sending" else "it was not in doubt"
            case "lost":
                return None if service.told_missing[new.key] >= 3 else "it was not missing three times"
            case _:
                return "nothing can lead there"

    def _is_out_of_time(self, row: Row) -> bool:
        if row.deadline is None or row.finished_at is None:
            return False
        # No longer than a tenth of the whole time, whichever poll_timeout there was when the closing poll was planned.
        lead = (row.deadline - row.created_at) // 10
        # Where a 429 asks to wait beyond the deadline, no closing poll has room, and the end is known early.
        early = 9 * SECOND if self._world.service.told_to_wait[row.key] else 0
        return row.finished_at >= row.deadline - max(lead, early) - row.floor

    # Calls.

    def started(self, process: Process, request: Prepared, key: str) -> None:
        """A process is about to send: is it allowed to, and is it time?"""
        now, row, sent = self._world.clock.now(), self.row_of(key), self.sent[key]
        self._world.note(process, f"{request.kind} {key}: starts")
        if row is None:
            self._broken("a job is stored before it is called", key)
            return
        if request.kind is CallKind.CANCEL:
            return
        lease = self._world.lease_of(process)
        if now >= lease - LEASE // 5:
            self._broken("a call leaves only under a fresh lease", f"{key} by {process}, lease until {_time(lease)}")
        if self._is_of_another_run(process, row):
            self._world.saw("a call of the last run")
            return
        if sent.paused is not None:
            self._check_paused(process, row, *sent.paused)
        if request.kind is CallKind.SUBMIT:
            self._check_submit(row, request)
            return
        if sent.winner is not None and sent.winner == process.worker:
            self._broken("an answer that ends a job is not asked for again", f"by {process}: {_shown(row)}")
        if sent.settled_from is not None and sent.settled_from[0] == row.fence and row.polls <= sent.settled_from[1]:
            self._broken("an answer is committed before the next poll", _shown(row))
        # A poll that was permitted before the floor was raised may be on its way before the holder hears of that.
        is_older = sent.permitted is not None and sent.permitted[0] == row.step
        floor = min(row.floor, sent.permitted[1]) if is_older and sent.permitted is not None else row.floor
        if sent.last_start is not None and now - sent.last_start < floor:
            gap = (now - sent.last_start) // MILLISECOND
            self._broken("polls keep min_interval apart", f"{gap} ms, {_shown(row)}")
        sent.last_start = now

    def _check_paused(self, process: Process, row: Row, since: Instant, step: int) -> None:
        """Only what was on its way when the pause came may still be sent, by who cannot have heard of it."""
        after = self._world.clock.now() - since
        self._world.saw("call of a paused job")
        if row.step > step:
            self._broken("a pause that is known is heeded", f"{process} calls {_shown(row)}")
        if after > HEARD:
            self._broken("a pause is heard of", f"{process} calls {after // MILLISECOND} ms after it: {_shown(row)}")

    def rests(self, row: Row) -> None:
        """A job has been paused for long, and nothing was wrong meanwhile."""
        self._world.saw("long pause")
        if row.owner is not None:
            self._broken("a paused job is held by nobody", _shown(row))

    def _is_of_another_run(self, process: Process, row: Row) -> bool:
        """Whether the process holds what was a run that is no more, and does not know it yet."""
        return self._runs.get((row.id, process), row.run) != row.run

    def _check_submit(self, row: Row, request: Prepared) -> None:
        sent = self.sent[row.key]
        if row.phase != "sending" and not row.outcome:
            self._broken("the intent is committed before a submit", _shown(row))
        if token_of(request) != row.token or (sent.body is not None and sent.body != request.content):
            self._broken("every submit carries the same key and body", _shown(row))
        sent.body = request.content

    def departed(self, process: Process, request: Prepared, key: str, started: Instant) -> None:
        """The first byte is on the wire: from here on the service may have seen it."""
        sent, late = self.sent[key], self._world.clock.now() - started > CONNECT_MAX
        if late:
            # The process was frozen between its check and this byte: counted, but no longer on time.
            self._world.saw("late send")
        if request.kind is CallKind.SUBMIT:
            sent.submits_that_left += 1
            if sent.submits_that_left > 1:
                self._world.saw("submitted again with the same key")
            return
        if request.kind is CallKind.CANCEL:
            sent.cancels += 1
            self._world.saw("remote cancel")
            if sent.cancels > 1:
                self._broken("a cancel leaves once at most", key)
            return
        row = self.row_of(key)
        if row is not None and self._is_of_another_run(process, row):
            self._world.note(process, f"{request.kind} {key}: left, of the last run")
            self._world.saw("a call of the last run")
            return
        sent.polls += 1
        sent.leaves.set()
        sent.leaves.clear()
        self._world.note(process, f"poll {key}: left ({sent.polls})")
        if row is not None:
            self._check_row(row)

    def delivered(self, process: Process, kind: CallKind, key: str, reply: Reply) -> None:
        """A process has an answer in its hands."""
        row, sent = self.row_of(key), self.sent[key]
        state = reply.body.get("state") if isinstance(reply.body, dict) else None
        self._world.note(process, f"{kind} {key}: {reply.status} {state}")
        if row is None or row.owner is None or row.owner != process.worker or kind is CallKind.CANCEL:
            return
        if kind is CallKind.SUBMIT:
            sent.accepted = row.fence if reply.status == 202 else None
            return
        sent.settled_from = (row.fence, row.polls)
        if reply.status == 200 and state in {"SUCCEEDED", "FAILED"}:
            sent.won, sent.winner = (row.fence, state.lower()), process.worker

    # What callers hear.

    def told(self, process: Process, key: str, result: JobResult[Any]) -> None:
        """A caller was given a result."""
        row = self.row_of(key)
        if (key, result.outcome.value, result.polls) not in self._ended:
            self._broken("an outcome is committed before it is told", f"{process} told {result.outcome} of {row}")
        elif result.outcome.is_success and result.output != f"result of {key}":
            self._broken("an outcome is right", f"{process} told {result.output!r} of {key}")

    def heard(self, process: Process, event: StoredEvent) -> None:
        """An event was told to a process's callback."""
        row = self.row_of(event.key)
        cursor = (0 if row is None else row.id, event.seq)
        if self.events.get(cursor) != event.kind:
            self._broken("an event is committed before it is told", f"{process} heard {event}")
        # The end is told at least once: by who ended the job, and by who finds it over, or begun anew.
        if cursor in process.heard and event.kind != "finished" and (row is None or row.run == event.run):
            self._broken("events in order, without gap or repetition", f"{process} heard {event} twice")
        process.heard.add(cursor)

    def _broken(self, rule: str, detail: str) -> None:
        self._world.broken(rule, detail)


def _time(at: Instant | None) -> str:
    return "-" if at is None else f"{at % (3600 * SECOND) / SECOND:.3f}"


def _brief(answer: Any) -> str:
    """Of a store call's answer what fits into a line of the trace."""
    return (
        f" {answer}"
        if isinstance(answer, bool | int) or (isinstance(answer, list) and True in answer)
        else (" refused" if isinstance(answer, list) and answer == [False] else "")
    )


def _shown(row: Row) -> str:
    held = f"held by {row.owner}" if row.owner else f"wake {_time(row.wake)}"
    limit = "" if row.max_polls is None else f" of {row.max_polls}"
    return (
        f"{row.key} {row.outcome or row.phase} {held} fence {row.fence} step {row.step} "
        f"polls {row.polls}+{row.reserved}{limit} due {_time(row.due)}"
    )
