"""How Sphinx builds these pages: `make docs`, where a warning is an error."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "Tarry"
author = "The Tarry authors"
copyright = author  # noqa: A001  # Sphinx reads this name
release = version = installed_version("tarry")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Tarry {release}"

# Docstrings are written to be read in an editor: `name` is code there, not a cross-reference.
default_role = "code"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": False}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

# Types of other libraries, and private helpers in signatures, have no page here to link to.
nitpicky = False
