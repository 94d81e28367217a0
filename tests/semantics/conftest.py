"""The worlds that the rules are told in."""

from tests.worlds import durable, scene

__all__ = ["durable", "scene"]
