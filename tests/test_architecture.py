"""The house style, as far as a script can hold it."""

from __future__ import annotations

import ast
import io
import re
import statistics
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PYTHON = sorted([*SOURCE, *TESTS, *ROOT.glob("examples/*.py"), *ROOT.glob("benchmarks/*.py"), *ROOT.glob("docs/*.py")])

type_of_function = (ast.FunctionDef, ast.AsyncFunctionDef)
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    """The path as a person would write it."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """The module, parsed once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[AnyFunction]:
    """Every function of the module, nested ones included."""
    return (node for node in ast.walk(tree(path)) if isinstance(node, type_of_function))


def length(function: AnyFunction) -> int:
    """Lines from `def` to the last, docstring included."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and text of each comment."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


# Sizes


def test_a_module_is_read_in_one_sitting() -> None:
    """No module of the source is longer than 400 lines."""
    assert {name_of(path): size for path in SOURCE if (size := len(path.read_text().splitlines())) > 400} == {}


def test_no_function_is_longer_than_60_lines() -> None:
    """A longer one hides a noun."""
    long = {f"{name_of(path)}:{f.name}": length(f) for path in SOURCE for f in functions(path) if length(f) > 60}
    assert long == {}


def test_functions_are_short() -> None:
    """Half of the functions have at most 8 lines, nine in ten at most 30."""
    lengths = sorted(length(f) for path in SOURCE for f in functions(path))
    assert statistics.median(lengths) <= 8
    assert lengths[int(len(lengths) * 0.9)] <= 30


# Exceptions to rules


@pytest.mark.parametrize("path", PYTHON, ids=name_of)
def test_each_exception_to_a_rule_has_its_reason(path: Path) -> None:
    """An ignore names the rule it breaks, and a comment after it says why."""
    exception = re.compile(r"#\s*(type:\s*ignore|pyright:\s*ignore|noqa)")
    reasoned = re.compile(
        r"#\s(type: ignore\[[\w, -]+\]|pyright: ignore\[\w[\w, ]*\]|noqa: [A-Z]+\d+(, [A-Z]+\d+)*)\s.*[#-]\s*[^#\s].{2,}"
    )
    bare = [(line, text) for line, text in comments(path) if exception.search(text) and not reasoned.search(text)]
    assert bare == []


def test_type_ignores_are_rare() -> None:
    """At most three in a thousand lines of source."""
    lines = sum(len(path.read_text().splitlines()) for path in SOURCE)
    ignores = [text for path in SOURCE for _, text in comments(path) if re.search(r"(type|pyright):\s*ignore", text)]
    assert len(ignores) <= 3 * lines / 1000


def test_each_lint_rule_that_is_off_has_its_reason() -> None:
    """In the configuration too, no rule is off without a comment on its line."""
    section = (ROOT / "pyproject.toml").read_text().partition("[tool.ruff.lint]")[2].partition("[tool.mypy]")[0]
    rules = [line for line in section.splitlines() if re.match(r'\s+"[A-Z]+\d*"', line)]
    assert rules
    assert [line for line in rules if not re.search(r"#\s\S.{7,}", line)] == []


# Time and chance

REAL = {
    *(f"time.{name}" for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep")),
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
    *("uuid.uuid1", "uuid.uuid4", "os.urandom", "asyncio.sleep", "anyio.sleep"),
}
ANY_OF = ("random.", "secrets.")
MAY_READ_THE_WORLD = ("src/tarry/clock.py", "src/tarry/chance.py", "src/tarry/testing/")


def imported(module: ast.Module) -> dict[str, str]:
    """What each imported name stands for, in full."""
    names: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names |= {
                a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                for a in node.names
            }
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return names


def dotted(node: ast.expr) -> str:
    """`a.b.c` for a chain of attributes, else an empty text."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (inner := dotted(node.value)):
        return f"{inner}.{node.attr}"
    return ""


def uses(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full name of everything used that was imported."""
    names = imported(module)
    for node in ast.walk(module):
        if isinstance(node, ast.Name | ast.Attribute) and (name := dotted(node)):
            root, _, rest = name.partition(".")
            if root in names:
                yield node.lineno, f"{names[root]}.{rest}".rstrip(".")


def test_time_and_chance_are_passed_in() -> None:
    """Only the clock, the one source of chance and the test doubles touch the real thing."""
    found = [
        f"{name_of(path)}:{line} {name}"
        for path in SOURCE
        if not name_of(path).startswith(MAY_READ_THE_WORLD)
        for line, name in uses(tree(path))
        if name in REAL or name.startswith(ANY_OF)
    ]
    assert found == []


def test_tests_never_sleep() -> None:
    """Real time is for acceptance; elsewhere a fake clock jumps."""
    sleeps = [
        f"{name_of(path)}:{line} {name}"
        for path in TESTS
        if not name_of(path).startswith("tests/acceptance/")
        for line, name in uses(tree(path))
        if name in {"time.sleep", "asyncio.sleep", "anyio.sleep"}
    ]
    assert sleeps == []


@pytest.mark.parametrize("path", [path for path in TESTS if path.name.startswith("test_")], ids=name_of)
def test_every_test_says_what_must_hold(path: Path) -> None:
    """A docstring, so that a failure reads as a broken promise."""
    silent = [f.name for f in functions(path) if f.name.startswith("test_") and not ast.get_docstring(f)]
    assert silent == []


# Imports


def module_of(path: Path) -> str:
    """The dotted name of a source file."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def run_time_imports(module: ast.Module) -> Iterator[str]:
    """What the module imports when it runs, late imports included, those for checkers not."""
    ahead: list[ast.AST] = [module]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.If) and dotted(node.test) == "TYPE_CHECKING":
            ahead.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        ahead.extend(ast.iter_child_nodes(node))


def test_no_import_goes_in_a_circle() -> None:
    """The modules can be put in an order in which each needs only those before it."""
    known = {module_of(path) for path in SOURCE}
    graph = {
        module_of(path): {
            found
            for name in run_time_imports(tree(path))
            if (found := name if name in known else name.rpartition(".")[0]) in known and found != module_of(path)
        }
        for path in SOURCE
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as cycle:
        pytest.fail(" needs ".join(reversed(cycle.args[1])))


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """The code in an interpreter of its own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "src")


def test_importing_tarry_loads_no_client_and_no_database() -> None:
    """`import tarry` pays for neither httpx nor SQLAlchemy, nor does a spec that is written down."""
    run = run_python(
        "import sys, tarry\n"
        "tarry.JobSpec(poll=tarry.Request('GET', 'https://api.example.com/jobs/1'), until=tarry.Status())\n"
        "print(sorted({'httpx', 'httpx2', 'sqlalchemy', 'typer', 'rich'} & set(sys.modules)))"
    )
    assert (run.stdout.strip(), run.stderr) == ("[]", "")


def test_the_core_works_without_client_and_database() -> None:
    """Every module of the core imports where httpx and SQLAlchemy cannot be."""
    run = run_python(
        "import sys\n"
        "sys.modules |= dict.fromkeys(['httpx', 'httpx2', 'sqlalchemy', 'typer', 'rich'])\n"
        "import importlib, pkgutil, tarry.core\n"
        "names = [m.name for m in pkgutil.walk_packages(tarry.core.__path__, 'tarry.core.')]\n"
        "for name in names: importlib.import_module(name)\n"
        "print(len(names) > 5)"
    )
    assert (run.stdout.strip(), run.stderr) == ("True", "")


# Words

NOT_OURS = {"task", "workflow", "operation", "handler", "manager", "context"}
FOREIGN = {
    "src/tarry/testing/clock.py": {"context"},  # asyncio's own keyword, in the methods of a loop
}


def defined_names(path: Path) -> Iterator[str]:
    """Public names that a module defines: its own, classes, functions, arguments, attributes, constants."""
    yield path.stem if path.stem != "__init__" else path.parent.name
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name | ast.Attribute):
            yield dotted(node.target).rpartition(".")[2]
        elif isinstance(node, ast.Assign):
            yield from (dotted(target).rpartition(".")[2] for target in node.targets)


def words(name: str) -> set[str]:
    """The words of an identifier, in lower case, singular."""
    parts = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)
    return {part.lower().removesuffix("s") for part in parts}


@pytest.mark.parametrize("path", SOURCE, ids=name_of)
def test_one_word_for_one_thing(path: Path) -> None:
    """No public name uses a word that has another meaning elsewhere, or too many."""
    wrong = {name for name in defined_names(path) if name and not name.startswith("_") and words(name) & NOT_OURS}
    assert wrong - FOREIGN.get(name_of(path), set()) == set()


# Prose

# Written so that the patterns do not find themselves.
OUTSIDE = re.compile(
    r"(^|[^a-z])/wor[k]/|\.\./share[d]|share[d]/(design|architecture|facts|cases|vendors|protocol)|design[.]md"
    r"|pypi[.]org|files[.]pythonhosted|registry[.]npmjs|deb[.]debian[.]org|\bsub[-]?agent|\bthe CE[O]\b"
    r"|issue [0-9]+ ask[s]|\bmile[s]tone|\b(this|next|last) sessio[n]\b|Co-Authored-B[y]",
    re.IGNORECASE | re.MULTILINE,
)


def kept_files() -> list[Path]:
    """Every file that is, or is about to be, part of the project."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listing.returncode != 0:
        pytest.skip("the tree is no git checkout")
    return [ROOT / name for name in listing.stdout.split("\0") if name and not name.endswith(".lock")]


def test_the_project_speaks_of_itself_alone() -> None:
    """It stands without the desk it was written at: no path, host or note from there."""
    found = []
    for path in kept_files():
        if path.is_file() and b"\0" not in (content := path.read_bytes()):
            text = content.decode("utf-8", "replace")
            found += [f"{name_of(path)}: {match[0]!r}" for match in OUTSIDE.finditer(text)]
    assert found == []


def test_every_dependency_has_its_reason() -> None:
    """The page on dependencies names each, with a line on what it is for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(item for extra in project["optional-dependencies"].values() for item in extra)]
    names = {match[0] for item in asked if (match := re.match(r"[\w-]+", item))} - {"tarry"}
    page = (ROOT / "docs/explanation/dependencies.md").read_text()
    assert {name for name in names if not re.search(rf"^\| `{name}` \| .{{20,}}", page, re.MULTILINE)} == set()
