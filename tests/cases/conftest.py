"""The worlds that the cases are told in."""

from tests.worlds import durable, scene

__all__ = ["durable", "scene"]
