"""Specs as files: JSON or YAML in, a `JobSpec` out, and the JSON Schema that editors use."""

from tarry.specs.files import load_spec
from tarry.specs.schema import spec_schema

__all__ = ["load_spec", "spec_schema"]
