"""`Request`: what can be sent, what is refused, and what the refusal says."""

from __future__ import annotations

import pickle
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tarry.core.request import Request, is_credential, plain_json, url_problem
from tarry.errors import SpecError

URL = "https://api.example.com/jobs"


def refused(*args: Any, **options: Any) -> SpecError:
    """The error that refuses this request."""
    with pytest.raises(SpecError) as caught:
        Request(*args, **options)
    return caught.value


def test_a_request_reads_as_it_is_written() -> None:
    """Method and URL by position, the rest by name; `json` is the JSON body."""
    request = Request("POST", URL, json={"rows": (1, 2)}, total_timeout="5s")
    assert request.json_body == {"rows": [1, 2]}
    assert request.total_timeout == timedelta(seconds=5)
    assert (request.accept, request.idempotent, request.idempotency_header) == (
        "application/json",
        False,
        "Idempotency-Key",
    )


def test_a_request_comes_back_from_json() -> None:
    """What was set is dumped by the names it was written with, and loads to an equal request."""
    request = Request(
        "PUT", URL, json={"id": "{key}"}, params={"page": [1, "2"]}, accepted=[404, "5xx"], read_timeout=3
    )
    dumped = request.model_dump(mode="json", exclude_unset=True)
    assert set(dumped) == {"method", "url", "json", "params", "accepted", "read_timeout"}
    assert Request(**dumped) == request
    assert pickle.loads(pickle.dumps(request)) == request


def test_a_body_is_a_copy() -> None:
    """Changing what was passed in does not change the request."""
    body: dict[str, Any] = {"a": [1]}
    request = Request("POST", URL, json=body)
    body["a"].append(2)
    assert request.json_body == {"a": [1]}


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_methods(method: Any) -> None:
    """The seven methods of job APIs."""
    assert Request(method, URL).method == method


@pytest.mark.parametrize(
    ("method", "hint"),
    [
        ("get", "write GET"),
        ("TRACE", "use one of GET"),
        ("GET /x HTTP/1.1", "use one of"),
        ("", "use one of"),
        (5, "int"),
    ],
)
def test_other_methods_are_refused(method: Any, hint: str) -> None:
    """Nothing is upper-cased in silence, and no method can smuggle a request line."""
    error = refused(method, URL)
    assert error.field == "Request.method"
    assert hint in error.problem


@pytest.mark.parametrize(
    "url",
    [
        "http://h/",
        "HTTPS://Example.com:8443/a?b=c",
        "http://[::1]:80/",
        "http://127.0.0.1",
        "https://example.com/{input.a}/{submit.body.b:path}?c={key}",
        "https://example.com/{literal}",
        "{submit.headers.location}",
        "{submit.headers.location}?details=true",
        "{input.base}/jobs",
        "https://example.com:{input.port}/",
        "https://example.com/?sig={secret.SIG}",
    ],
)
def test_good_urls(url: str) -> None:
    """Http and https, whole or led by a placeholder."""
    assert Request("GET", url).url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://",
        "http:///x",
        "//host/x",
        "/jobs",
        "example.com/jobs",
        "file:///etc/passwd",
        "ftp://example.com/",
        "data:text/plain,x",
        "javascript:alert(1)",
        "http://user:pw@h/",
        "http://a@b@c/",
        "{input.base}@evil.example.com/",
        "http://h:99999/",
        "http://h:-1/",
        "http://h:0/",
        "http://h:abc/",
        "http://exa mple/",
        "http://h/\r\nX: y",
        "http://h/\x00",
        "http://h/\x7f",
        "http://h/\u2028",
        "http://h\\@evil/",
        "http://127\u30020\u30020\u30021/",
        "http://b\u00fccher.example/",
        "http://[fe80::1%25lo]/",
        "http://[nonsense]/",
        "http://[::1/",
        "http://a%2fb/",
        "http://h/#top",
        "http://h/" + "x" * 8_200,
        "https://example.com/bot{secret.TOKEN}/jobs",
        "{secret.URL}",
        "https://{secret.HOST}/?x",
        "http://h/{input.}",
        "http://h/?access_token=abc",
    ],
)
def test_bad_urls(url: str) -> None:
    """Each is refused with the field's name, and without repeating what may be a secret."""
    error = refused("GET", url)
    assert error.field == "Request.url"
    assert len(error.problem) < 250


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"X\r\nY": "z"}, "no legal name"),
        ({"": "z"}, "no legal name"),
        ({"X Y": "z"}, "no legal name"),
        ({"X": "a\nb"}, "control"),
        ({"X": "\u00e9"}, "non-ASCII"),
        ({"X": " a"}, "blanks around"),
        ({"X": "a" * 20_000}, "longer than"),
        ({"Host": "h"}, "belongs to the connection"),
        ({"content-length": "1"}, "belongs to the connection"),
        ({"Transfer-Encoding": "chunked"}, "belongs to the connection"),
        ({"Connection": "close"}, "belongs to the connection"),
        ({"Accept": "text/plain"}, "accept="),
        ({"Content-Type": "text/plain"}, "content_type="),
        ({"Accept-Encoding": "br"}, "Tarry sets it"),
        ({"X-A": "1", "x-a": "2"}, "twice"),
        ({f"X-{n}": "1" for n in range(101)}, "at most 100"),
        ({"X": "{key.x}"}, "no parts"),
        ({"X": 5}, "string"),
    ],
)
def test_bad_headers(headers: dict[str, Any], problem: str) -> None:
    """Illegal names and values, and headers that are not the caller's to set."""
    error = refused("GET", URL, headers=headers)
    assert error.field.startswith("Request.headers")
    assert problem in error.problem


@pytest.mark.parametrize(
    "name",
    ["Authorization", "proxy-authorization", "Cookie", "X-API-Key", "X-Auth-Token", "My_Secret", "api_key", "Password"],
)
@pytest.mark.parametrize("field", ["headers", "params", "data"])
def test_a_literal_credential_is_refused(field: str, name: str) -> None:
    """A spec is stored, so a credential is a reference; the error says how to write it, not what it was."""
    error = refused("GET", URL, **{field: {name: "hunter2"}})
    assert "{secret.NAME}" in error.problem
    assert "hunter2" not in str(error)
    assert Request("GET", URL, **{field: {name: "Bearer {secret.TOKEN}"}}).secret_names == {"TOKEN"}


@pytest.mark.parametrize("value", ["{input.token}", "{key}", "secret.TOKEN"])
def test_only_a_secret_stands_for_a_credential(value: str) -> None:
    """What is stored beside the spec is no safer than the spec."""
    assert "{secret.NAME}" in refused("GET", URL, headers={"Authorization": value}).problem


def test_a_token_of_the_service_may_go_back_to_it() -> None:
    """A page token from the submit's answer is no credential of ours."""
    assert Request("GET", URL, params={"pageToken": "{submit.body.pageToken}"}).roots == {"submit"}


def test_names_of_credentials() -> None:
    """By whole name or by a telling part, in any case, with - or _; the idempotency key is none."""
    assert is_credential("X_Api_Key")
    assert is_credential("client_secret")
    assert not is_credential("Idempotency-Key")
    assert not is_credential("X-Request-Id")


@pytest.mark.parametrize(
    "bodies", [{"json": 1, "data": {"a": "b"}}, {"json": 1, "content": "x"}, {"data": {}, "content": "x"}]
)
def test_only_one_body(bodies: dict[str, Any]) -> None:
    """JSON, form fields and text exclude each other."""
    assert "one of them" in refused("POST", URL, **bodies).problem


def cyclic() -> list[Any]:
    """A list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (float("nan"), "NaN"),
        ([float("inf")], "infinity"),
        ([10**5000], "4,200 digits"),
        (cyclic(), "deeper than 64"),
        ({1: 2}, "names are texts"),
        ({"a": {1, 2}}, "set"),
        (b"x", "bytes"),
        (Decimal(1), "Decimal"),
        (object(), "object"),
        ((n for n in range(3)), "generator"),
        ({"a": "\ud800"}, "half a character"),
        ({"\ud800": 1}, "half a character"),
        ("{input..a}", "malformed"),
    ],
)
def test_a_json_body_is_json(body: Any, problem: str) -> None:
    """What JSON cannot hold is refused when it is written, not when it is sent."""
    error = refused("POST", URL, json=body)
    assert error.field == "Request.json"
    assert problem in error.problem


def test_json_may_nest_64_deep() -> None:
    """The bound is exact."""
    body: Any = 1
    for _ in range(64):
        body = [body]
    assert plain_json(body) == body
    with pytest.raises(ValueError, match="deeper than 64"):
        plain_json([body])


@pytest.mark.parametrize(
    "options", [{"content": b"x"}, {"content": "\ud800"}, {"data": {"a": None}}, {"params": {"a": {}}}]
)
def test_other_bodies_and_params_are_text(options: dict[str, Any]) -> None:
    """Bytes, half characters, nulls and objects have no place in a form, a query or a text."""
    assert refused("POST", URL, **options).field.startswith(f"Request.{next(iter(options))}")


@pytest.mark.parametrize("accepted", [[99], [600], ["200"], ["6xx"], ["2XX"], [True], [2.5]])
def test_accepted_are_codes_and_families(accepted: list[Any]) -> None:
    """Codes from 100 to 599 and families such as "4xx", nothing that looks like one."""
    assert refused("GET", URL, accepted=accepted).field.startswith("Request.accepted")


def test_accepted_statuses_are_read_besides_2xx() -> None:
    """2xx always; a code and a family as asked for."""
    request = Request("GET", URL, accepted=(404, "5xx"))
    assert [status for status in (199, 200, 299, 300, 403, 404, 500, 599) if request.is_accepted(status)] == [
        200,
        299,
        404,
        500,
        599,
    ]


def test_roots_are_gathered_from_everywhere() -> None:
    """URL, headers, params and the body; names are literal."""
    request = Request(
        "POST",
        "https://example.com/{key}",
        headers={"X": "{input.x}"},
        params={"{poll.x}": ["{baseline.y}", 1]},
        json={"{poll.x}": ["{submit.body.x}"]},
    )
    assert request.roots == {"key", "input", "baseline", "submit"}
    assert Request("POST", URL, data={"a": ["{secret.A}"]}).roots == {"secret"}
    assert Request("POST", URL, content="{input.x}").roots == {"input"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"accept": "a\nb"}, "control"),
        ({"content_type": "{input.x}"}, "placeholders do not work here"),
        ({"idempotency_header": "Host"}, "belongs to the connection"),
        ({"idempotency_header": "a b"}, "no legal name"),
        ({"headers": {"idempotency-key": "1"}}, "Tarry sends"),
        ({"idempotent": "yes"}, "bool"),
        ({"total_timeout": 0}, ""),
        ({"read_timeout": "soon"}, ""),
        ({"heders": {}}, "did you mean headers?"),
    ],
)
def test_other_options_are_checked(options: dict[str, Any], problem: str) -> None:
    """Each has its own refusal."""
    assert problem in refused("GET", URL, **options).problem


def test_a_whole_url_is_judged_alone() -> None:
    """The check of what is about to be called: no placeholder is known to it."""
    assert url_problem("https://example.com/a?b") is None
    assert url_problem("{key}") is not None


def test_what_was_derived_is_derived_anew_in_a_copy() -> None:
    """A copy without a header needs no secret of it, also when the original was asked before."""
    request = Request("GET", "https://example.com/", headers={"X-Key": "{secret.KEY}"})
    assert request.secret_names == {"KEY"}
    assert request.model_copy(update={"headers": {}}).secret_names == set()
    assert request.model_copy() == request
