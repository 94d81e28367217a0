"""The contract of a store, as to jobs: whatever passes may stand in for another."""

from __future__ import annotations

import pytest

from tarry.errors import CheckpointError, SpecError, StoreError, StoreUnavailable
from tarry.ports import Event, Listing, NewJob
from tarry.store.statements import KEEP_EVENTS
from tarry.words import SECOND, Outcome, Phase
from tests.contract.bench import FLOOR, START, TTL, Bench, ending, grip, held, new_job, reread, told, write

# Creating and finding


def test_a_new_job_is_found_as_it_was_given(bench: Bench) -> None:
    """Every field of a new job comes back, and the rest begins at nothing."""
    job = new_job(labels={"team": "café", "a": '"{,'}, deadline=START + 9, events=[told("created")])
    row, created = bench.store.add(job)
    assert created
    assert bench.store.find("default", "orders") == row
    kept = (
        "namespace",
        "key",
        "token",
        "fingerprint",
        "spec",
        "labels",
        "state",
        "phase",
        "created_at",
        "due",
        "floor",
    )
    assert {name: getattr(row, name) for name in kept} == {name: getattr(job, name) for name in kept}
    assert (row.run, row.wake, row.deadline, row.max_polls) == (1, START, START + 9, 3)
    assert (row.fence, row.step, row.cmd, row.polls, row.reserved, row.strikes, row.event_seq) == (0, 0, 0, 0, 0, 0, 1)
    assert (row.owner, row.nonce, row.outcome, row.last, row.output) == (None,) * 5


def test_a_job_is_created_once(bench: Bench) -> None:
    """The same token again created it; another token finds it; nothing is written twice."""
    first, _ = bench.store.add(new_job(events=[told("created")]))
    assert bench.store.add(new_job(events=[told("created")])) == (first, True)
    assert bench.another().add(new_job(token="other", state="{}")) == (first, False)
    assert bench.count("tarry_event") == 1


@pytest.mark.parametrize(("one", "other"), [("a", "A"), ("a", "a "), ("é", "e\u0301"), ("", " "), ("%", "_")])
def test_keys_are_compared_by_bytes(bench: Bench, one: str, other: str) -> None:
    """Case, blanks, accents and wildcards tell keys apart."""
    first, _ = bench.store.add(new_job(one, token="1"))
    second, created = bench.store.add(new_job(other, token="2"))
    assert created
    assert (bench.store.find("default", one), bench.store.find("default", other)) == (first, second)


def test_namespaces_are_apart(bench: Bench) -> None:
    """The same key in two namespaces is two jobs."""
    bench.store.add(new_job())
    _, created = bench.store.add(new_job(namespace="other", token="2"))
    assert created
    assert bench.store.find("third", "orders") is None


@pytest.mark.parametrize("key", ["\x00", "\ud800", "k" * 1025])
def test_a_key_that_cannot_be_stored_is_refused(bench: Bench, key: str) -> None:
    """A key is never altered to fit: that could make two jobs one."""
    with pytest.raises(SpecError, match=r"^key: use at most"):
        bench.store.add(new_job(key))
    assert bench.store.find("default", key) is None
    assert bench.store.events("default", key, (0, 0), 10) == []
    assert bench.store.listing(Listing("default", prefix=key)) == []


def test_texts_that_databases_refuse_are_escaped(bench: Bench) -> None:
    """NUL and lone surrogates in what a server sent become escapes, and hurt nothing."""
    row = held(bench.store, state='{"a":"\ud800"}', labels={"x": "\x00"}, events=[told("seen\x00", text="\ud800")])
    assert (row.state, row.labels) == ('{"a":"\\ud800"}', {"x": "\x00"})
    assert bench.store.checkpoint([write(grip(row), last='"\x00\ud800"')]) == [True]
    assert reread(bench.store, row).last == '"\\u0000\\ud800"'
    (event,) = bench.store.events("default", "orders", (0, 0), 10)
    assert (event.kind, event.at, event.data) == ("seen\\u0000", START, {"text": "\ud800"})


def test_a_value_that_cannot_be_stored_creates_nothing(bench: Bench) -> None:
    """A number past 64 bits, or NaN in an event, is a typed error and leaves no row."""
    with pytest.raises(StoreError, match="cannot be stored"):
        bench.store.add(new_job(due=2**63))
    with pytest.raises(StoreError, match="cannot be stored"):
        bench.store.add(new_job(events=[told("odd", value=float("nan"))]))
    assert bench.store.find("default", "orders") is None
    assert bench.count("tarry_spec") == 0


def test_equal_specs_are_stored_once(bench: Bench) -> None:
    """A thousand jobs of one spec do not store it a thousand times."""
    for key in "abc":
        bench.store.add(new_job(key))
    bench.store.add(new_job("d", spec="{}"))
    assert bench.count("tarry_spec") == 2


def test_a_job_is_taken_as_it_is_made(bench: Bench) -> None:
    """In one commit, and as by a claim that permits the first poll; the same call again finds the same."""
    worker = bench.store.register("first", START, TTL)
    job = new_job(owner=worker, reserved=1)
    row, created = bench.store.add(job)
    assert created
    assert (row.owner, row.nonce, row.fence, row.step, row.wake, row.reserved) == (worker, job.token, 1, 1, None, 1)
    assert bench.store.add(job) == (row, True)
    assert bench.store.checkpoint([write(grip(row), 1)]) == [True]


def test_a_job_that_is_there_is_not_taken(bench: Bench) -> None:
    """Whoever finds it claims it like everybody."""
    row, _ = bench.store.add(new_job())
    worker = bench.store.register("first", START, TTL)
    assert bench.store.add(new_job(token="other", owner=worker, reserved=1)) == (row, False)


def test_a_worker_that_is_gone_takes_nothing_as_it_is_made(bench: Bench) -> None:
    """The job is made all the same, is nobody's, and may not be polled yet."""
    worker = bench.store.register("first", START, TTL)
    bench.store.retire(worker, START)
    row, created = bench.store.add(new_job(owner=worker, reserved=1))
    assert created
    assert (row.owner, row.nonce, row.fence, row.step, row.wake, row.reserved) == (None, None, 0, 0, START, 0)


def test_no_poll_is_permitted_that_was_spent_elsewhere(bench: Bench) -> None:
    """A job that comes with all its polls made is taken without a permit."""
    worker = bench.store.register("first", START, TTL)
    row, _ = bench.store.add(new_job(owner=worker, reserved=1, polls=3))
    assert (row.owner, row.polls, row.reserved) == (worker, 3, 0)


def test_a_job_taken_as_it_was_made_outlives_its_worker(bench: Bench) -> None:
    """Its permit counts as a poll, and it wants an owner again."""
    worker = bench.store.register("first", START, TTL)
    row, _ = bench.store.add(new_job(owner=worker, reserved=1))
    other = bench.another().register("other", START, 10 * TTL)
    assert bench.another().bury(other, START + 2 * TTL) == 1
    after = reread(bench.store, row)
    assert (after.owner, after.polls, after.reserved, after.fence) == (None, 1, 0, 2)


# Claiming


def test_many_are_created_at_once(bench: Bench) -> None:
    """As one by one: those that are there are found, and the same key twice is one job."""
    old, _ = bench.store.add(new_job("old"))
    jobs = [new_job("a", events=[told("created")]), new_job("old", token="other"), new_job("a", token="again")]
    added = bench.store.add_all([*jobs, new_job("b")])
    assert [(row.key, created) for row, created in added] == [("a", True), ("old", False), ("a", False), ("b", True)]
    assert added[1][0] == old
    assert added[0][0] == added[2][0] == bench.store.find("default", "a")
    assert bench.store.add_all([*jobs, new_job("b")])[0] == added[0]


def test_a_job_that_is_forgotten_meanwhile_is_looked_for_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole call is a passing fault, and made again: then the key is free."""
    job = bench.store.tables.job
    with monkeypatch.context() as patched:
        patched.setattr(bench.store._sql, "by_id", bench.store._sql.by_id.where(job.c.key != "a"))
        with pytest.raises(StoreUnavailable):
            bench.store.add_all([new_job("a"), new_job("b")])
    assert [created for _, created in bench.store.add_all([new_job("a"), new_job("b")])] == [True, True]
    assert bench.count("tarry_job") == 2


def test_where_one_cannot_be_created_none_is(bench: Bench) -> None:
    """The caller then tries them one by one."""
    with pytest.raises(SpecError):
        bench.store.add_all([new_job("a"), new_job("b" * 2000)])
    assert bench.store.find("default", "a") is None


def test_a_claim_takes_free_jobs_only(bench: Bench) -> None:
    """One owner at a time; the fence and the step go on, and the job no longer asks for an owner."""
    row = held(bench.store)
    assert (row.fence, row.nonce, row.step, row.wake, row.reserved) == (1, "n1", 1, None, 0)
    second = bench.another().register("second", START, TTL)
    assert bench.another().claim(second, "n2", START, [row.id, 999]) == []
    assert reread(bench.store, row) == row


def test_a_claim_repeated_gives_the_same_rows(bench: Bench) -> None:
    """After a lost answer the same call finds what it took, and takes nothing twice."""
    row = held(bench.store)
    assert row.owner is not None
    assert bench.store.claim(row.owner, "n1", START, [row.id]) == [row]
    assert bench.store.claim(row.owner, "n2", START, [row.id]) == []


@pytest.mark.parametrize(
    ("job", "reserved"),
    [
        (new_job(), 1),
        (new_job(due=START + 3 * SECOND), 0),
        (new_job(phase=Phase.SUBMITTING), 0),
        (new_job(max_polls=4, polls=4), 0),
        (new_job(max_polls=4, polls=3), 1),
    ],
)
def test_a_claim_permits_a_poll_that_is_near(bench: Bench, job: NewJob, reserved: int) -> None:
    """Where it is asked to: of a job that waits for it by then, and has one left."""
    row, _ = bench.store.add(job)
    worker = bench.store.register("w1", START, TTL)
    claimed = bench.store.claim(worker, "n1", START, [row.id], START + 2 * SECOND)
    assert [each.reserved for each in claimed] == [reserved]
    assert bench.store.rows([row.id]) == claimed
    assert bench.store.claim(worker, "n1", START, [row.id], START + 2 * SECOND) == claimed


def test_a_job_that_is_over_is_not_claimed(bench: Bench) -> None:
    """Terminal is terminal."""
    row = held(bench.store)
    bench.store.checkpoint([ending(grip(row))])
    assert row.owner is not None
    assert bench.store.claim(row.owner, "n2", START, [row.id]) == []


def test_many_are_claimed_at_once(bench: Bench) -> None:
    """More ids than a statement takes parameters are taken in one transaction."""
    worker = bench.store.register("first", START, TTL)
    jobs = bench.multiply(bench.store.add(new_job())[0], 500)
    assert [row.id for row in bench.store.claim(worker, "n1", START, jobs)] == jobs


@pytest.mark.parametrize("gone", ["retired", "buried", "unknown"])
def test_only_a_live_worker_claims(bench: Bench, gone: str) -> None:
    """A worker just declared dead must not take a job that nobody would free."""
    worker = bench.store.register("first", START, TTL)
    if gone == "retired":
        bench.store.retire(worker, START)
    elif gone == "buried":
        bench.store.bury(bench.another().register("second", START + TTL, TTL), START + TTL)
    row, _ = bench.store.add(new_job())
    assert bench.store.claim(worker if gone != "unknown" else 999, "n1", START, [row.id]) == []
    assert reread(bench.store, row).owner is None


# Permits


def test_a_permit_is_granted_once(bench: Bench) -> None:
    """The same call again says yes to the same permit; another call gets no second one."""
    row = held(bench.store)
    assert bench.store.reserve([grip(row)]) == [True]
    assert bench.store.reserve([grip(row)]) == [True]
    assert bench.store.reserve([grip(row, 1)]) == [False]
    after = reread(bench.store, row)
    assert (after.reserved, after.polls, after.step) == (1, 0, row.step + 1)


def test_no_permit_past_the_limit(bench: Bench) -> None:
    """With all polls spent there is no permit, by either way."""
    row = held(bench.store, max_polls=1)
    assert bench.store.checkpoint([write(grip(row), 1, max_polls=1)]) == [True]
    assert bench.store.reserve([grip(row, 1)]) == [False]
    assert bench.store.checkpoint([write(grip(row, 1), 1, max_polls=1, reserved=1)]) == [False]
    assert (reread(bench.store, row).polls, reread(bench.store, row).reserved) == (1, 0)


def test_a_job_without_limit_is_always_permitted(bench: Bench) -> None:
    """No `max_polls` is no bound."""
    row = held(bench.store, max_polls=None)
    assert bench.store.checkpoint([write(grip(row), 10**9, max_polls=None)]) == [True]
    assert bench.store.reserve([grip(row, 1)]) == [True]


# Checkpoints


def test_a_checkpoint_writes_all_of_it(bench: Bench) -> None:
    """Each field is there afterwards, and the owner stays."""
    row = held(bench.store)
    made = write(
        grip(row),
        1,
        phase=Phase.BLOCKED,
        reserved=1,
        deadline=START + 5,
        max_polls=7,
        floor=9,
        spec='{"poll":2}',
        last='"last"',
        submit='"submit"',
        baseline='"baseline"',
        poll='"poll"',
        status_url='"status_url"',
        validators='"validators"',
        output='"output"',
        timeline="[1]",
        carried="null",
        events=[told("changed", to="RUNNING"), told("hint")],
    )
    assert bench.store.checkpoint([made]) == [True]
    after = reread(bench.store, row)
    names = (
        "state",
        "phase",
        "polls",
        "polled_at",
        "due",
        "reserved",
        "deadline",
        "max_polls",
        "floor",
        "spec",
        "last",
    )
    for name in (*names, "submit", "baseline", "poll", "status_url", "validators", "output", "timeline", "carried"):
        assert getattr(after, name) == getattr(made, name), name
    assert (after.owner, after.fence, after.nonce, after.step, after.wake) == (row.owner, 1, "n1", row.step + 1, None)
    assert [(e.seq, e.kind) for e in bench.store.events("default", "orders", (0, 0), 10)] == [
        (1, "changed"),
        (2, "hint"),
    ]


def test_none_leaves_what_is_stored(bench: Bench) -> None:
    """Texts and the floor stay when a checkpoint brings none; the limits are written as they are."""
    row = held(bench.store, deadline=START + 5)
    names = ("last", "submit", "baseline", "poll", "status_url", "validators", "output", "timeline", "carried")
    texts = {name: f'"{name}"' for name in names}
    bench.store.checkpoint([write(grip(row), deadline=START + 5, **texts)])
    bench.store.checkpoint([write(grip(row, 1), max_polls=None)])
    after = reread(bench.store, row)
    assert {name: getattr(after, name) for name in texts} == texts
    assert (after.spec, after.floor, after.deadline, after.max_polls) == (row.spec, FLOOR, None, None)


def test_a_checkpoint_repeated_is_applied_once(bench: Bench) -> None:
    """After a lost answer the same call says yes and writes nothing: no second event, no second step."""
    row = held(bench.store)
    made = write(grip(row), 1, events=[told("changed")])
    assert [bench.store.checkpoint([made]) for _ in range(3)] == [[True]] * 3
    assert reread(bench.store, row).step == row.step + 1
    assert bench.count("tarry_event") == 1


@pytest.mark.parametrize("part", ["fence", "nonce", "step", "cmd"])
def test_a_write_needs_the_whole_grip(bench: Bench, part: str) -> None:
    """Any other fence, nonce or step makes every write of a holder fail; any other command all but giving the job up."""
    row = held(bench.store)
    bench.damage("nonce = 'n7'" if part == "nonce" else f"{part} = {part} + 7")
    before = reread(bench.store, row)
    assert bench.store.checkpoint([write(grip(row), events=[told("changed")])]) == [False]
    assert bench.store.reserve([grip(row)]) == [False]
    assert reread(bench.store, row) == before
    assert bench.store.release([grip(row)], START) == [part == "cmd"]
    assert bench.count("tarry_event") == 0


def test_an_end_is_written_once(bench: Bench) -> None:
    """The outcome stands: it can be repeated by the one who wrote it, and never be changed."""
    row = held(bench.store)
    end = ending(grip(row), output='"done"', events=[told("succeeded")])
    assert bench.store.checkpoint([end]) == [True]
    after = reread(bench.store, row)
    assert (after.outcome, after.phase, after.finished_at) == (Outcome.SUCCEEDED, Phase.DONE, START + SECOND)
    assert (after.owner, after.wake, after.due, after.reserved) == (None, None, None, 0)
    assert bench.store.checkpoint([end]) == [True]
    assert bench.store.checkpoint([ending(grip(row, 1), outcome=Outcome.FAILED)]) == [False]
    assert bench.store.reserve([grip(row, 1)]) == [False]
    assert bench.store.release([grip(row, 1)], START) == [False]
    assert not bench.store.cancel(row.id, row.step + 1, "{}", START, [])
    assert reread(bench.store, row) == after


def test_an_end_is_final_whatever_else_the_row_says(bench: Bench) -> None:
    """Even a row that names an owner again, by damage or a bug, takes no write after its end."""
    row = held(bench.store)
    bench.store.checkpoint([ending(grip(row))])
    bench.damage(f"owner = {row.owner}, reserved = 0")
    late = grip(row, 1)
    assert bench.store.reserve([late]) == [False]
    assert bench.store.checkpoint([ending(late, outcome=Outcome.FAILED)]) == [False]
    assert bench.store.release([late], START) == [False]


def test_an_end_may_come_with_a_release(bench: Bench) -> None:
    """A job that is over is not released into the world: it wants no owner."""
    row = held(bench.store)
    end = ending(grip(row), release=True)
    assert [bench.store.checkpoint([end]), bench.store.checkpoint([end])] == [[True], [True]]
    assert reread(bench.store, row).wake is None


def test_a_refused_write_hurts_only_itself(bench: Bench) -> None:
    """Of a batch, what holds is committed, and what does not is reported in its place."""
    one, two, three = (held(bench.store, key) for key in ("a", "b", "c"))
    stale = write(grip(two, 5), 1, events=[told("changed")])
    assert bench.store.checkpoint([write(grip(one), 1), stale, write(grip(three), 1)]) == [True, False, True]
    assert [reread(bench.store, row).polls for row in (one, two, three)] == [1, 0, 1]
    assert bench.count("tarry_event") == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"due": 2**63},
        {"events": [told("odd", value=float("inf"))], "polls": 1},
        {"events": [told("odd", value=object())], "polls": 1},
        {"due": None},
        {"release": True, "reserved": 1},
        {"outcome": Outcome.FAILED, "reserved": 1},
        {"polls": 3, "reserved": 1},
        {"reserved": 2},
    ],
)
def test_a_write_that_cannot_be_stored_hurts_only_itself(bench: Bench, changes: dict[str, object]) -> None:
    """A value no database takes, or a permit that must not be: that row stays as it was, the others are written."""
    one, two = held(bench.store, "a"), held(bench.store, "b")
    assert bench.store.checkpoint([write(grip(two), **changes), write(grip(one), 1)]) == [False, True]
    assert reread(bench.store, two) == two
    assert reread(bench.store, one).polls == 1


def test_a_count_never_falls(bench: Bench) -> None:
    """A holder that forgot polls cannot permit them again."""
    row = held(bench.store)
    bench.store.checkpoint([write(grip(row), 2)])
    assert bench.store.checkpoint([write(grip(row, 1), 1)]) == [False]
    assert reread(bench.store, row).polls == 2


def test_a_limit_below_what_is_spent_becomes_what_is_spent(bench: Bench) -> None:
    """A spec with a lower limit cannot make the past a breach."""
    row = held(bench.store)
    assert bench.store.checkpoint([write(grip(row), 2, max_polls=1)]) == [True]
    assert reread(bench.store, row).max_polls == 2


# Releases


def test_a_job_given_up_waits_for_the_next_owner(bench: Bench) -> None:
    """Released by a checkpoint: no owner, due later, and the old grip is worth nothing."""
    row = held(bench.store)
    made = write(grip(row), 1, release=True)
    assert [bench.store.checkpoint([made]), bench.store.checkpoint([made])] == [[True], [True]]
    after = reread(bench.store, row)
    assert (after.owner, after.wake, after.fence, after.step) == (None, made.due, row.fence + 1, row.step + 1)
    assert bench.store.checkpoint([write(grip(row, 1), 2)]) == [False]
    assert row.owner is not None
    (again,) = bench.store.claim(row.owner, "n2", START, [row.id])
    assert bench.store.checkpoint([made]) == [False]
    assert reread(bench.store, row) == again


def test_an_unused_permit_is_given_back_uncounted(bench: Bench) -> None:
    """Release of what was not sent: the count stays, and the job is due as before."""
    row = held(bench.store)
    bench.store.reserve([grip(row)])
    assert [bench.store.release([grip(row, 1)], START + 9) for _ in range(2)] == [[True]] * 2
    after = reread(bench.store, row)
    assert (after.polls, after.reserved, after.strikes, after.owner, after.wake) == (0, 0, 0, None, START)
    assert after.fence == row.fence + 1


# Cancelling


@pytest.mark.parametrize("reserved", [0, 1])
def test_a_cancel_ends_the_job_whoever_holds_it(bench: Bench, reserved: int) -> None:
    """One compare-and-swap: terminal, an unsettled permit counted, the holder's grip worth nothing."""
    row = held(bench.store)
    if reserved:
        bench.store.reserve([grip(row)])
    args = (row.id, row.step + reserved, '{"c":1}', START + 3, [told("cancelled")])
    assert [bench.another().cancel(*args), bench.store.cancel(*args)] == [True, True]
    after = reread(bench.store, row)
    assert (after.outcome, after.phase, after.finished_at) == (Outcome.CANCELLED, Phase.DONE, START + 3)
    assert (after.polls, after.reserved, after.owner, after.wake, after.due) == (reserved, 0, None, None, None)
    assert (after.state, after.fence) == ('{"c":1}', row.fence + 1)
    assert bench.store.checkpoint([ending(grip(row, reserved))]) == [False]
    assert bench.store.checkpoint([ending(grip(row, reserved), release=True)]) == [False]
    assert bench.store.release([grip(row, reserved)], START) == [False]
    assert reread(bench.store, row) == after
    assert bench.count("tarry_event") == 1


def test_a_cancel_of_another_step_does_nothing(bench: Bench) -> None:
    """The canceller decided on a state that is no longer there: it must look again."""
    row = held(bench.store)
    assert not bench.store.cancel(row.id, row.step + 1, "{}", START, [told("cancelled")])
    assert not bench.store.cancel(999, 0, "{}", START, [])
    assert reread(bench.store, row) == row


# Looking


def test_a_glance_tells_a_waiter_enough(bench: Bench) -> None:
    """Owner, wake and outcome of several jobs; ids that are gone are left out."""
    one, two = held(bench.store, "a"), held(bench.store, "b")
    bench.store.checkpoint([ending(grip(two))])
    first, second = bench.store.glance([two.id, one.id, 999])
    assert (first.id, first.owner, first.outcome) == (one.id, one.owner, None)
    assert (second.id, second.owner, second.outcome, second.step) == (two.id, None, Outcome.SUCCEEDED, two.step + 1)
    assert bench.store.glance([]) == []
    assert bench.store.rows([]) == []


def test_a_listing_is_paged_in_order_of_creation(bench: Bench) -> None:
    """Pages follow each other without a gap or a repetition."""
    for key in ("b", "a", "c"):
        bench.store.add(new_job(key))
    first = bench.store.listing(Listing("default", limit=2))
    rest = bench.store.listing(Listing("default", limit=2, after=first[-1].id))
    assert [row.key for row in (*first, *rest)] == ["b", "a", "c"]
    assert bench.store.listing(Listing("other")) == []


def test_a_listing_filters(bench: Bench) -> None:
    """By outcome, phase and the beginning of the key, case and wildcards included."""
    done = held(bench.store, "Ab_1")
    bench.store.checkpoint([ending(grip(done))])
    bench.store.add(new_job("ab_2"))
    bench.store.add(new_job("abc"))

    def keys(**filters: object) -> list[str]:
        return [row.key for row in bench.store.listing(Listing("default", **filters))]  # type: ignore[arg-type]  # any filter

    assert keys(outcomes=[Outcome.SUCCEEDED, Outcome.FAILED]) == ["Ab_1"]
    assert keys(phases=[Phase.WAITING]) == ["ab_2", "abc"]
    assert keys(prefix="ab") == ["ab_2", "abc"]
    assert keys(prefix="ab_") == ["ab_2"]
    assert keys(phases=[Phase.DONE], prefix="ab") == []


@pytest.mark.parametrize(
    ("labels", "wanted", "found"),
    [
        ({"a": "1", "b": "2"}, {"b": "2"}, True),
        ({"a": "1", "b": "2"}, {"a": "1", "b": "2"}, True),
        ({"a": "1", "b": "2"}, {"a": "1", "b": "1"}, False),
        ({"a": "1"}, {"a": "11"}, False),
        ({"a": "11"}, {"a": "1"}, False),
        ({"xa": "1"}, {"a": "1"}, False),
        ({'x,"a': "1"}, {"a": "1"}, False),
        ({'x"a': "1"}, {"a": "1"}, False),
        ({"x": '{"a":"1"}'}, {"a": "1"}, False),
        ({"x": ',"a":"1"'}, {"a": "1"}, False),
        ({"a\\": "\ud800"}, {"a\\": "\ud800"}, True),
        ({"a": "x"}, {"a": "X"}, False),
    ],
)
def test_labels_match_whole_and_exactly(
    bench: Bench, labels: dict[str, str], wanted: dict[str, str], *, found: bool
) -> None:
    """A label is its name and its value; text that looks like one inside another is none."""
    bench.store.add(new_job(labels=labels))
    assert bool(bench.store.listing(Listing("default", labels=wanted))) is found


# Events


def test_events_follow_a_cursor(bench: Bench) -> None:
    """Each page begins after the last event of the one before, over creation, checkpoints and the end."""
    row = held(bench.store, events=[told("created")])
    bench.store.checkpoint([write(grip(row), 1, events=[told("changed", n=1), told("changed", n=2)])])
    bench.store.checkpoint([ending(grip(row, 1), 2, events=[told("succeeded")])])
    first = bench.store.events("default", "orders", (0, 0), 3)
    last = first[-1]
    rest = bench.store.events("default", "orders", (last.run, last.seq), 3)
    assert [(e.key, e.run, e.seq, e.kind) for e in (*first, *rest)] == [
        ("orders", 1, 1, "created"),
        ("orders", 1, 2, "changed"),
        ("orders", 1, 3, "changed"),
        ("orders", 1, 4, "succeeded"),
    ]
    assert Event(first[1].kind, first[1].at, first[1].data) == told("changed", n=1)
    assert bench.store.events("default", "orders", (1, 4), 3) == []
    assert bench.store.events("default", "unknown", (0, 0), 3) == []


def test_only_the_newest_events_are_kept(bench: Bench) -> None:
    """Storage is bounded, job by job, and a reader who came too late is told how much it missed."""
    other = held(bench.store, "other", events=[told("created")])
    row = held(bench.store, events=[told("created")])
    many = [told("changed", n=n) for n in range(KEEP_EVENTS + 4)]
    bench.store.checkpoint([write(grip(row), events=many)])
    assert bench.count("tarry_event") == KEEP_EVENTS + 1
    gap, oldest = bench.store.events("default", "orders", (1, 2), 2)
    assert (gap.kind, gap.data, gap.seq) == ("gap", {"missed": 3}, 5)
    assert (oldest.seq, oldest.kind, oldest.data) == (6, "changed", {"n": 4})
    assert bench.store.events("default", "orders", (1, 2), 1) == [gap]
    assert bench.store.events("default", "orders", (gap.run, gap.seq), 1) == [oldest]
    assert [e.kind for e in bench.store.events("default", other.key, (0, 0), 2)] == ["created"]


# Damage


@pytest.mark.parametrize(
    "change",
    [
        "labels = '{'",
        "labels = '[]'",
        "labels = '{\"a\":1}'",
        "phase = 'dreaming'",
        "outcome = 'won'",
        "polls = 'many'",
        "fence = 'many'",
        "nonce = x'00'",
        "due = 1.5",
        "state = x'00'",
        "state = CAST(x'ff' AS TEXT)",
        "labels = CAST(x'ff' AS TEXT)",
        "phase = CAST(x'ff' AS TEXT)",
        "outcome = CAST(x'ff' AS TEXT)",
        "spec = 'gone'",
    ],
)
def test_a_damaged_row_is_left_alone_and_hurts_no_other(bench: Bench, change: str) -> None:
    """It is loud where it was asked for, absent where others were, and never taken or overwritten."""
    worker = bench.store.register("first", START, TTL)
    bad, good = (bench.store.add(new_job(key))[0].id for key in ("bad", "good"))
    bench.damage(change, "bad")
    with pytest.raises(CheckpointError, match=r"job 'bad' .*left as it is"):
        bench.store.find("default", "bad")
    with pytest.raises(CheckpointError):
        bench.store.add(new_job("bad"))
    assert [row.key for row in bench.store.rows([bad, good])] == ["good"]
    assert [row.key for row in bench.store.listing(Listing("default"))] == ["good"]
    assert [row.key for row in bench.store.claim(worker, "n1", START, [bad, good])] == ["good"]
    left = {seen.id: (seen.owner, seen.step) for seen in bench.store.glance([bad, good])}
    assert left.pop(good) == (worker, 1)
    assert left == ({} if "outcome" in change else {bad: (None, 0)})


@pytest.mark.parametrize(
    "change",
    [
        "data = '{'",
        "data = '[]'",
        "data = CAST(x'ff' AS TEXT)",
        "kind = x'00'",
        "at = 'x'",
        "at = 1.5",
        "at = 4611686018427387904",
    ],
)
def test_a_damaged_event_is_loud(bench: Bench, change: str) -> None:
    """History is not shown with a hole that nobody is told of, nor with a time that no calendar has."""
    bench.store.add(new_job(events=[told("created")]))
    bench.execute(f"UPDATE tarry_event SET {change}")
    with pytest.raises(CheckpointError, match="event 1 is damaged"):
        bench.store.events("default", "orders", (0, 0), 10)


# Opening


def test_a_store_is_opened_again(bench: Bench) -> None:
    """Open is safe to repeat, and finds what was there."""
    row, _ = bench.store.add(new_job())
    bench.store.open(START)
    assert bench.another().find("default", "orders") == row


@pytest.mark.parametrize("version", ["2", "99"])
def test_a_newer_schema_is_refused(bench: Bench, version: str) -> None:
    """Tables of a newer Tarry are not touched, and the message says what to do."""
    bench.execute(f"UPDATE tarry_meta SET value = '{version}'")
    with pytest.raises(StoreError, match=f"version {version}, this Tarry knows up to 1: install"):
        bench.store.open(START)


@pytest.mark.parametrize(
    "change", ["DELETE FROM tarry_meta", "UPDATE tarry_meta SET value = 'x'", "DROP TABLE tarry_meta"]
)
def test_tables_without_a_version_are_refused(bench: Bench, change: str) -> None:
    """Tables that are not known to be ours are left alone."""
    bench.execute(change)
    with pytest.raises(StoreError, match="damaged"):
        bench.store.open(START)


def test_the_version_tells_that_something_changed(bench: Bench) -> None:
    """Another number after a commit of anybody's; the same one after reads, and after asking."""
    store = bench.store
    held(store)
    before = store.version()
    store.find("default", "orders")
    # On a server others commit as well, and some say so each time: that costs a look, no more.
    assert bench.is_server or store.version() == before
    store.add(new_job("another"))
    assert store.version() != before


# The result that is fetched after the end


def test_a_fetched_result_is_written_once(bench: Bench) -> None:
    """Only into a job that is over, at the step that was read, and never over another result."""
    row = held(bench.store)
    assert not bench.store.fetched(row.id, row.step, "{}", "1", [])
    bench.store.checkpoint([ending(grip(row))])
    over = reread(bench.store, row)
    assert not bench.store.fetched(row.id, over.step - 1, "{}", "1", [])
    assert bench.store.fetched(row.id, over.step, '{"error":"late"}', None, [told("fetch_failed")])
    assert bench.store.fetched(row.id, over.step + 1, "{}", '{"rows":3}', [told("fetched")])
    assert not bench.store.fetched(row.id, over.step + 2, "{}", "2", [told("fetched")])
    last = reread(bench.store, row)
    assert (last.output, last.outcome, last.state, last.event_seq) == ('{"rows":3}', over.outcome, "{}", 2)
    assert [event.kind for event in bench.store.events("default", "orders", (0, 0), 9)] == ["fetch_failed", "fetched"]
