"""Origins: where a URL leads, and whether one found in an answer may lead there."""

from __future__ import annotations

import pytest

from tarry.core.origin import Origin, OriginError, check_found, origin_of, resolve, resolved

HOME = "https://api.example.com/v1/jobs"


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://API.Example.com/x", "https://api.example.com"),
        ("HTTPS://api.example.com:443", "https://api.example.com"),
        ("http://api.example.com:443/", "http://api.example.com:443"),
        ("http://api.example.com.:80/", "http://api.example.com"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    """Case, a default port and a final dot make no other origin."""
    assert str(origin_of(url)) == origin


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "//host/x", "/x", "http://u:p@h/", "http://h:99999/", "http://h h/"]
)
def test_only_whole_http_urls_have_one(url: str) -> None:
    """Everything else is refused, without its words."""
    with pytest.raises(OriginError, match="the URL"):
        origin_of(url)


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("https://other.example.com/x?a=%2F", "https://other.example.com/x?a=%2F"),
        ("/v2/status/7", "https://api.example.com/v2/status/7"),
        ("jobs/7", "https://api.example.com/v1/jobs/7"),
        ("../7", "https://api.example.com/7"),
        ("?id=7", "https://api.example.com/v1/jobs?id=7"),
        ("//evil.example.com/x", "https://evil.example.com/x"),
        ("/a b/\u00fc#top", "https://api.example.com/a%20b/%C3%BC"),
        (" /x ", "https://api.example.com/x"),
        ("file:///etc/passwd", "file:///etc/passwd"),
    ],
)
def test_a_reference_is_read_from_its_base(reference: str, url: str) -> None:
    """As a browser would, so that what is checked is what is called."""
    assert resolve(reference, HOME) == url


@pytest.mark.parametrize("reference", ["/x\r\nX: y", "\\\\evil\\x", "/\x00", "http://[x/", "/\ud800"])
def test_a_broken_reference_is_refused(reference: str) -> None:
    """Control characters, backslashes and what is no URL."""
    with pytest.raises(OriginError):
        resolve(reference, HOME)


def test_a_relative_reference_needs_a_base() -> None:
    """Without an answer there is nothing to be relative to."""
    with pytest.raises(OriginError, match="relative"):
        resolve("/jobs/7", None)
    assert resolve("https://example.com/x", None) == "https://example.com/x"


@pytest.mark.parametrize(
    ("url", "base", "allowed"),
    [
        ("https://api.example.com:443/other", HOME, []),
        ("https://status.example.com/x", HOME, ["status.example.com"]),
        ("https://status.example.com:8443/x", HOME, ["STATUS.example.com"]),
        ("https://status.example.com:8443/x", HOME, ["status.example.com:8443"]),
        ("https://[::1]:8443/x", HOME, ["[::1]:8443"]),
        ("https://[::1]:8443/x", HOME, ["::1"]),
        ("https://api.example.com/", "http://api.example.com/", ["api.example.com"]),
        ("https://status.example.com/x", None, ["status.example.com"]),
    ],
)
def test_a_found_url_may_stay_home_or_go_where_allowed(url: str, base: str | None, allowed: list[str]) -> None:
    """Its own origin always; another only by name."""
    check_found(url, base, allowed)


@pytest.mark.parametrize(
    ("url", "base", "allowed", "problem"),
    [
        ("https://evil.example.com/x", HOME, [], "put evil.example.com into allowed_hosts"),
        ("https://api.example.com:8443/x", HOME, [], "allowed_hosts"),
        ("https://api.example.com.evil.example/x", HOME, ["api.example.com"], "allowed_hosts"),
        ("https://status.example.com:444/x", HOME, ["status.example.com:443"], "allowed_hosts"),
        ("http://169.254.169.254/latest", "http://api.example.com/", [], "allowed_hosts"),
        ("https://api.example.com/x", "http://api.example.com/", [], "allowed_hosts"),
        ("http://api.example.com/x", HOME, ["api.example.com"], "from https to http"),
        ("https://evil.example.com/x", None, [], "allowed_hosts"),
        ("https://u:p@api.example.com/x", HOME, [], "user or password"),
        ("ftp://api.example.com/x", HOME, ["api.example.com"], "http"),
    ],
)
def test_a_found_url_that_leaves_is_refused(url: str, base: str | None, allowed: list[str], problem: str) -> None:
    """The error names the two origins and the way out, never the rest of the URL."""
    with pytest.raises(OriginError, match=problem) as caught:
        check_found(url, base, allowed)
    assert "/x" not in str(caught.value)
    assert "latest" not in str(caught.value)


@pytest.mark.parametrize("reference", ["https://example.com:99999/", "ftp://example.com/", "/" + "x" * 9_000])
def test_what_a_reference_means_has_to_be_a_url(reference: str) -> None:
    """Before it is called, whether it was whole already or not."""
    with pytest.raises(OriginError):
        resolved(reference, HOME)
    assert resolved("/jobs/8", HOME) == resolve("/jobs/8", HOME)


def test_an_unknown_scheme_still_shows() -> None:
    """An origin with a scheme that has no usual port is written with its port."""
    assert str(Origin("x", "h", 1)) == "x://h:1"
