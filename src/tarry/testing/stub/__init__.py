"""A job service on loopback, for tests, demos and benchmarks."""

from __future__ import annotations

from tarry.testing.stub.behaviour import Behaviour
from tarry.testing.stub.service import StubService

__all__ = ["Behaviour", "StubService"]
