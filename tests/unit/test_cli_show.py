"""Jobs, changes and timelines as text."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tarry.cli import changes, live, show, table, timeline
from tarry.core.observation import CallError, Observation
from tarry.core.results import Job, Tick
from tarry.ports import Event, StoredEvent
from tarry.words import CallKind, ErrorKind, Json, Outcome, Phase, WaitSource, instant

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    """This long after the job's creation."""
    return START + timedelta(seconds=seconds)


RUNNING = Job(
    id=1,
    key="orders-2026-q2",
    namespace="default",
    phase=Phase.WAITING,
    paused=False,
    outcome=None,
    reason=None,
    status="RUNNING",
    progress=0.5,
    polls=2,
    reserved=1,
    max_polls=60,
    failures=0,
    error=None,
    created_at=START,
    next_poll_at=after(6),
    deadline=after(3600),
    finished_at=None,
    owner=7,
    output=None,
    last=None,
    timeline=(Tick(after(0.1), "pending", "strategy"), Tick(after(2.1), "pending", "hint")),
    wait_source="hint",
)
DONE = replace(
    RUNNING,
    phase=Phase.DONE,
    outcome=Outcome.SUCCEEDED,
    status="SUCCEEDED",
    progress=1.0,
    polls=3,
    reserved=0,
    next_poll_at=None,
    wait_source=None,
    finished_at=after(6.3),
    owner=None,
    output={"rows": 3},
    labels={"team": "a\x1b"},
    timeline=(*RUNNING.timeline, Tick(after(6), "succeeded", None)),
)


def event(kind: str, seconds: float = 4, **data: Json) -> StoredEvent:
    """A stored event of the job."""
    return StoredEvent.of(RUNNING.key, 0, 1, Event(kind, instant(after(seconds)), data))


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        (event("created"), "created"),
        (event("stalled", unmoved_us=1_800_000_000), "stalled: no change for 30m 00s"),
        (event("unstalled"), "moves again"),
        (event("submit_sent"), "submitting"),
        (event("submitted"), "submitted"),
        (event("submit_failed", error="refused"), "submit failed: refused"),
        (event("status", to="QUEUED", **{"from": None}), "status QUEUED"),
        (event("status", to="RUNNING", **{"from": "QUEUED"}), "status QUEUED -> RUNNING"),
        (event("status", to=None, **{"from": "QUEUED"}), "status QUEUED -> none"),
        (event("progress", progress=0.4), "progress 40 %"),
        (event("progress", progress="step 2"), "progress step 2"),
        (event("progress", progress=None), "progress none"),
        (event("blocked", status="PAUSED"), "blocked, waits for a person (status PAUSED)"),
        (event("unblocked"), "no longer blocked"),
        (event("unknown_status", value="ODD"), "status ODD is in none of the sets"),
        (event("poll_failed", error="503\n"), r"poll failed: 503\n"),
        (event("poll_failed", error="http_status: HTTP 503"), "poll failed: HTTP 503"),
        (event("submit_failed", error="submit: connect: could not connect"), "submit failed: could not connect"),
        (event("recovered", failed_polls=1), "answers again after 1 failed poll"),
        (event("recovered", failed_polls=None), "answers again after 0 failed polls"),
        (event("wait_changed", source="hint"), "wait set by server's hint"),
        (event("wait_changed", source="new\x07"), r"wait set by new\x07"),
        (event("wait_changed", source=None), "wait set by nothing"),
        (event("freed", worker=3), "taken from a worker that stopped"),
        (event("written_off"), "a permit of a worker that stopped counts as a poll"),
        (event("gap", missed=2), "2 older events no longer kept"),
        (event("finished", outcome="failed", reason="no\x1bspace"), r"FAILED: no\x1bspace"),
        (event("finished", outcome="succeeded", reason=None), "SUCCEEDED"),
        (event("spec_changed", fields=["limits", "x\x1b"]), r"spec changed: limits, x\x1b"),
        (event("spec_changed"), "spec changed: none"),
        (event("brand\n_new"), r"brand\n new"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_change_is_told_in_words(stored: StoredEvent, text: str) -> None:
    """Every kind of event has its words; a server's text in it is escaped; an unknown kind is shown by name."""
    assert changes.describe(stored.kind, stored.data) == text


@pytest.mark.parametrize("source", list(WaitSource))
def test_each_source_of_a_wait_has_its_words(source: WaitSource) -> None:
    """None is shown by its bare identifier."""
    assert "_" not in changes.source(source).replace("min_interval", "")


def test_a_commit_is_one_line_with_time_polls_and_the_next_wait() -> None:
    """Once the job is over, no next poll is told; an overdue one is told as now; before the submit there is none."""
    status, step = event("status", to="RUNNING", **{"from": "QUEUED"}), event("progress", progress=0.5)
    told = changes.line([status, step], RUNNING)
    assert told == "12:00:04Z  poll 2    status QUEUED -> RUNNING, progress 50 %; next poll in 2s"
    assert changes.line([step], replace(RUNNING, next_poll_at=after(3))).endswith("50 %; next poll now")
    assert changes.line([step], DONE) == "12:00:04Z  poll 3    progress 50 %"
    assert changes.line([event("created"), event("submitted")], RUNNING) == "12:00:04Z            created, submitted"
    assert changes.line([step], None) == "12:00:04Z            progress 50 %"


def test_events_of_one_instant_are_one_commit() -> None:
    """They were written together, so they are told together."""
    first, second, third = event("created", 0), event("status", 1), event("progress", 1)
    assert changes.commits([first, second, third]) == [[first], [second, third]]


def test_what_comes_before_the_first_poll_is_told_apart_from_it() -> None:
    """Also where a look finds all of it at once, and no time passed between."""
    sent, submitted, status = event("submit_sent", 0), event("submitted", 0), event("status", 0)
    assert changes.commits([sent, submitted, status]) == [[sent, submitted], [status]]


def test_the_timeline_tells_each_poll_and_its_wait() -> None:
    """The wait after the last poll is known from the time of the next one."""
    assert timeline.lines(RUNNING) == [
        "poll 1      +0.10s  pending          2s to the next (strategy)",
        "poll 2      +2.10s  pending        3.9s to the next (server's hint)",
    ]
    assert timeline.lines(DONE)[-1] == "poll 3      +6.00s  succeeded"


def test_a_long_timeline_says_which_polls_it_remembers() -> None:
    """Its marks are those of the last polls, and are numbered so."""
    longer = replace(DONE, polls=90, timeline=DONE.timeline[:1] * 64)
    assert "timeline (64 of 90 polls)" in show.detail(longer, [], after(10))
    assert [poll.number for poll in timeline.polls(longer)] == list(range(27, 91))


def test_a_poll_without_a_mark_is_explained() -> None:
    """A worker died with its permit: the poll counts, and the timeline says why it is not there."""
    lines = show.detail(replace(DONE, polls=4), [], after(10))
    assert "timeline (3 of 4 polls) (1 permitted to a worker that died: sent or not, it counts)" in lines


def test_a_job_that_is_over_is_told_in_full() -> None:
    """State, limits, timeline, events, output: everything that the database knows, escaped."""
    events = [event("created", 0), event("finished", 6.3, outcome="succeeded")]
    assert show.detail(DONE, events, after(10)) == [
        "orders-2026-q2  succeeded after 3 polls in 6.3s",
        "  status     SUCCEEDED",
        "  progress   100 %",
        "  created    2026-03-01 12:00:00Z",
        "  finished   2026-03-01 12:00:06Z",
        "  deadline   2026-03-01 13:00:00Z",
        "  polls      3 of at most 60, 57 left",
        r'  labels     {"team": "a\u001b"}',
        "",
        "timeline (every poll)",
        "  poll 1      +0.10s  pending          2s to the next (strategy)",
        "  poll 2      +2.10s  pending        3.9s to the next (server's hint)",
        "  poll 3      +6.00s  succeeded",
        "",
        "events",
        "  12:00:00Z  created",
        "  12:00:06Z  SUCCEEDED",
        "",
        "output",
        '  {"rows": 3}',
    ]


def test_a_job_under_way_tells_what_is_left() -> None:
    """The next poll, the deadline, the polls left, the failures, and who holds it."""
    failing = replace(RUNNING, failures=2, error="503\x1b", reason="r", max_polls=None)
    lines = show.detail(failing, [], after(4))
    assert lines[0] == "orders-2026-q2  waiting, 2 polls so far"
    assert "  next poll  2026-03-01 12:00:06Z, in 2s (server's hint)" in lines
    assert "  deadline   2026-03-01 13:00:00Z, in 59m 56s" in lines
    assert "  polls      2, no limit" in lines
    assert r"  error      503\x1b (2 failed polls in a row)" in lines
    assert "  holder     worker 7" in lines
    permitted = show.detail(replace(RUNNING, deadline=None), [], after(7))
    assert "  polls      2 of at most 60, 57 left, 1 permitted and not settled" in permitted
    assert "  next poll  2026-03-01 12:00:06Z, due (server's hint)" in permitted
    assert "  deadline   none" in permitted


def test_a_job_that_stands_still_is_told_of() -> None:
    """Since when, and for how long."""
    lines = show.detail(replace(RUNNING, stalled=True, changed_at=after(2)), [], after(62))
    assert "  stalled    nothing changed since 2026-03-01 12:00:02Z, 1m 00s ago" in lines
    assert not any("stalled" in line for line in show.detail(replace(RUNNING, changed_at=after(2)), [], after(62)))
    shown = show.job_json(replace(RUNNING, stalled=True, changed_at=after(2)))
    assert (shown["stalled"], shown["changed_at"], shown["wait_source"]) == (True, "2026-03-01T12:00:02+00:00", "hint")


def test_a_snapshot_as_json_keeps_the_facts() -> None:
    """Instants are ISO 8601; of the last answer there is the status, the body and the error."""
    seen = Observation(CallKind.POLL, 0, 1, error=CallError(ErrorKind.TIMEOUT, "too slow"))
    shown = show.job_json(replace(DONE, last=seen))
    assert shown["outcome"] == "succeeded"
    assert shown["created_at"] == "2026-03-01T12:00:00+00:00"
    assert shown["next_poll_at"] is None
    assert shown["last"] == {"http_status": None, "body": None, "error": {"kind": "timeout", "detail": "too slow"}}
    assert show.job_json(RUNNING)["last"] is None
    answered = show.job_json(replace(DONE, last=Observation(CallKind.POLL, 0, 1, status=200, body={"a": 1})))
    assert answered["last"] == {"http_status": 200, "body": {"a": 1}, "error": None}


def test_a_plain_table_has_aligned_columns() -> None:
    """A heading, then one line a row, without trailing blanks."""
    assert table.plain_table(("key", "state"), [("a-long-key", "waiting"), ("b", "-")]) == [
        "KEY         STATE",
        "a-long-key  waiting",
        "b           -",
    ]


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (RUNNING, "orders-2026-q2  RUNNING  ━━━━━━━━━━━━━━━━ 50 %  poll 2/60  next poll in 2s (server's hint)  4s so far, 59m 56s left"),
        (replace(RUNNING, progress="step 2", wait_source="strategy"), "orders-2026-q2  RUNNING  step 2  poll 2/60  next poll in 2s  4s so far, 59m 56s left"),
        (
            replace(RUNNING, progress=None, next_poll_at=after(4), deadline=None, max_polls=None),
            "orders-2026-q2  RUNNING  poll 2  polling now  4s so far",
        ),
        (
            replace(RUNNING, progress=None, failures=3, error="503\x1b[2J", deadline=None, wait_source="strategy"),
            "orders-2026-q2  no answer (3 in a row): 503\\x1b[2J  poll 2/60  next poll in 2s  4s so far",
        ),
        (
            replace(RUNNING, progress=None, phase=Phase.BLOCKED, status="PAUSED", deadline=None, wait_source="strategy"),
            "orders-2026-q2  PAUSED (waits for a person)  poll 2/60  next poll in 2s  4s so far",
        ),
        (
            replace(RUNNING, progress=None, status=None, deadline=None, wait_source="strategy"),
            "orders-2026-q2  waiting  poll 2/60  next poll in 2s  4s so far",
        ),
    ],
)  # fmt: skip
def test_the_live_line_counts_down(job: Job, text: str) -> None:
    """Status, progress, polls, the time to the next poll and what set it, the time left."""
    assert live.frame(job, after(4)).plain == f"⠋ {text}"
    assert live.frame(job, after(4), 1).plain == f"⠙ {text}"


def test_the_countdown_rounds_up() -> None:
    """It says 1s until the poll is due, never 0s."""
    assert "next poll in 1s" in live.frame(RUNNING, after(5.999)).plain


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (DONE, "✓ orders-2026-q2  succeeded  poll 3/60 in 6.3s"),
        (replace(DONE, finished_at=None), "✓ orders-2026-q2  succeeded  poll 3/60"),
        (
            replace(DONE, outcome=Outcome.FAILED, reason="disk\x07full"),
            r"✗ orders-2026-q2  failed  poll 3/60 in 6.3s  disk\x07full",
        ),
    ],
)
def test_the_last_frame_tells_the_outcome(job: Job, text: str) -> None:
    """It stays on the screen."""
    assert live.frame(job, after(10)).plain == text


@pytest.mark.parametrize("width", [0, 1, 5, 20, 400])
def test_the_live_line_fits_any_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also none at all, as some terminals report: it is one line, whatever the width."""
    monkeypatch.setenv("COLUMNS", str(width))
    stream = StringIO()
    with live.LiveLine(stream) as line:
        line.draw(RUNNING, after(4))
        line.draw(DONE, after(10))
    assert stream.getvalue().count("\n") <= 1


def test_colours_are_left_out_where_they_are_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR leaves the text and drops the colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=StringIO(), force_terminal=True, width=200)
    console.print(live.frame(DONE, after(10)))
    shown: Any = console.file
    assert "✓" in shown.getvalue()
    assert "\x1b[32m" not in shown.getvalue()
