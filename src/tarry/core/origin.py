"""Where a URL leads, and whether a URL found in an answer may lead there."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urldefrag, urljoin, urlsplit

from tarry.core.request import MAX_URL, url_problem

_DEFAULT_PORTS = {"http": 80, "https": 443}
# All that RFC 3986 lets a URL hold, so that quoting touches only what must not be there.
_LEGAL = "%:/?#[]@!$&'()*+,;=~-._"
_BROKEN = re.compile(r"[\\\x00-\x1f\x7f]")
# What nothing would be changed in, and that is most of what is called; its origin first.
_WHOLE = re.compile(r"(https?://[\w.:-]+)/[\w%:/@!$&'()*+,=~.-]*(?:\?[\w%:/@!$&'()*+,;=~.?-]+)?", re.ASCII)


class OriginError(ValueError):
    """The URL may not be called. The message names origins at most: the rest of a URL may be a secret."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port: what a secret is bound to."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS.get(self.scheme) else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    def is_among(self, hosts: Collection[str]) -> bool:
        """Whether one of `hosts` names it: "host" for any port, "host:port" for one."""
        named = {host.lower() for host in hosts}
        host = f"[{self.host}]" if ":" in self.host else self.host
        return not named.isdisjoint({self.host, host, f"{host}:{self.port}"})


def origin_of(url: str) -> Origin:
    """The origin of a whole http or https URL; `OriginError` when it is none."""
    whole = _WHOLE.fullmatch(url) if len(url) <= MAX_URL else None
    # What comes after the origin is right by then, and thousands of jobs share theirs.
    return _origin_of(url if whole is None else whole[1])


@lru_cache(1_024)
def _origin_of(url: str) -> Origin:
    problem = url_problem(url)
    if problem:
        raise OriginError(f"the URL {problem}")
    parts = urlsplit(url)
    return Origin(parts.scheme, (parts.hostname or "").rstrip("."), parts.port or _DEFAULT_PORTS[parts.scheme])


def resolve(reference: str, base: str | None) -> str:
    """The URL that a reference means: itself when absolute, else as seen from `base`.

    Blanks and non-ASCII characters are percent-encoded, a fragment is dropped.
    """
    if _WHOLE.fullmatch(reference):
        return reference
    if _BROKEN.search(reference):
        raise OriginError("the URL has control characters or backslashes")
    try:
        legal = quote(reference.strip(" "), safe=_LEGAL)
        url = urldefrag(urljoin(base or "", legal)).url
    except ValueError:  # a lone surrogate, or brackets that hold no address
        raise OriginError("the URL is broken") from None
    if base is None and not urlsplit(url).scheme:
        raise OriginError("the URL is relative, and there is no answer that it could be relative to")
    return url


def resolved(reference: str, base: str | None) -> str:
    """As `resolve`, and `OriginError` for what is no whole http or https URL then."""
    whole = _WHOLE.fullmatch(reference) if len(reference) <= MAX_URL else None
    if whole is not None:
        _origin_of(whole[1])
        return reference
    url = resolve(reference, base)
    origin_of(url)
    return url


def masked(url: str) -> str:
    """The URL as it may be shown: its query, which may be a signature, is hidden."""
    path, question, _ = url.partition("?")
    return f"{path}?***" if question else path


def check_found(url: str, base: str | None, allowed_hosts: Collection[str]) -> None:
    """Refuse a URL found in an answer that leaves the origin of the request that found it.

    `allowed_hosts` lifts this for hosts, but never lets https fall back to http.
    """
    target = origin_of(url)
    home = origin_of(base) if base else None
    if target == home:
        return
    if home and home.scheme == "https" and target.scheme == "http":
        raise OriginError(f"an answer of {home} leads to {target}, from https to http")
    if not target.is_among(allowed_hosts):
        found = f"an answer of {home}" if home else "an answer"
        raise OriginError(f"{found} leads to {target}; if that is right, put {target.host} into allowed_hosts")
