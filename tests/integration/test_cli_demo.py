"""The demo's own judgement: what it says when something does not hold or does not work."""

from __future__ import annotations

import asyncio
import io
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tarry.cli.demo import demo_command, play, report, service
from tarry.cli.demo.claims import claims
from tarry.cli.demo.story import Life, Seen, Story
from tarry.cli.world import World
from tarry.core.results import Job, Tick
from tarry.ports import Event, StoredEvent
from tarry.words import SECOND, Outcome, Phase, moment

START = 1_767_225_600 * SECOND


def at(seconds: float) -> int:
    """This long after the demo's start."""
    return START + round(seconds * SECOND)


def seen(seconds: float, method: str = "GET", job: str = "job-1") -> Seen:
    """A request at the service."""
    return Seen(at(seconds), method, "/jobs" if method == "POST" else f"/jobs/{job}", 200, job)


JOB = Job(
    id=1,
    key="orders-2026-q2",
    namespace="default",
    phase=Phase.DONE,
    paused=False,
    outcome=Outcome.SUCCEEDED,
    reason=None,
    status="SUCCEEDED",
    progress=None,
    polls=4,
    reserved=0,
    max_polls=20,
    failures=0,
    error=None,
    created_at=moment(at(0.4)),
    next_poll_at=None,
    deadline=None,
    finished_at=moment(at(3.5)),
    owner=None,
    output={"rows": 3},
    last=None,
    timeline=tuple(
        Tick(moment(at(seconds)), verdict, source)
        for seconds, verdict, source in ((0.5, "pending", "strategy"), (2.5, "pending", "strategy"), (3.5, "succeeded", None))
    ),
)  # fmt: skip
STORY = Story(
    folder=Path("/tmp/demo"),  # noqa: S108  # a name only; nothing is written there
    database=Path("/tmp/demo/tarry.db"),  # noqa: S108  # likewise
    first=Life(11, at(0), at(1.6), -signal.SIGKILL, ""),
    second=Life(12, at(1.7), at(3.6), 0, "{'rows': 3} after 4 polls"),
    seen=(seen(0.4, "POST"), seen(0.5), seen(1.5), seen(2.5), seen(3.5)),
    job=JOB,
    events=[
        StoredEvent.of(JOB.key, 0, number, Event("status", at(seconds), {"from": None, "to": status}))
        for number, seconds, status in ((1, 0.51, "QUEUED"), (2, 2.51, "RUNNING"), (3, 3.51, "SUCCEEDED"))
    ],
)


def test_the_story_is_told_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    """Each request by the process that made it, with its answer and its distance; then the claims; exit 0."""
    assert report.tell(STORY) == 0
    assert capsys.readouterr().out.splitlines() == [
        "",
        "    +0.00s  process 1 starts (pid 11)",
        "    +0.40s  process 1 submits: POST /jobs -> job-1",
        "    +0.50s  process 1 polls: QUEUED",
        "    +1.50s  process 1 polls: answer lost in the kill, 1s after the last one",
        "    +1.60s  process 1 is killed: SIGKILL, no goodbye",
        "    +1.70s  process 2 starts (pid 12): same program, same key",
        "    +2.50s  process 2 polls: RUNNING, 1s after the last one",
        "    +3.50s  process 2 polls: SUCCEEDED, 1s after the last one",
        "    +3.60s  process 2 returns: {'rows': 3} after 4 polls",
        "",
        "  ok  process 1 was killed with SIGKILL half-way",
        "  ok  process 2 went on with the same job and returned its result",
        "  ok  the service created 1 job for 1 submit",
        "  ok  it saw 4 polls; the database counts 4",
        "  ok  no two polls came closer than the floor of 1s, the kill included",
        "",
        "The database is /tmp/demo/tarry.db; look at the job with",
        "  tarry show orders-2026-q2 --db /tmp/demo/tarry.db",
        "and at the program that ran twice with  tarry demo --code",
    ]


@pytest.mark.parametrize(
    ("story", "broken"),
    [
        (replace(STORY, first=replace(STORY.first, exit_code=0)), 0),
        (replace(STORY, second=replace(STORY.second, exit_code=1)), 1),
        (replace(STORY, second=replace(STORY.second, printed="")), 1),
        (replace(STORY, job=replace(JOB, outcome=Outcome.FAILED)), 1),
        (replace(STORY, seen=(*STORY.seen, seen(3.55, "POST", "job-2"))), 2),
        (replace(STORY, seen=(*STORY.seen, seen(3.55, "POST"))), 2),
        (replace(STORY, job=replace(JOB, polls=3)), 3),
        (replace(STORY, seen=STORY.seen[:3]), 3),
        (replace(STORY, seen=(*STORY.seen[:-1], seen(3.3))), 4),
    ],
)
def test_a_claim_that_does_not_hold_is_found(story: Story, broken: int, capsys: pytest.CaptureFixture[str]) -> None:
    """That one and no other; exit 1, and one clear line."""
    assert [number for number, claim in enumerate(claims(story)) if not claim.holds] == [broken]
    assert report.tell(story) == 1
    told = capsys.readouterr()
    assert "  NO  " in told.out
    assert told.err.startswith("tarry: 1 claim did not hold: ")


def test_a_permit_that_the_kill_wasted_is_explained() -> None:
    """The database counts one more than the service saw, and says why."""
    spare = replace(STORY, job=replace(JOB, polls=5))
    assert "counts as spent" in claims(spare)[3].text
    assert claims(spare)[3].holds


def test_a_status_that_never_came_is_said() -> None:
    """A story without status events is still told."""
    assert any("polls: no status" in text for text, _ in report.timeline(replace(STORY, events=[])))


def test_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kill stands out; the text is the same."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert report.tell(STORY) == 0
    assert "\x1b[1;31m    +1.60s  process 1 is killed" in sys.stdout.getvalue()  # type: ignore[attr-defined]  # it is the stream set above


def announcing(url: str) -> tuple[str, ...]:
    """A process that says that it serves there, and does not."""
    return ("-c", f"""print('{{"url": "{url}"}}')""")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-c", "import sys; sys.exit('no port')"), "the job service did not start: no port"),
        (("-c", ""), "the job service did not start: it said nothing"),
        (announcing("nonsense"), "process 1 ended early: tarry.errors.SpecError"),
    ],
)
def test_a_demo_that_cannot_be_played_says_why(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """Exit 1 and one line, with the folder where everything is."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(service, "arguments", lambda log: arguments)
    assert demo_command(World(), only_code=False) == 1
    told = capsys.readouterr().err
    assert said in told
    assert str(tmp_path) in told
    assert len(told.splitlines()) == 1


def test_a_demo_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, and its children are gone."""
    monkeypatch.setattr(play, "PATIENCE", 0)
    with pytest.raises(play.DemoFailed, match="longer than 0s"):
        asyncio.run(play.play(World(), tmp_path, print))


def test_a_second_process_that_fails_is_told(tmp_path: Path) -> None:
    """With its exit code and its last words."""
    failing = ("-c", "import sys; sys.exit('first\\nlast words')")
    with pytest.raises(play.DemoFailed, match="exit code 1: last words"):
        asyncio.run(play._finished(World(), failing))
    quiet = asyncio.run(play._finished(World(), ("-c", "")))
    assert (quiet.exit_code, quiet.printed) == (0, "")


def test_a_log_line_half_written_is_not_there_yet(tmp_path: Path) -> None:
    """Nor is a log that is not there; requests that are neither submit nor poll do not count."""
    log = tmp_path / "log"
    assert service.read_log(log) == []
    entry = '{"at": 5, "method": "GET", "path": "/jobs/j", "kind": "%s", "job": "j", "status": 200}'
    log.write_text(f"{entry % 'poll'}\n{entry % 'other'}\n{entry[:20]}", encoding="utf-8")
    assert service.read_log(log) == [Seen(5, "GET", "/jobs/j", 200, "j")]
