"""The public names: written out by hand, proven here."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tarry

ROOT = Path(__file__).parent.parent
DOCUMENTED = re.compile(r"^\.\. auto(?:class|exception|function|data):: (tarry(?:\.\w+)+)", re.MULTILINE)


def documented() -> set[str]:
    """Full names that the reference describes."""
    return {name for page in (ROOT / "docs/reference").rglob("*.md") for name in DOCUMENTED.findall(page.read_text())}


def checked_names() -> dict[str, str]:
    """What type checkers see behind each name of the package, and the module it comes from."""
    module = ast.parse((ROOT / "src/tarry/__init__.py").read_text())
    block = next(node for node in module.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_the_names_are_sorted_and_few() -> None:
    """`__all__` is in order, holds each name once, and stays a surface one can learn."""
    assert list(tarry.__all__) == sorted(set(tarry.__all__))
    assert len(tarry.__all__) <= 45


@pytest.mark.parametrize("name", tarry.__all__)
def test_a_name_resolves_to_what_checkers_see(name: str) -> None:
    """The lazy name is the object in the module that the annotations import it from."""
    assert getattr(tarry, name) is getattr(import_module(checked_names()[name]), name)


def test_checkers_see_no_more_than_there_is() -> None:
    """The imports for checkers and `__all__` name the same things."""
    assert checked_names().keys() == set(tarry.__all__)


def test_every_public_name_is_in_the_reference() -> None:
    """And the reference names nothing at the top that is not public."""
    top = {name.partition(".")[2] for name in documented() if name.count(".") == 1}
    assert top == set(tarry.__all__)


def test_what_the_reference_names_exists() -> None:
    """Names below the top level, such as `tarry.testing.FakeClock`, resolve too."""
    for name in documented():
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute), name


@pytest.mark.parametrize("module", ["tarry.core", "tarry.specs", "tarry.sync", "tarry.testing"])
def test_a_public_package_exports_by_hand(module: str) -> None:
    """Its `__all__` is sorted, resolves, and is in the reference."""
    package = import_module(module)
    assert list(package.__all__) == sorted(set(package.__all__))
    missing = {name for name in package.__all__ if not hasattr(package, name)}
    assert missing == set()
    assert {f"{module}.{name}" for name in package.__all__} <= documented() | {f"{module}.{n}" for n in tarry.__all__}


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    """A typing mistake is told at once, and `dir` lists what there is."""
    with pytest.raises(AttributeError, match="no attribute 'Pollster'"):
        _ = tarry.Pollster
    assert set(tarry.__all__) <= set(dir(tarry))


def test_star_import_brings_all_of_it() -> None:
    """`from tarry import *` works for whoever likes it in a notebook."""
    code = "from tarry import *; print(Poller.__name__, Match('body.s', succeeded='OK').path)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "src")
    assert (run.stdout.strip(), run.stderr) == ("Poller body.s", "")
