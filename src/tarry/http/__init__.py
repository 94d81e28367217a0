"""The HTTP adapter: from a request of a spec to bytes, and from bytes to an observation."""
