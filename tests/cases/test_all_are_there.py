"""The cases, each with what went wrong somewhere, and the proof that each has its test."""

from __future__ import annotations

import re
from pathlib import Path

CASES = {
    "PC-001": "a final status that nobody listed is waited for, for ever",
    "PC-002": "a status that nobody knows is taken for success",
    "PC-005": "the first good answer came from one replica, the next says otherwise",
    "PC-007": "the HTTP code is taken for the status of the job",
    "PC-009": "a job that failed before the first look is shown as successful",
    "PC-010": "finished comes before the result is there",
    "PC-011": "a capped exponential wait overflows",
    "PC-013": "jitter passes the maximum, or vanishes at it",
    "PC-014": "the strategy that was given is not the one used",
    "PC-016": "a wait asked for as a date crashes, or is dropped",
    "PC-017": "a malformed wait becomes no wait, or decades",
    "PC-018": "a huge wait is obeyed",
    "PC-020": "the wait asked for by the submit is ignored",
    "PC-022": "a gateway's error page is taken for the job's failure",
    "PC-023": "the first failed poll ends all, or none ever does",
    "PC-027": "the service's own words are lost on the way",
    "PC-028": "an end with part of the work done throws that part away",
    "PC-029": "another request after the end hides why it ended",
    "PC-033": "the last sleep ends after the deadline, or long before it",
    "PC-035": "each process begins the time limit anew",
    "PC-036": "one call that hangs outlasts every limit",
    "PC-037": "a hidden counter ends the wait",
    "PC-038": "the end of the count is noticed one sleep late",
    "PC-039": "nothing plain can be handed to another process",
    "PC-040": "a wake-up that fell into downtime never comes, or comes many times",
    "PC-041": "a restart begins attempts, timers and limits anew",
    "PC-042": "a restart submits again",
    "PC-045": "the submit is part of what is repeated",
    "PC-046": "after a limit, a second job is started beside the first",
    "PC-048": "the process dies between the submit and its answer",
    "PC-052": "a shutdown cancels the remote job",
    "PC-053": "a shutdown waits for a sleep",
    "PC-054": "a cancel races with the end of the job",
    "PC-055": "more polls than connections, and cancelled calls that lose some",
    "PC-056": "many jobs in step reach the rate limit together",
    "PC-059": "one job's bug or slowness stops the others",
    "PC-060": "blocking code stops the event loop",
    "PC-061": "the wall clock jumps",
    "PC-063": "bytes that are nearly JSON",
    "PC-065": "an error field with nothing in it counts as an error",
    "PC-067": "the store grows with each poll",
    "PC-068": "credentials follow a status URL wherever it leads",
    "PC-069": "the token lives shorter than the job",
    "PC-072": "redirects mix up status and result",
    "PC-073": "reading a status writes",
    "PC-075": "a read before a write meets a lock",
    "PC-076": "a connection is held through the wait",
    "PC-080": "a wait ends in silence, or every blip is an alarm",
    "PC-081": "a condition that never matches looks like a slow job",
    "PC-082": "a misspelt setting is ignored",
}


def test_each_case_has_a_test() -> None:
    """All fifty, and no test is named after a case that is none."""
    texts = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    numbers = {number for text in texts for number in re.findall(r"^def test_pc_([0-9]{3})_", text, re.MULTILINE)}
    assert len(CASES) == 50
    assert {f"PC-{number}" for number in numbers} == set(CASES)
