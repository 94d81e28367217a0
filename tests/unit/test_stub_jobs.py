"""The stub's jobs, behaviours and HTTP, without a socket."""

from __future__ import annotations

import gzip
import itertools
import json
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarry.errors import SpecError
from tarry.testing import Behaviour, FakeClock
from tarry.testing.stub.api import JobApi
from tarry.testing.stub.wire import MAX_BODY, MAX_HEAD, Malformed, Manner, Reply, Request, parse, render
from tarry.words import SECOND, instant


class Client:
    """Talks to a `JobApi` without a wire."""

    def __init__(self, **options: Any) -> None:
        self.clock = FakeClock()
        numbers = itertools.count(1)
        self.api = JobApi(self.clock, new_id=lambda: f"job-{next(numbers)}", **options)

    def send(self, method: str, target: str, body: object = None, **headers: str) -> Reply:
        """One request; `body` goes as JSON, bytes as they are."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.api.respond(Request(method, target, named, content))

    def submit(self, body: object = None) -> str:
        """A new job's id."""
        return str(document(self.send("POST", "/jobs", body))["jobId"])

    def poll(self, job: str) -> dict[str, Any]:
        """What a poll shows."""
        return document(self.send("GET", f"/jobs/{job}"))


def document(reply: Reply) -> dict[str, Any]:
    """The JSON of a reply."""
    loaded = json.loads(reply.body)
    assert isinstance(loaded, dict)
    return loaded


def test_a_submit_is_accepted() -> None:
    """202, an id, and where to look."""
    reply = Client().send("POST", "/jobs", {"dataset": "orders"})
    assert reply.status == 202
    assert document(reply) == {"jobId": "job-1", "state": "QUEUED"}
    assert reply.headers["Location"] == "/jobs/job-1"


@pytest.mark.parametrize("body", [b"", b"not JSON", b"[1]", b"[" * 100_000, b"\xff\xfe"])
def test_a_submit_takes_any_body(body: bytes) -> None:
    """What is not a JSON object is nobody's business."""
    assert Client().send("POST", "/jobs", body).status == 202


def test_a_job_moves_on_with_each_poll() -> None:
    """QUEUED, RUNNING twice, SUCCEEDED, and then it stays."""
    client = Client()
    job = client.submit()
    seen = [client.poll(job) for _ in range(6)]
    assert [(each["state"], each["progress"]) for each in seen] == [
        ("QUEUED", 33),
        ("RUNNING", 66),
        ("RUNNING", 99),
        ("SUCCEEDED", 100),
        ("SUCCEEDED", 100),
        ("SUCCEEDED", 100),
    ]
    assert seen[3]["result"] == {"rows": 4211, "artifact": f"s3://exports/{job}.csv"}
    assert "result" not in seen[2]


def test_a_job_may_move_on_by_the_clock() -> None:
    """A job of 8 seconds is done after 8 seconds, however often it was polled."""
    client = Client()
    job = client.submit({"seconds": 8})
    client.clock.advance(8 * SECOND - 1)
    assert [client.poll(job)["progress"] for _ in range(5)] == [99] * 5
    client.clock.advance(1)
    assert client.poll(job)["state"] == "SUCCEEDED"


def test_a_job_of_no_time_is_done_at_once() -> None:
    """Zero seconds, also as the service's default."""
    client = Client(seconds=0)
    assert client.poll(client.submit())["state"] == "SUCCEEDED"
    assert client.poll(client.submit({"seconds": 1}))["state"] == "QUEUED"


def test_the_result_is_there_once_the_job_succeeded() -> None:
    """By itself, and asking for it is no poll."""
    client = Client()
    job = client.submit()
    assert client.send("GET", f"/jobs/{job}/result").status == 404
    last = [client.poll(job) for _ in range(4)][-1]
    assert document(client.send("GET", f"/jobs/{job}/result")) == last["result"]
    assert client.send("GET", "/jobs/nobody/result").status == 404
    assert client.api.polls == {job: 4}


def test_a_failed_job_stays_failed() -> None:
    """Also after it had succeeded."""
    client = Client()
    job = client.submit()
    for _ in range(4):
        client.poll(job)
    assert document(client.send("POST", f"/jobs/{job}/fail")) == {"jobId": job, "willFail": True}
    for _ in range(2):
        assert client.poll(job) == {
            "jobId": job,
            "state": "FAILED",
            "progress": 100,
            "error": "upstream rejected the job",
        }


def test_a_cancelled_job_says_so_twice() -> None:
    """202, CANCELLING once, then CANCELLED; asked again while it stops, 202 again."""
    client = Client()
    job = client.submit()
    client.poll(job)
    for _ in range(2):
        reply = client.send("POST", f"/jobs/{job}/cancel")
        assert (reply.status, document(reply)) == (202, {"jobId": job, "state": "CANCELLING"})
    assert [client.poll(job)["state"] for _ in range(3)] == ["CANCELLING", "CANCELLED", "CANCELLED"]


def test_a_job_that_is_over_cannot_be_cancelled() -> None:
    """409 once it succeeded, failed or was cancelled."""
    client = Client()
    done, failed, cancelled = client.submit({"seconds": 0}), client.submit(), client.submit()
    client.send("POST", f"/jobs/{failed}/fail")
    client.send("POST", f"/jobs/{cancelled}/cancel")
    client.poll(cancelled)
    client.poll(cancelled)
    for job in (done, failed, cancelled):
        assert client.send("POST", f"/jobs/{job}/cancel").status == 409


def test_one_key_is_one_job() -> None:
    """The same key and body give the same answer again, and say so; without a key each submit is a job."""
    client = Client()
    first = client.send("POST", "/jobs", {"n": 1}, idempotency_key="k")
    again = client.send("POST", "/jobs", {"n": 1}, idempotency_key="k")
    other = client.send("POST", "/jobs", {"n": 1}, idempotency_key="l")
    assert first.body == again.body != other.body
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert client.submit() != client.submit()


def test_one_key_with_another_body_is_refused() -> None:
    """422, and no job comes of it."""
    client = Client()
    client.send("POST", "/jobs", {"n": 1}, idempotency_key="k")
    assert client.send("POST", "/jobs", {"n": 2}, idempotency_key="k").status == 422
    assert list(client.api.book.jobs) == ["job-1"]


def test_ids_are_never_used_twice() -> None:
    """Even where the source of ids repeats itself."""
    ids = iter(["a", "a", "a", "b"])
    api = JobApi(FakeClock(), new_id=lambda: next(ids))
    for _ in range(2):
        api.respond(Request("POST", "/jobs"))
    assert list(api.book.jobs) == ["a", "b"]


def test_polls_are_counted() -> None:
    """Every poll of a job counts, finished or under another path; of unknown jobs none does."""
    client = Client()
    job, other = client.submit(), client.submit()
    for target in (f"/jobs/{job}", f"/jobs/{job}/anything/at?all=1", f"/jobs/{job}/fail"):
        assert client.send("GET", target).status == 200
    assert client.send("HEAD", f"/jobs/{job}").status == 200
    assert client.send("GET", "/jobs/unknown").status == 404
    assert document(client.send("GET", "/polls")) == {"polls": {job: 4, other: 0}}


def test_the_listing_counts_as_no_poll() -> None:
    """All jobs as they stand, unmoved."""
    client = Client()
    job = client.submit()
    client.poll(job)
    for _ in range(3):
        listed = document(client.send("GET", "/jobs"))["jobs"]
        assert listed == [{"jobId": job, "state": "QUEUED", "progress": 33, "polls": 1}]


def test_requests_are_remembered() -> None:
    """When, what, which job, which key, and what it was answered."""
    client = Client()
    client.send("POST", "/jobs", {}, idempotency_key="k")
    client.clock.advance(SECOND)
    client.send("GET", "/jobs/job-1?mode=drop")
    submit, poll = document(client.send("GET", "/requests"))["requests"]
    start = client.clock.now() - SECOND
    assert submit == {
        "at": start,
        "method": "POST",
        "path": "/jobs",
        "kind": "submit",
        "job": "job-1",
        "call": 1,
        "key": "k",
        "status": 202,
        "mode": None,
    }
    assert (poll["at"], poll["kind"], poll["call"], poll["key"]) == (start + SECOND, "poll", 1, None)
    assert (poll["status"], poll["mode"]) == (None, "drop")


def test_only_so_many_requests_are_remembered() -> None:
    """The oldest are forgotten first."""
    client = Client(keep=3)
    for number in range(5):
        client.send("GET", f"/jobs/{number}")
    assert [each["path"] for each in client.api.requests] == ["/jobs/2", "/jobs/3", "/jobs/4"]


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/nothing", 404),
        ("POST", "/fail", 404),
        ("POST", "/cancel", 404),
        ("GET", "/jobs/", 404),
        ("POST", "/jobs//fail", 404),
        ("POST", "/jobs/unknown/fail", 404),
        ("POST", "/jobs/unknown/cancel", 404),
        ("PUT", "/jobs", 405),
        ("POST", "/polls", 405),
        ("DELETE", "/jobs/unknown", 405),
        ("POST", "/jobs/unknown", 405),
        ("PUT", "/jobs/unknown/fail", 405),
        ("BREW", "/jobs", 501),
        ("HEAD", "/polls", 200),
    ],
)
def test_other_requests_are_told_what_is_wrong(method: str, target: str, status: int) -> None:
    """Unknown paths, methods and jobs get the code that HTTP has for them."""
    assert Client().send(method, target).status == status


def test_a_405_names_the_methods_that_work() -> None:
    """As HTTP demands."""
    client = Client()
    assert client.send("PUT", "/jobs").headers["Allow"] == "GET, HEAD, POST"
    assert client.send("PUT", "/polls").headers["Allow"] == "GET, HEAD"
    assert client.send("PUT", "/jobs/a/fail").headers["Allow"] == "GET, HEAD, POST"
    assert client.send("PUT", "/jobs/a").headers["Allow"] == "GET, HEAD"


def test_an_id_may_be_percent_encoded() -> None:
    """A path names the job in any spelling."""
    client = Client()
    client.submit()
    assert client.send("GET", "/jobs/job%2D1").status == 200


# Behaviours


def scripted(*script: dict[str, Any]) -> tuple[Client, str]:
    """A job with this script."""
    client = Client()
    return client, client.submit({"script": list(script)})


def test_behaviours_choose_their_calls() -> None:
    """By number, up to a number, or all; the first that fits counts."""
    client, job = scripted(
        {"on": "submit", "status": 500, "calls": [9]},
        {"calls": [2], "status": 500},
        {"until": 3, "status": 503},
    )
    statuses = [client.send("GET", f"/jobs/{job}").status for _ in range(5)]
    assert statuses == [503, 500, 503, 200, 200]


def test_a_poll_that_shows_no_job_leaves_it_where_it_was() -> None:
    """Progress goes on after the fault as if it had not been."""
    client, job = scripted({"calls": [1], "status": 503}, {"calls": [3], "mode": "drop"})
    states = [client.poll(job).get("progress") for _ in range(6)]
    assert states == [None, 33, 33, 66, 99, 100]


def test_a_job_may_be_visible_late() -> None:
    """The first polls look as if there were no such job; they count all the same."""
    client, job = scripted({"status": 404, "until": 2})
    assert [client.poll(job).get("error") for _ in range(3)] == ["no such job", "no such job", None]
    assert client.api.polls == {job: 3}


def test_states_may_flap_or_be_unheard_of() -> None:
    """The scripted states come round and round."""
    client, job = scripted({"states": ["RUNNING", "SUCCEEDED", "FROBNICATED"]})
    assert [client.poll(job)["state"] for _ in range(4)] == ["RUNNING", "SUCCEEDED", "FROBNICATED", "RUNNING"]


@pytest.mark.parametrize(
    ("hint", "wait", "name", "value"),
    [
        ("seconds", 7, "Retry-After", "7"),
        ("seconds", 0.5, "Retry-After", "0.5"),
        ("seconds", 1_000_000_000, "Retry-After", "1000000000"),
        ("ms", 7, "retry-after-ms", "7000"),
        ("x-ms", 0.25, "x-ms-retry-after-ms", "250"),
        ("openai-ms", 7, "openai-poll-after-ms", "7000"),
        ("interval", 60, "x-poll-interval", "60"),
        ("garbage", 7, "Retry-After", "when the moon is full"),
    ],
)
@pytest.mark.parametrize("status", [200, 429, 503])
def test_hints_come_in_every_form(hint: str, wait: float, name: str, value: str, status: int) -> None:
    """Whatever the status, the header says what was asked for."""
    client, job = scripted({"status": status, "hint": hint, "wait": wait})
    reply = client.send("GET", f"/jobs/{job}")
    assert (reply.status, reply.headers[name]) == (status, value)


def test_a_hint_may_be_a_date() -> None:
    """The HTTP date is that much after the clock's time."""
    client, job = scripted({"status": 503, "hint": "date", "wait": 90})
    date = parsedate_to_datetime(client.send("GET", f"/jobs/{job}").headers["Retry-After"])
    assert instant(date) == client.clock.now() + 90 * SECOND


def test_headers_are_sent_as_they_are() -> None:
    """A scripted header replaces one of ours."""
    client = Client(script=[Behaviour(on="submit", headers={"Location": "/jobs/other", "Retry-After": "-5"})])
    reply = client.send("POST", "/jobs")
    assert (reply.headers["Location"], reply.headers["Retry-After"]) == ("/jobs/other", "-5")


def test_a_redirect_leads_where_it_should() -> None:
    """302 unless told otherwise."""
    client, job = scripted(
        {"mode": "redirect", "url": "https://api.example.com/x", "until": 1},
        {"mode": "redirect", "status": 307, "url": "/jobs/b"},
    )
    first, second = client.send("GET", f"/jobs/{job}"), client.send("GET", f"/jobs/{job}")
    assert (first.status, first.headers["Location"]) == (302, "https://api.example.com/x")
    assert (second.status, second.headers["Location"]) == (307, "/jobs/b")


def test_text_is_not_json() -> None:
    """An HTML page, with any status."""
    client, job = scripted({"mode": "text", "until": 1}, {"mode": "text", "status": 502})
    first, second = client.send("GET", f"/jobs/{job}"), client.send("GET", f"/jobs/{job}")
    assert (first.status, second.status) == (200, 502)
    assert first.content_type.startswith("text/html")
    with pytest.raises(json.JSONDecodeError):
        json.loads(first.body)


def test_a_huge_body_is_valid_json() -> None:
    """So many MiB, plain or gzipped small; the job can still be read in it."""
    client, job = scripted({"mode": "huge", "mib": 2, "until": 1}, {"mode": "bomb", "mib": 3})
    huge, bomb = client.send("GET", f"/jobs/{job}"), client.send("GET", f"/jobs/{job}")
    assert len(huge.body) > 2 * 1024 * 1024
    assert document(huge)["state"] == "QUEUED"
    assert bomb.headers["Content-Encoding"] == "gzip"
    assert len(bomb.body) < 100_000
    unpacked = gzip.decompress(bomb.body)
    assert len(unpacked) > 3 * 1024 * 1024
    assert json.loads(unpacked)["state"] == "RUNNING"


@pytest.mark.parametrize("manner", ["drip", "drop", "cut", "garbage", "hang"])
def test_a_mode_may_be_a_manner_of_sending(manner: str) -> None:
    """The reply carries how it is to be sent, and when."""
    client, job = scripted({"mode": manner, "delay": 2, "pause": 0.5})
    reply = client.send("GET", f"/jobs/{job}")
    assert (reply.manner, reply.delay, reply.pause) == (Manner(manner), 2, 0.5)


def test_a_lost_submit_made_the_job() -> None:
    """The answer is dropped once; the same key then finds the job that is there."""
    client = Client(script=[Behaviour(on="submit", mode="drop", calls=[1])])
    lost = client.send("POST", "/jobs", {}, idempotency_key="k")
    assert lost.manner is Manner.DROP
    assert list(client.api.book.jobs) == ["job-1"]
    again = client.send("POST", "/jobs", {}, idempotency_key="k")
    assert (again.manner, document(again)["jobId"]) == (Manner.WHOLE, "job-1")


@pytest.mark.parametrize(
    ("odd", "made"),
    [
        (Behaviour(on="submit", status=500), 1),
        (Behaviour(on="submit", status=500, accepted=False), 0),
        (Behaviour(on="submit", mode="drop", accepted=False), 0),
        (Behaviour(on="submit", status=429), 0),
        (Behaviour(on="submit", status=429, accepted=True), 1),
    ],
)
def test_an_odd_submit_counts_or_not(odd: Behaviour, made: int) -> None:
    """A 5xx may lie about the job it made; a 429 made none, unless told otherwise."""
    client = Client(script=[odd])
    client.send("POST", "/jobs", {})
    assert len(client.api.book.jobs) == made


def test_submits_are_counted_by_key_or_body() -> None:
    """Each key has its first try; without a key each body has."""
    client = Client(script=[Behaviour(on="submit", status=503, calls=[1], accepted=False)])
    statuses = [
        client.send("POST", "/jobs", {"n": 1}, idempotency_key="k").status,
        client.send("POST", "/jobs", {"n": 1}, idempotency_key="k").status,
        client.send("POST", "/jobs", {"n": 1}).status,
        client.send("POST", "/jobs", {"n": 1}).status,
        client.send("POST", "/jobs", {"n": 2}).status,
    ]
    assert statuses == [503, 202, 503, 202, 503]


def test_an_answer_that_is_known_is_not_sent_again() -> None:
    """Looking moves the job on no more; whoever names another mark, or none, gets the answer with its own."""
    client, job = scripted({"mode": "etag", "until": 3})
    first = client.send("GET", f"/jobs/{job}")
    etag = first.headers["ETag"]
    assert (first.status, document(first)["state"]) == (200, "QUEUED")
    known = client.send("GET", f"/jobs/{job}", if_none_match=etag)
    assert (known.status, known.body, known.headers["ETag"]) == (304, b"", etag)
    other = client.send("GET", f"/jobs/{job}", if_none_match='"other"')
    assert (other.status, other.body, other.headers["ETag"]) == (200, first.body, etag)
    assert "ETag" not in client.send("GET", f"/jobs/{job}", if_none_match=etag).headers


def test_a_query_makes_one_url_odd() -> None:
    """The behaviour in a URL is for that URL, before any script; other queries mean nothing."""
    client, job = scripted({"status": 500})
    assert client.send("GET", f"/jobs/{job}?mode=answer&status=503&hint=seconds&wait=3").headers["Retry-After"] == "3"
    assert client.send("GET", f"/jobs/{job}?mode=answer&calls=1,9").status == 500
    assert client.send("GET", f"/jobs/{job}?status=200&xmode=drop").status == 500
    flapping = client.send("GET", f"/jobs/{job}?mode=answer&states=A,B")
    assert document(flapping)["state"] == "B"
    assert client.send("POST", "/jobs?mode=drop", {}).manner is Manner.DROP


def test_a_script_can_be_set_later() -> None:
    """Over HTTP the list in the body takes the place of the job's script."""
    client, job = scripted({"status": 500})
    assert document(client.send("POST", f"/jobs/{job}/script", [{"status": 418}])) == {"jobId": job, "script": 1}
    assert client.send("GET", f"/jobs/{job}").status == 418
    assert client.send("POST", f"/jobs/{job}/script", []).status == 200
    assert client.send("GET", f"/jobs/{job}").status == 200


@pytest.mark.parametrize(
    ("target", "body", "names"),
    [
        ("/jobs", {"script": [{"mode": "explode"}]}, "mode"),
        ("/jobs", {"script": [{"mood": "drop"}]}, "did you mean mode"),
        ("/jobs", {"script": {"mode": "drop"}}, "script"),
        ("/jobs", {"script": [{"status": 99}]}, "status"),
        ("/jobs", {"script": [{"delay": -1}]}, "delay"),
        ("/jobs", {"script": [{"calls": [0]}]}, "calls"),
        ("/jobs", {"script": [{"headers": {"a": "b\r\nc: d"}}]}, "headers"),
        ("/jobs", {"script": [{"mode": "redirect", "url": "/a b"}]}, "url"),
        ("/jobs", {"seconds": "soon"}, "seconds"),
        ("/jobs?mode=explode", {}, "mode"),
        ("/jobs/job-1/script", {"mode": "drop"}, "list"),
        ("/jobs/job-1/script", b"nonsense", "list"),
    ],
)
def test_a_broken_behaviour_is_refused(target: str, body: object, names: str) -> None:
    """400 with the name of what is wrong, and nothing changes."""
    client = Client()
    client.submit()
    reply = client.send("POST", target, body)
    assert reply.status == 400
    assert names in document(reply)["error"]
    assert list(client.api.book.jobs) == ["job-1"]


def test_behaviours_are_checked_in_python_too() -> None:
    """The same words, as a `SpecError`."""
    with pytest.raises(SpecError, match=r"Behaviour\.status"):
        Behaviour(status=1000)


# The wire


def request(text: str, body: bytes = b"") -> bytearray:
    """Bytes of a request, from lines."""
    return bytearray(text.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)


def test_parse_takes_one_request_and_leaves_the_rest() -> None:
    """Method, target, headers, body; what follows stays in the buffer."""
    buffer = request("POST /jobs?a=1 HTTP/1.1\nHost: x\nContent-Length:  2 \nX-Empty:", b"{}GET ")
    parsed = parse(buffer)
    assert parsed == Request("POST", "/jobs?a=1", {"host": "x", "content-length": "2", "x-empty": ""}, b"{}")
    assert buffer == b"GET "
    assert (parsed.parts, parsed.query) == (("jobs",), "a=1")


def test_parse_waits_for_the_whole_request() -> None:
    """Cut anywhere, it is incomplete and untouched until its last byte."""
    whole = request("POST /jobs HTTP/1.1\nContent-Length: 2", b"{}")
    for length in range(len(whole)):
        part = whole[:length]
        assert parse(part) is None
        assert part == whole[:length]
    assert parse(whole) is not None


@pytest.mark.parametrize(
    ("head", "keep_alive"),
    [
        ("GET / HTTP/1.1", True),
        ("GET / HTTP/1.1\nConnection: close", False),
        ("GET / HTTP/1.0", False),
        ("GET / HTTP/1.0\nConnection: Keep-Alive", True),
    ],
)
def test_parse_knows_whether_the_connection_stays(head: str, *, keep_alive: bool) -> None:
    """By version and by wish."""
    parsed = parse(request(head))
    assert parsed is not None
    assert parsed.keep_alive is keep_alive


def test_parse_skips_blank_lines_and_takes_absolute_targets() -> None:
    """As a lenient server should."""
    parsed = parse(bytearray(b"\r\n\r\n") + request("GET http://stub.example.com/jobs/1?x=2 HTTP/1.1"))
    assert parsed is not None
    assert parsed.target == "/jobs/1?x=2"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("nonsense", 400),
        ("GET /a b HTTP/1.1", 400),
        ("GET / FTP/1.1", 400),
        ("GET / HTTP/2.0", 505),
        ("GET / HTTP/1.1\nno colon", 400),
        ("GET / HTTP/1.1\n: no name", 400),
        ("GET / HTTP/1.1\nHost : x", 400),
        ("GET / HTTP/1.1\n folded: x", 400),
        ("POST / HTTP/1.1\nContent-Length: two", 400),
        ("POST / HTTP/1.1\nContent-Length: -2", 400),
        ("POST / HTTP/1.1\nContent-Length: ²", 400),
        ("POST / HTTP/1.1\nContent-Length: 2\nContent-Length: 3", 400),
        (f"POST / HTTP/1.1\nContent-Length: {MAX_BODY + 1}", 413),
        ("POST / HTTP/1.1\nContent-Length: " + "9" * 5000, 413),
        ("POST / HTTP/1.1\nTransfer-Encoding: chunked", 411),
        ("POST / HTTP/1.1\nTransfer-Encoding: gzip", 501),
        ("GET / HTTP/1.1\nX: " + "x" * MAX_HEAD, 431),
    ],
)
def test_parse_says_what_is_wrong(head: str, status: int) -> None:
    """Each kind of broken request has its code."""
    with pytest.raises(Malformed) as caught:
        parse(request(head))
    assert caught.value.status == status


def test_parse_gives_up_on_an_endless_head() -> None:
    """Headers that never end are cut off, and so is what is not HTTP from the first byte on."""
    with pytest.raises(Malformed) as caught:
        parse(bytearray(b"GET / HTTP/1.1\r\n" + b"x" * MAX_HEAD))
    assert caught.value.status is HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    with pytest.raises(Malformed):
        parse(bytearray(b"\x16\x03\x01"))


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: b"POST /jobs HTTP/1.1\r\n" + tail))
def test_nothing_but_malformed_is_raised(data: bytes) -> None:
    """Any bytes are a request, an incomplete one, or refused; a request of any kind has a reply."""
    buffer, client = bytearray(data), Client()
    try:
        parsed = parse(buffer)
    except Malformed:
        return
    if parsed is not None:
        assert render(client.api.respond(parsed), date="now", keep_alive=True).startswith(b"HTTP/1.1 ")


@given(st.text(max_size=50), st.binary(max_size=50), st.sampled_from(["GET", "POST", "PUT"]))
def test_every_request_has_a_reply(target: str, content: bytes, method: str) -> None:
    """Whatever the path, query and body, the answer is one of ours."""
    client = Client()
    client.submit()
    for path in ("/" + target, "/jobs/job-1/" + target, "/jobs?mode=answer&" + target, "/jobs/job-1?mode=" + target):
        assert client.api.respond(Request(method, path, {}, content)).status < 600


def test_render_writes_the_whole_reply() -> None:
    """Status, headers, length and body."""
    raw = render(Reply(202, b"{}", {"Location": "/x"}), date="today", keep_alive=True)
    head, _, body = raw.partition(b"\r\n\r\n")
    assert body == b"{}"
    assert head.split(b"\r\n") == [
        b"HTTP/1.1 202 Accepted",
        b"Date: today",
        b"Location: /x",
        b"Content-Type: application/json",
        b"Content-Length: 2",
    ]


def test_render_leaves_out_what_must_not_be_there() -> None:
    """No body for HEAD, but its length; neither for 204. A last reply says that it is."""
    head = render(Reply(200, b"{}"), date="", keep_alive=False, head_only=True)
    assert b"Content-Length: 2\r\n" in head
    assert b"Connection: close\r\n" in head
    assert head.endswith(b"\r\n\r\n")
    assert b"Content-Length" not in render(Reply(204, b"{}"), date="", keep_alive=True)


def test_render_knows_codes_that_http_does_not() -> None:
    """A made-up status is sent all the same."""
    assert render(Reply(529), date="", keep_alive=True).startswith(b"HTTP/1.1 529 Unknown\r\n")
