"""Callables of the kill tests: one that ends the process that calls it, as a native crash would, and one that does not."""

from __future__ import annotations

import os
import time
from typing import Any

CODE = 7


def deadly() -> dict[str, Any]:
    """No clean-up of any kind."""
    time.sleep(0.2)
    os._exit(CODE)


def harmless(until: float) -> dict[str, Any]:
    """Takes a while, and is over from that second on."""
    time.sleep(0.2)
    return {"state": "SUCCEEDED" if time.time() > until else "RUNNING"}
