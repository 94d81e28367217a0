"""How Sphinx builds these pages: `make docs`, where a warning is an error."""

from __future__ import annotations

import ast
import inspect
import textwrap
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

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

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88


def _written_arguments(owner: type) -> str | None:
    """The arguments of the `__init__` that a class of specs shows to type checkers."""
    for base in owner.__mro__[:-1]:
        if not base.__module__.startswith("tarry."):
            continue
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                init = next(found for found in node.body if isinstance(found, ast.FunctionDef))
                del init.args.args[0]
                return f"({ast.unparse(init.args)})"
    return None


def _as_written(
    _app: Sphinx, what: str, _name: str, described: object, _options: object, _signature: str, _returns: str
) -> tuple[str, str] | None:
    """Show what a caller writes, not what pydantic makes of it."""
    arguments = _written_arguments(described) if what == "class" and isinstance(described, type) else None
    return None if arguments is None else (arguments, "")


def _tables_as_lists(
    _app: Sphinx, _what: str, _name: str, _described: object, _options: object, lines: list[str]
) -> None:
    """Docstrings draw tables as Markdown does; Sphinx reads them as lists of rows."""
    drawn: list[str] = []
    for line in lines:
        if not line.startswith("|"):
            drawn.append(line)
        elif set(line) <= set("|-: "):
            continue
        else:
            first, *rest = [cell.strip() for cell in line.strip("|").split("|")]
            inside = bool(drawn) and drawn[-1].startswith("     - ")
            drawn += [] if inside else ["", ".. list-table::", "   :header-rows: 1", ""]
            drawn += [f"   * - {first}", *(f"     - {cell}" for cell in rest)]
    lines[:] = drawn


def setup(app: Sphinx) -> None:
    """Tell Sphinx."""
    app.connect("autodoc-process-signature", _as_written)
    app.connect("autodoc-process-docstring", _tables_as_lists)
