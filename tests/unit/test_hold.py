"""A held job between two commits: what of an answer is written."""

from __future__ import annotations

from dataclasses import replace

from tarry import Fixed, JobSpec, Match, Request
from tarry.codec import encode_spec, encode_state
from tarry.core.machine import start, step
from tarry.core.observation import CallError, Observation
from tarry.ports import Checkpoint, JobRow
from tarry.runtime.hold import Hold, digest_of
from tarry.words import SECOND, CallKind, ErrorKind, Instant

NOW: Instant = 1_700_000_000 * SECOND
SPEC = JobSpec(
    poll=Request("GET", "https://api.example.com/jobs/{key}"),
    until=Match("body.state", succeeded="DONE", pending="RUNNING"),
    strategy=Fixed("1s"),
)


def held() -> Hold:
    """A new job, claimed and permitted its first poll."""
    state, _ = start(SPEC, "orders", NOW)
    row = JobRow(
        **dict.fromkeys((field for field in JobRow.__dataclass_fields__), None)  # type: ignore[arg-type]  # filled below
        | {"id": 1, "key": "orders", "spec": encode_spec(SPEC), "state": encode_state(state), "phase": state.phase}
        | {
            "fence": 1,
            "nonce": "n",
            "step": 1,
            "cmd": 0,
            "reserved": 1,
            "polls": 0,
            "created_at": NOW,
            "due": state.due,
        }
        | {"deadline": state.deadline, "strikes": 0, "event_seq": 0, "told": 0, "token": "t"}
    )
    return Hold.of(row, SPEC)


def answer(state: str, digest: int | None, polls: int = 0) -> Observation:
    """One poll, answered."""
    at = NOW + polls * SECOND
    return Observation(CallKind.POLL, at, at, 200, {}, {"state": state}, is_json=True, url=SPEC.poll.url, digest=digest)  # type: ignore[union-attr]  # it is a request


def settled(hold: Hold, seen: Observation) -> tuple[Checkpoint, Hold]:
    """The commit after this answer, and the hold after that."""
    sent = hold.polling()
    state, decision = step(SPEC, sent.state, seen, seen.finished_at)
    write = sent.settlement(state, decision, seen, seen.finished_at)
    return write, sent.committed(write, state).showing(digest_of(seen), None, seen.digest)


def test_an_answer_with_the_digest_of_the_last_one_is_not_written_again() -> None:
    """Nor is its body read for that: here it could be told by it."""
    first, hold = settled(held(), answer("RUNNING", digest=1))
    again, hold = settled(hold, answer("another", digest=1, polls=1))
    other, _ = settled(hold, answer("another", digest=2, polls=2))
    assert first.last is not None
    assert again.last is None
    assert other.last is not None


def test_an_answer_without_a_digest_is_told_by_its_body() -> None:
    """After it, too, nothing is taken for the same unread."""
    _, hold = settled(held(), answer("RUNNING", digest=1))
    same, hold = settled(hold, answer("RUNNING", digest=None, polls=1))
    assert same.last is None
    assert hold.shown is None
    other, _ = settled(hold, answer("another", digest=1, polls=2))
    assert other.last is not None


def test_a_call_that_broke_is_never_taken_for_an_answer() -> None:
    """Whatever digest it has."""
    _, hold = settled(held(), answer("RUNNING", digest=1))
    broke = replace(answer("RUNNING", digest=1, polls=1), error=CallError(ErrorKind.TIMEOUT, "late"))
    write, hold = settled(hold, broke)
    assert write.last is not None
    assert hold.shown is None


def test_the_last_answer_is_written_with_its_own_times() -> None:
    """When the job is over, whatever came before."""
    _, hold = settled(held(), answer("RUNNING", digest=1))
    write, _ = settled(hold, answer("DONE", digest=1, polls=1))
    assert write.outcome == "succeeded"
    assert write.last is not None


def test_a_poll_that_says_the_same_leaves_the_entry() -> None:
    """Only the state, the step and the timeline move on; whatever else the commit brought is in the entry after it."""
    first, hold = settled(held(), answer("RUNNING", digest=1))
    assert hold.entry != held().entry
    assert hold.entry.event_seq == len(first.events) == 1
    _, after = settled(hold, answer("RUNNING", digest=1, polls=1))
    assert after.entry is hold.entry
    carried, last = settled(after, replace(answer("RUNNING", digest=1, polls=2), carried='"page-2"'))
    assert (carried.carried, last.entry.carried) == ('"page-2"', '"page-2"')


def test_each_commit_is_proven_by_the_step_before() -> None:
    """The grip of the claim, one step further with each commit, a permit's too."""
    claimed = held()
    grips = [claimed.grip, claimed.reserved().grip]
    for polls in range(2):
        write, claimed = settled(claimed, answer("RUNNING", digest=1, polls=polls))
        assert write.grip == replace(grips[0], step=1 + polls)
    assert [grip.step for grip in (*grips, claimed.grip)] == [1, 2, 3]
