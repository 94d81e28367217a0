"""Specs as files: what loads, and what is said of what does not."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tarry import Fixed, JobSpec, Limits, Match, Request, SpecError
from tarry.specs import json_text, load_spec, yaml_text

URL = "https://api.example.com/jobs/{key}"
SPEC = JobSpec(
    poll=Request("GET", URL, headers={"X-Team": "no"}),
    until=Match("body.state", succeeded=["DONE", "no"], failed="FAILED"),
    strategy=Fixed("5s"),
    limits=Limits(max_polls=500),
    input={"on": True, "date": "2026-01-01"},
)
YAML = """\
# yaml-language-server: $schema=spec.schema.json
poll: {method: GET, url: "https://api.example.com/jobs/{key}", headers: {X-Team: no}}
until:
  type: match
  path: body.state
  succeeded: [DONE, no]
  failed: FAILED
strategy: {type: fixed, interval: 5s}
limits:
  max_polls: 500
input: {on: true, date: 2026-01-01}
"""


def written(folder: Path, name: str, text: str) -> Path:
    """A spec file."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path) -> str:
    """What is said of a file, without its folder."""
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    return str(caught.value).replace(f"{path.parent}/", "")


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    """Both load to the spec that was written down; words such as `no` and a date are texts."""
    told = {"$schema": "spec.schema.json", **SPEC.model_dump(mode="json", exclude_unset=True)}
    assert load_spec(written(tmp_path, "spec.json", json.dumps(told))) == SPEC
    for name in ("spec.yaml", "SPEC.YML"):
        assert load_spec(written(tmp_path, name, YAML)) == SPEC


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            YAML.replace("max_polls", "max_pols"),
            "spec.yaml:10: JobSpec.limits.max_pols: unknown name; did you mean max_polls?",
        ),
        (YAML.replace("FAILED", "done"), "spec.yaml:7: JobSpec.until.failed: a value that succeeded names too"),
        (YAML.replace("DONE", "~"), "spec.yaml:6: JobSpec.until.succeeded[0]: must be"),
        (YAML.replace("  path: body.state\n", ""), "spec.yaml:3: JobSpec.until.path: is missing"),
        (YAML.replace("strategy:", "strategey:"), "spec.yaml:8: JobSpec.strategey: unknown name; did you mean"),
        ("limits: {}\nuntil: {}\nlimits: {}\n", "spec.yaml:3: 'limits' is given twice"),
        ("poll: !!python/object:os.system {}\n", "spec.yaml:1: has a tag"),
        ("poll: ! GET\n", "spec.yaml:1: has a tag"),
        ("poll:\n  a: [1, 2\n", "spec.yaml:3: not YAML:"),
        ("a: b: c", "spec.yaml:1: not YAML:"),
        ("a: *nothing", "spec.yaml:1: not YAML: found undefined alias"),
        ("a: 1\n---\nb: 2\n", "spec.yaml:2: not YAML:"),
        ("a: \x07", "spec.yaml:1: not YAML: unacceptable character"),
        ("1: one", "spec.yaml:1: a name is no text"),
        ("? [a]\n: b", "spec.yaml:1: a name is no text"),
        ("<<: {a: 1}", "spec.yaml:1: JobSpec.<<: unknown name"),
        ("&a {b: *a}", "spec.yaml:1: nested deeper than 64, or in itself"),
        ("- a\n", "spec.yaml: a JSON object is needed, this is a list"),
        ("", "spec.yaml: a JSON object is needed, this is a NoneType"),
    ],
)
def test_a_fault_in_yaml_has_its_line(tmp_path: Path, text: str, said: str) -> None:
    """The file, the line, the field and the way out."""
    assert said in refused(written(tmp_path, "spec.yaml", text))


def test_yaml_is_bounded(tmp_path: Path) -> None:
    """Too deep and too long are refused in no time, on every Python."""
    assert "nested deeper than 64" in refused(written(tmp_path, "spec.yaml", "a: " + "[" * 100 + "]" * 100))
    assert "spec.yaml:1: too deep" in refused(written(tmp_path, "spec.yaml", "a: " + "[" * 50_000))
    until = '{"type": "not", "of": ' * 300 + "{}" + "}" * 300
    text = f'{{"poll": {{"method": "GET", "url": "{URL}"}}, "until": {until}}}'
    assert refused(written(tmp_path, "spec.json", text)).startswith("spec.json")
    assert "larger than 262144 characters" in refused(written(tmp_path, "spec.yaml", "a: " + "x" * 300_000))


def test_aliases_are_read_and_bounded(tmp_path: Path) -> None:
    """A part may be named and repeated; a file that blows up is refused before it has."""
    text = YAML.replace("strategy:", "labels: {a: &one x, b: *one}\nstrategy:")
    assert load_spec(written(tmp_path, "spec.yaml", text)).labels == {"a": "x", "b": "x"}
    laughs = "a0: &a0 [" + "x," * 10 + "]\n"
    laughs += "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 10}]\n" for n in range(1, 10))
    assert "more than 100000 values" in refused(written(tmp_path, "spec.yaml", laughs))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"limits": {"max_pols": 1}}, "JobSpec.limits.max_pols: unknown name"),
        ({"until": {"type": "match", "path": "body.x", "succeeded": [1, {}]}}, "JobSpec.until.succeeded[1]: must be"),
        ({"labels": {"team": 5}}, "JobSpec.labels.team: must be"),
        ({"confirm": 0}, "JobSpec.confirm: must be"),
    ],
)
def test_a_fault_in_json_has_its_line(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    """Of the name or value in question, also behind brackets and quotes in texts."""
    told = {"input": ['a "}]{[,: b\\', []], **SPEC.model_dump(mode="json", exclude_unset=True), **changes}
    text = json.dumps(told, indent=1)
    wrong = said.split(":", maxsplit=1)[0].rpartition(".")[2].partition("[")[0]
    line = 1 + text[: text.index(f'"{wrong}"')].count("\n") + (2 if "[1]" in said else 0)
    assert f"spec.json:{line}: {said}" in refused(written(tmp_path, "spec.json", text))


def test_a_file_of_a_program_needs_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callables are refused unless they are allowed; then their module is imported."""
    monkeypatch.syspath_prepend(tmp_path)
    written(tmp_path, "polled_by_test_spec_files.py", "def look():\n    return {}\n")
    text = "poll: {function: 'polled_by_test_spec_files:look'}\nuntil: {type: expression, expression: body.done}\n"
    path = written(tmp_path, "spec.yaml", text)
    assert "it would call polled_by_test_spec_files:look; pass allow_callables=True" in refused(path)
    assert "polled_by_test_spec_files" not in sys.modules
    assert load_spec(path, allow_callables=True).functions[0].load()() == {}
    path = written(tmp_path, "spec.yaml", text.replace("look", "loook"))
    with pytest.raises(SpecError, match="cannot use polled_by_test_spec_files:loook"):
        load_spec(path, allow_callables=True)


@pytest.mark.parametrize("name", ["missing.json", ".", "a\x00b.json"])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    """With its name, printable."""
    with pytest.raises(SpecError) as caught:
        load_spec(tmp_path / name)
    assert str(caught.value).isprintable()


def test_yaml_without_its_library_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way out is said."""
    monkeypatch.setitem(sys.modules, "tarry.specs.yaml_text", None)
    monkeypatch.delattr("tarry.specs.yaml_text", raising=False)
    assert "install tarry[yaml]" in refused(written(tmp_path, "spec.yaml", YAML))


JSON = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-(10**9), 10**9)
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=8,
)


def ways(value: Any, way: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    """The ways to all parts of a value."""
    parts: Mapping[Any, Any] = (
        value if isinstance(value, dict) else dict(enumerate(value if isinstance(value, list) else ()))
    )
    return {way}.union(*(ways(part, (*way, step)) for step, part in parts.items()))


@given(JSON)
def test_every_part_of_a_json_text_has_a_line(value: Any) -> None:
    """Whatever is in the texts, and at the line where it stands."""
    text = json.dumps(value, indent=1)
    lines = json_text.lines(text)
    assert set(lines) >= ways(value)
    assert all(1 <= line <= 1 + text.count("\n") for line in lines.values())


@given(JSON)
def test_yaml_reads_what_json_says(value: Any) -> None:
    """A JSON text on one line is YAML with the same value."""
    text = json.dumps(value)
    if not text.isascii() or "\\u" in text or "\\/" in text:
        return
    read, _ = yaml_text.read(text)
    assert read == value
