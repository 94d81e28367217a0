"""URLs: the quick way and the long one."""

from __future__ import annotations

from urllib.parse import quote, urldefrag, urljoin

from hypothesis import given
from hypothesis import strategies as st

from tarry.core.origin import _LEGAL, _WHOLE, resolve


@given(st.from_regex(_WHOLE, fullmatch=True), st.sampled_from(["", "http://example.com/a/b?c", "https://example.com"]))
def test_a_url_that_nothing_would_change_in_is_left_as_it_is(url: str, base: str) -> None:
    """Such a URL is resolved without being taken apart, and comes out as it would otherwise."""
    assert resolve(url, base or None) == url == urldefrag(urljoin(base, quote(url, safe=_LEGAL))).url
