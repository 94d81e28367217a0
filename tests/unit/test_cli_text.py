"""Texts of the command line: escaped, short, the same everywhere."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tarry.cli import text, world


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("RUNNING", "RUNNING"),
        ("läuft 実行中", "läuft 実行中"),
        ("a\nCRITICAL fake", r"a\nCRITICAL fake"),
        ("a\r\nb", r"a\r\nb"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("one\u2028two\u2029", r"one\u2028two\u2029"),
        ("\ud800", r"\ud800"),
        ("\x00\x07", r"\x00\x07"),
        ("\u200bhidden", r"\u200bhidden"),
        ("\U000e0041", r"\U000e0041"),
        (17, "17"),
        (None, "None"),
    ],
)
def test_what_could_move_a_cursor_or_forge_a_line_is_escaped(given: object, shown: str) -> None:
    """Letters stay as they are; controls, marks and separators are shown as in a Python literal."""
    assert text.plain(given) == shown


@pytest.mark.parametrize(
    ("width", "shown"), [(10, "abcdefghij"), (9, "abcdefgh…"), (1, "…"), (0, "…"), (None, "abcdefghij")]
)
def test_a_text_is_cut_with_an_ellipsis(width: int | None, shown: str) -> None:
    """A text that fits stays whole; any width is safe."""
    assert text.plain("abcdefghij", width) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"),
        (0, "0s"),
        (0.04, "0s"),
        (0.44, "0.4s"),
        (2, "2s"),
        (59.94, "59.9s"),
        (59.96, "1m 00s"),
        (65, "1m 05s"),
        (3599.6, "1h 00m"),
        (7385, "2h 03m"),
        (86_400, "1d 00h"),
        (100 * 86_400 + 7200, "100d 02h"),
    ],
)
def test_a_duration_has_the_two_units_that_matter(seconds: float, shown: str) -> None:
    """Rounding never gives 60 seconds or 60 minutes."""
    assert text.duration(timedelta(seconds=seconds)) == shown


def test_times_are_told_in_utc() -> None:
    """Lines of two machines can be compared."""
    at = datetime(2026, 3, 1, 18, 30, 12, 900_000, UTC)
    assert text.time_of_day(at) == "18:30:12Z"
    assert text.date_and_time(at) == "2026-03-01 18:30:12Z"


@pytest.mark.parametrize(
    ("value", "shown"), [(None, ""), (0.4, "40 %"), (0, "0 %"), (1.0, "100 %"), ("step 2\n", r"step 2\n")]
)
def test_progress_is_a_percentage_or_words(value: float | str | None, shown: str) -> None:
    """Words of a server are escaped."""
    assert text.progress(value) == shown


def test_json_is_ascii_for_programs_and_readable_for_people() -> None:
    """Neither form lets a control character through."""
    value = {"name": "é\x1b", "at": datetime(2026, 1, 1, tzinfo=UTC)}
    assert text.as_json(value) == r'{"name": "\u00e9\u001b", "at": "2026-01-01 00:00:00+00:00"}'
    assert text.readable_json(value) == r'{"name": "é\u001b", "at": "2026-01-01 00:00:00+00:00"}'
    assert text.readable_json("\u202e") == r'"\u202e"'


def test_nouns_agree_with_their_number() -> None:
    """One poll, two polls."""
    assert [text.count(number, "poll") for number in (0, 1, 2)] == ["0 polls", "1 poll", "2 polls"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("http_status: HTTP 503", "HTTP 503"),
        ("timeout: the answer took too long", "the answer took too long"),
        ("submit: connect: could not connect", "submit: could not connect"),
        ("k: unreachable; 3 polls in a row failed: http_status: HTTP 503; 3 polls", None),
        ("k: timed_out; last error: submit: timeout: too slow", "k: timed_out; last error: submit: too slow"),
        ("condition: ValueError: no number", "condition: ValueError: no number"),
        ("callable: KeyError: 'state'", "callable: KeyError: 'state'"),
        ("timeout: ", "timeout: "),
        ("the rest: timeout: unknown", "the rest: timeout: unknown"),
    ],
)
def test_an_error_is_readable(given: str, shown: str | None) -> None:
    """The kind goes where the words say it; a kind that adds something stays, and so do the words of others."""
    assert text.readable(given) == (given.replace("http_status: ", "") if shown is None else shown)


def test_a_program_that_the_shell_does_not_find_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that is shown can be pasted; the plain name stays where it leads to the same program."""
    script = tmp_path / "tarry"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.setenv("PATH", "")
    assert world.program() == str(script)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert world.program() == "tarry"
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "__main__.py")])
    assert world.program() == "tarry"


def test_a_missing_secret_is_told_without_python() -> None:
    """The shell's way to give a secret is a variable, and both texts of the library end so."""
    missing = "secret: the secret NOPE is not there; give it to the Poller as secrets={'NOPE': …}"
    assert text.readable(missing).endswith("the secret NOPE is not there; set the environment variable NOPE")
    told = text.readable("write {secret.NAME} and give the secret to the Poller as secrets={'NAME': …}")
    assert told == "write {secret.NAME} and set the environment variable NAME"
