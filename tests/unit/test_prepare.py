"""Preparing a call: values in, origins kept, secrets bound to theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tarry.core.answers import StatusUrl, Validators
from tarry.core.request import Request
from tarry.http.prepare import CallRefused, prepare
from tarry.http.secrets import Secrets
from tarry.ports import Prepared
from tarry.words import SECOND, CallKind

HOME = "https://api.example.com/jobs"
SECRETS = Secrets({"TOKEN": "TOPSECRET", "LINE": "TOPSECRET\n"})


def values(location: str | None = None, **body: Any) -> dict[str, Any]:
    """What placeholders may name; with a location, the submit was answered."""
    submit = {"status": 202, "headers": {"location": location}, "body": body, "url": HOME}
    return {"key": "k/1", "input": {"id": "7"}, "submit": submit if location or body else None}


def poll(request: Request, known: dict[str, Any] | None = None, **options: Any) -> Prepared:
    """The request prepared as a poll of at most 30 s."""
    options = {"kind": CallKind.POLL, "secrets": SECRETS, "timeout": 30 * SECOND, **options}
    return prepare(request, values=values() if known is None else known, **options)


def refusal(request: Request, known: dict[str, Any] | None = None, **options: Any) -> str:
    """Why the call is refused; never with a secret in it."""
    with pytest.raises(CallRefused) as caught:
        poll(request, known, **options)
    reason = str(caught.value)
    assert "TOPSECRET" not in reason
    assert "\n" not in reason
    return reason


def test_a_request_is_filled_in() -> None:
    """Method, URL, headers, body, each with its values."""
    prepared = poll(
        Request(
            "POST",
            "https://api.example.com/jobs/{input.id}",
            headers={"X-Key": "{key}", "Authorization": "Bearer {secret.TOKEN}"},
            params={"page": 2, "tag": ["a b", "{key}"], "all": True},
            json={"id": "{input.id}", "n": 1},
            accept="application/problem+json",
        )
    )
    assert prepared.method == "POST"
    assert prepared.url == "https://api.example.com/jobs/7?page=2&tag=a%20b&tag=k%2F1&all=true"
    assert dict(prepared.headers) == {
        "X-Key": "k/1",
        "Authorization": "Bearer TOPSECRET",
        "Accept": "application/problem+json",
        "Content-Type": "application/json",
    }
    assert prepared.content is not None
    assert json.loads(prepared.content) == {"id": "7", "n": 1}
    assert "TOPSECRET" not in repr(prepared)


@pytest.mark.parametrize(
    ("options", "content", "content_type"),
    [
        ({}, None, None),
        ({"json": False}, b"false", "application/json"),
        ({"json": {"\u00e9": "{input.id}"}}, b'{"\\u00e9":"7"}', "application/json"),
        (
            {"data": {"a": "{key} x", "n": [1, 0.5, True]}},
            b"a=k%2F1+x&n=1&n=0.5&n=true",
            "application/x-www-form-urlencoded",
        ),
        ({"content": "{input.id} {x} \u00e9"}, "7 {x} \u00e9".encode(), "text/plain; charset=utf-8"),
        ({"content": "<a/>", "content_type": "application/xml"}, b"<a/>", "application/xml"),
        ({"content_type": "application/xml"}, None, "application/xml"),
    ],
)
def test_bodies(options: dict[str, Any], content: bytes | None, content_type: str | None) -> None:
    """JSON, form fields, text, or none; each says what it is."""
    prepared = poll(Request("POST", HOME, **options))
    assert prepared.content == content
    assert dict(prepared.headers).get("Content-Type") == content_type


def test_a_signed_url_stays_as_it_is() -> None:
    """Params are added after the query, which is not taken apart."""
    location = "https://api.example.com/s?sig=a%2Bb%3D&se=2026-01-01T00%3A00%3A00Z"
    prepared = poll(Request("GET", "{submit.headers.location}", params={"details": "1"}), values(location))
    assert prepared.url == location + "&details=1"


def test_timeouts_are_bounded_by_the_call() -> None:
    """The request's own total only ever shortens the call."""
    assert poll(Request("GET", HOME)).timeout == 30 * SECOND
    assert poll(Request("GET", HOME, total_timeout="5s")).timeout == 5 * SECOND
    long = poll(Request("GET", HOME, total_timeout="5m", connect_timeout=1, read_timeout=2))
    assert (long.timeout, long.connect_timeout, long.read_timeout) == (30 * SECOND, SECOND, 2 * SECOND)


def test_the_idempotency_key_goes_with_submits_only() -> None:
    """Under the name that the spec gives it."""
    request = Request("POST", HOME, idempotency_header="X-Once")
    submitted = poll(request, kind=CallKind.SUBMIT, idempotency_key="abc")
    assert ("X-Once", "abc") in submitted.headers
    assert "X-Once" not in dict(poll(request, idempotency_key="abc").headers)
    assert "X-Once" not in dict(poll(request, kind=CallKind.SUBMIT).headers)


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/jobs/7/status", "https://api.example.com/jobs/7/status"),
        ("7", "https://api.example.com/7"),
        ("https://api.example.com:443/x", "https://api.example.com:443/x"),
        ("https://API.example.com/x", "https://API.example.com/x"),
    ],
)
def test_a_found_url_keeps_its_origin_and_its_secrets(location: str, url: str) -> None:
    """Resolved against the submit's URL, and entitled to the secrets of its origin."""
    request = Request("GET", "{submit.headers.location}", headers={"Authorization": "{secret.TOKEN}"})
    prepared = poll(request, values(location))
    assert prepared.url == url
    assert ("Authorization", "TOPSECRET") in prepared.headers


@pytest.mark.parametrize(
    ("location", "problem"),
    [
        ("https://evil.example.com/x?sig=TOPSECRET", "leads to https://evil.example.com; if that is right"),
        ("//evil.example.com/x", "evil.example.com"),
        ("http://api.example.com/x", "from https to http"),
        ("https://u:TOPSECRET@api.example.com/x", "user or password"),
        ("file:///etc/passwd", "must start with http"),
        ("javascript:alert(1)", "must start with http"),
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254"),
        ("https://api.example.com\\@evil.example.com/", "backslashes"),
        ("https://api.example.com/\r\nX: y", "control characters"),
        ("https://api.example.com:99999/", "host and port"),
    ],
)
def test_a_found_url_that_leaves_is_refused(location: str, problem: str) -> None:
    """Whatever a service answers, it does not choose where we call next."""
    assert problem in refusal(Request("GET", "{submit.headers.location}"), values(location))


@pytest.mark.parametrize("template", ["https://{submit.body.host}/x", "https://api.example.com{submit.body.host}/x"])
def test_a_host_found_in_an_answer_is_a_found_url(template: str) -> None:
    """A placeholder anywhere in the authority lets the answer choose the host, so the same rule holds."""
    assert "allowed_hosts" in refusal(
        Request("GET", template), values(host=".evil.example.com"[template.count("//{") :])
    )


def test_an_allowed_host_gets_no_secrets() -> None:
    """Credential headers and params are left out there, others stay."""
    request = Request(
        "GET",
        "{submit.headers.location}",
        headers={
            "Authorization": "{secret.TOKEN}",
            "X-Also": "a {secret.TOKEN}",
            "X-Job-Token": "{submit.body.t}",
            "X-V": "1",
        },
        params={"a": ["{secret.TOKEN}"], "b": "1"},
    )
    prepared = poll(request, values("https://status.example.com/7", t="1"), allowed_hosts=["status.example.com"])
    assert prepared.url == "https://status.example.com/7?b=1"
    assert dict(prepared.headers) == {"X-V": "1", "Accept": "application/json"}


@pytest.mark.parametrize(
    "options", [{"json": "{secret.TOKEN}"}, {"data": {"a": "{secret.TOKEN}"}}, {"content": "{secret.TOKEN}"}]
)
def test_a_body_with_a_secret_does_not_cross_origins(options: dict[str, Any]) -> None:
    """A body cannot be sent in part, so the call is refused."""
    request = Request("POST", "{submit.headers.location}", **options)
    known = values("https://status.example.com/7")
    assert "would send a secret" in refusal(request, known, allowed_hosts=["status.example.com"])


def test_a_url_of_the_callers_gets_no_secret_of_another_origin() -> None:
    """The request does not write out where its secret may go, so it goes nowhere but to the submit's origin."""
    request = Request("GET", "{input.url}", headers={"Authorization": "{secret.TOKEN}"})
    known = values("x") | {"input": {"url": "https://other.example.com/x"}}
    assert "https://other.example.com" in refusal(request, known)
    assert "would send a secret" in refusal(request, known | {"submit": None})
    same = known | {"input": {"url": "https://api.example.com/x"}}
    assert ("Authorization", "TOPSECRET") in poll(request, same).headers


def test_a_url_of_the_callers_goes_anywhere_without_secrets() -> None:
    """Input is the caller's word, not the service's."""
    known = values("x") | {"input": {"url": "http://other.example.com/x"}}
    assert poll(Request("GET", "{input.url}"), known).url == "http://other.example.com/x"


def test_an_origin_written_out_gets_its_secrets() -> None:
    """Also when it is not the submit's, and when its path holds values of an answer."""
    request = Request("GET", "https://status.example.com/{submit.body.id}?sig={secret.TOKEN}")
    assert poll(request, values(id="../7")).url == "https://status.example.com/..%2F7?sig=TOPSECRET"


def test_the_base_may_be_another_answer() -> None:
    """A URL found by a later request is judged by that request's origin."""
    known = {**values(), "poll": {"headers": {"location": "/next"}}}
    request = Request("GET", "{poll.headers.location}")
    assert poll(request, known, base="https://status.example.com/7").url == "https://status.example.com/next"


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (Request("GET", "https://api.example.com/{input.gone}"), "{input.gone} has no value"),
        (Request("GET", "{submit.headers.location}"), "{submit.headers.location} has no value"),
        (Request("GET", "{input.id}"), "relative"),
        (Request("GET", HOME, headers={"X": "{secret.GONE}"}), "the secret GONE is not there"),
        (Request("GET", HOME, headers={"X": "{secret.LINE}"}), "newline at the end"),
        (Request("GET", HOME, params={"a": "{input.bad}"}), "no valid text"),
        (Request("POST", HOME, data={"a": "{input.bad}"}), "no valid text"),
        (Request("POST", HOME, content="{input.bad}"), "no valid text"),
        (Request("POST", HOME, json=["{input.nan}"]), "NaN"),
        (Request("POST", HOME, json=["{input.gone}"]), "{input.gone} has no value"),
        (Request("GET", "https://api.example.com:{input.id}9999/"), "host and port"),
        (Request("GET", HOME, params={"a": "{input.long}"}), "longer than"),
    ],
)
def test_what_cannot_be_filled_in_is_refused(request_: Request, problem: str) -> None:
    """One line that names what is missing or wrong, never a value."""
    known = values() | {"input": {"id": "7", "bad": "\ud800", "nan": float("nan"), "long": "x" * 9_000}}
    assert problem in refusal(request_, known)


def test_a_submit_of_a_callable_has_no_url() -> None:
    """Its answer can be named, but a URL in it has no origin to keep."""
    known = values() | {
        "submit": {"status": None, "headers": {}, "body": {"url": "https://x.example.com/"}, "url": None}
    }
    assert "an answer leads to https://x.example.com" in refusal(Request("GET", "{submit.body.url}"), known)


# A status URL that an answer moved.


def moved(url: str, found_at: str | None = HOME) -> dict[str, Any]:
    return {"status_url": StatusUrl(url, found_at, HOME)}


def test_a_moved_status_url_stands_in_for_the_requests_own() -> None:
    """The rest of the request stays; of its parameters those go along that the URL does not name itself."""
    request = Request(
        "GET", HOME, headers={"Authorization": "{secret.TOKEN}"}, params={"v": "2", "sig": "no", "key": "{key}"}
    )
    prepared = poll(request, **moved("https://api.example.com/ops/7?sig=a%2Fb"))
    assert prepared.url == "https://api.example.com/ops/7?sig=a%2Fb&v=2&key=k%2F1"
    assert ("Authorization", "TOPSECRET") in prepared.headers


def test_validators_go_to_where_they_came_from() -> None:
    """With a request that asks for it, to the same URL whatever its query, and not in place of the caller's own."""
    marks = Validators(HOME, '"a"', "Thu, 01 Jan 2026 00:00:09 GMT")
    sent = {"If-None-Match": '"a"', "If-Modified-Since": marks.last_modified}
    asking = Request("GET", HOME, params={"v": 2}, conditional=True)
    accept = {"Accept": "application/json"}
    assert dict(poll(asking, validators=marks).headers) == accept | sent
    assert dict(poll(asking, validators=Validators(HOME, None, marks.last_modified)).headers) == accept | {
        "If-Modified-Since": marks.last_modified
    }
    assert dict(poll(asking, validators=Validators(HOME, '"a"')).headers) == accept | {"If-None-Match": '"a"'}
    assert dict(poll(Request("GET", HOME), validators=marks).headers) == accept
    assert dict(poll(asking, validators=marks, **moved(f"{HOME}/2")).headers) == accept
    own = Request("GET", HOME, headers={"if-modified-since": "x"}, conditional=True)
    assert dict(poll(own, validators=marks).headers) == accept | {"if-modified-since": "x"}


def test_a_status_url_at_another_origin_gets_no_secrets() -> None:
    """Also when a request there found the next one within its own origin."""
    request = Request("GET", HOME, headers={"Authorization": "{secret.TOKEN}", "X-V": "1"})
    for found_at in (HOME, "https://files.example.com/a", None):
        prepared = poll(request, **moved("https://files.example.com/b", found_at), allowed_hosts=["files.example.com"])
        assert dict(prepared.headers) == {"X-V": "1", "Accept": "application/json"}


def test_a_status_url_that_is_no_longer_allowed_is_refused() -> None:
    """A spec may be changed after it was found."""
    assert "allowed_hosts" in refusal(Request("GET", HOME), **moved("https://files.example.com/b"))


def test_a_body_with_a_secret_does_not_follow_a_move() -> None:
    """To another origin."""
    request = Request("POST", HOME, json="{secret.TOKEN}")
    options = moved("https://files.example.com/b", None)
    assert "would send a secret to https://files.example.com" in refusal(request, **options)


def test_the_home_of_secrets_is_where_the_spec_wrote_it() -> None:
    """A URL that an answer of an allowed host leads to is not at home there."""
    request = Request("GET", "{poll.body.url}", headers={"Authorization": "{secret.TOKEN}"})
    known = values() | {"poll": {"body": {"url": "/result"}, "url": "https://files.example.com/b"}}
    assert ("Authorization", "TOPSECRET") in poll(request, known).headers
    prepared = poll(request, known, home=HOME, allowed_hosts=["files.example.com"])
    assert prepared.url == "https://files.example.com/result"
    assert dict(prepared.headers) == {"Accept": "application/json"}
    assert "would send a secret" in refusal(request, known, home=HOME)
