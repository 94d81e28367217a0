"""Which host a call goes to."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from tarry.core.function import Function
from tarry.core.request import Request
from tarry.core.templates import TemplateError, render_url
from tarry.words import Json


def host_of(target: Request | Function, values: Mapping[str, Json]) -> str:
    """The host and port that a call goes to, a callable counting as a host of its own.

    A URL that names none goes to where the submit went; one that cannot be told goes to "".
    """
    if isinstance(target, Function):
        return target.function
    try:
        url = render_url(target.url.partition("?")[0], values)
    except TemplateError:
        return ""
    submit = values.get("submit")
    return _host(url) or (_host(str(submit.get("url"))) if isinstance(submit, dict) else "")


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""
