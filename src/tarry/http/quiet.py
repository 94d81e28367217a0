"""Keeps the HTTP libraries from logging our calls: they log whole URLs and headers, and so secrets.

The loggers get a filter that drops records made while one of our calls is
under way, and nothing else: what an application does with the same
libraries is logged as before.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar

_PARTS = ("connection", "http11", "http2", "proxy", "socks")
LOGGERS = (
    *("httpx", "httpx2", "httpcore", "httpcore2", "hpack.hpack", "hpack.table"),
    *("aiohttp.client", "aiohttp.internal"),
    *(f"{core}.{part}" for core in ("httpcore", "httpcore2") for part in _PARTS),
)
"""A filter sees only what its own logger is given, so every logger that the libraries write to is named."""

calling: ContextVar[bool] = ContextVar("tarry_calling", default=False)
"""Whether one of our calls is under way: what the libraries log then is dropped."""


def _is_foreign(_: logging.LogRecord) -> bool:
    return not calling.get()


def install() -> None:
    """Put the filter on the libraries' loggers; once is enough, more does no harm."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_is_foreign)
