"""The worlds that peers' behaviours are told in."""

from tests.worlds import durable, scene

__all__ = ["durable", "scene"]
