"""The flags of `tarry await` as a spec."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tarry.cli.exits import UsageError
from tarry.cli.text import plain
from tarry.core.conditions import Match
from tarry.core.function import Function
from tarry.core.limits import Limits
from tarry.core.request import Request
from tarry.core.spec import JobSpec
from tarry.core.strategies import Exponential, Fixed, Linear, Strategy
from tarry.core.texts import no_constant
from tarry.errors import SpecError

MAX_SPEC_BYTES = 4_000_000

Word = str | int | float | bool

# Where the spec says what is wrong, a person wants to know which flag said it.
_FLAG_OF = {
    "Request.url": "the URL",
    "Request.headers": "--header",
    "Request.json": "--submit-json",
    "Match.path": "--until",
    "Fixed.interval": "--every",
    "Linear.initial": "--every",
    "Exponential.initial": "--every",
    "Linear.maximum": "--max-every",
    "Exponential.maximum": "--max-every",
    "Limits.max_polls": "--max-polls",
    "Limits.total_duration": "--timeout",
    "JobSpec.result": "--result",
    "JobSpec.progress": "--progress",
}

_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")


@dataclass(frozen=True, slots=True)
class Words:
    """The statuses that mean each verdict, as typed: repeated, or separated with commas."""

    succeeded: list[str] | None = None
    failed: list[str] | None = None
    pending: list[str] | None = None
    cancelled: list[str] | None = None
    blocked: list[str] | None = None
    partial: list[str] | None = None
    expired: list[str] | None = None
    skipped: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to wait between polls, and how the wait grows."""

    every: str | None = None
    backoff: str | None = None
    max_every: str | None = None


@dataclass(frozen=True, slots=True)
class Submit:
    """The POST that starts the job."""

    url: str | None = None
    body: str | None = None
    idempotent: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What the command line said of the job; None and empty mean that it said nothing."""

    url: str | None = None
    until: str | None = None
    words: Words = Words()
    pace: Pace = Pace()
    max_polls: int | None = None
    timeout: str | None = None
    key: str | None = None
    spec: str | None = None
    allow_callables: bool = False
    submit: Submit = Submit()
    headers: tuple[str, ...] = ()
    result: str | None = None
    progress: str | None = None

    @property
    def describes_a_job(self) -> bool:
        """Whether any flag beside `--key` says something of the job."""
        return self != Flags(key=self.key)


def key_of(flags: Flags) -> str:
    """The key: as given, or the status URL where that alone names the job."""
    if flags.key is not None:
        return flags.key
    if not flags.describes_a_job:
        raise UsageError("give a URL, or --key to go on with a stored job")
    if flags.url is None or flags.submit.url is not None or "{" in flags.url:
        raise UsageError("--key is missing: the name under which this job is found again after a crash")
    if "?" in flags.url or "@" in flags.url:
        raise UsageError("--key is missing: this URL may hold a secret, and a key is stored and shown")
    return flags.url


def spec_of(flags: Flags) -> JobSpec | None:
    """The spec that the flags describe; None where only a stored job is named.

    Raises `UsageError` naming the flag, or `SpecError` naming the field of a spec file.
    """
    if not flags.describes_a_job:
        return None
    if flags.spec is not None:
        if flags != Flags(key=flags.key, spec=flags.spec, allow_callables=flags.allow_callables):
            raise UsageError("--spec: the file says it all; leave out the URL and the other flags of the job")
        return load_spec(flags.spec, allow_callables=flags.allow_callables)
    if flags.allow_callables:
        raise UsageError("--allow-callables needs --spec: only a spec file names callables")
    if flags.url is None:
        raise UsageError("the status URL is missing: tarry await URL --until PATH --succeeded WORD")
    try:
        return _built(flags, flags.url)
    except SpecError as error:
        raise UsageError(f"{_flag_of(error.field)}: {error.problem}") from None


def _flag_of(field: str) -> str:
    model, _, name = field.partition(".")
    verdict = model == "Match" and name in Words.__dataclass_fields__
    return f"--{name}" if verdict else _FLAG_OF.get(field, field)


def _built(flags: Flags, url: str) -> JobSpec:
    spec: dict[str, Any] = {
        "poll": Request("GET", url, headers=_headers(flags.headers)),
        "until": _condition(flags),
        "submit": _submit(flags),
        "limits": _limits(flags),
        "result": flags.result,
        "progress": flags.progress,
        "strategy": _strategy(flags.pace),
    }
    return JobSpec(**{name: value for name, value in spec.items() if value is not None})


def seconds_or_text(duration: str) -> float | str:
    """A bare number is a number of seconds; all else is for the one parser of durations."""
    return float(duration) if _NUMBER.fullmatch(duration) else duration


def _condition(flags: Flags) -> Match:
    if flags.until is None:
        raise UsageError("--until is missing: where the status is in the answer, such as body.state")
    typed = {verdict: _listed(words or ()) for verdict, words in asdict(flags.words).items()}
    words: dict[str, Any] = {verdict: listed for verdict, listed in typed.items() if listed}
    if not words.keys() & {"succeeded", "partial", "skipped"}:
        raise UsageError("--succeeded is missing: the status (or several) that means done")
    return Match(flags.until, **words)


def _listed(values: Sequence[str]) -> list[Word]:
    words = [word.strip() for value in values for word in value.split(",")]
    return [meaning for word in dict.fromkeys(words) if word for meaning in _meanings(word)]


def _meanings(word: str) -> list[Word]:
    """The word as a text and, where it can be one, as a number or boolean: a shell has only texts."""
    if word in {"true", "false"}:
        return [word, word == "true"]
    return [word, float(word) if "." in word else int(word)] if _NUMBER.fullmatch(word) else [word]


def _submit(flags: Flags) -> Request | None:
    url, body = flags.submit.url, flags.submit.body
    if url is not None:
        json_body = None if body is None else _json(body, "--submit-json")
        headers = _headers(flags.headers)
        return Request("POST", url, json=json_body, headers=headers, idempotent=flags.submit.idempotent)
    if flags.submit != Submit():
        raise UsageError("--submit-json and --idempotent need --submit-url")
    return None


def _headers(lines: Sequence[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise UsageError("--header: write it as 'Name: value'")
        if name.strip().lower() in {known.lower() for known in headers}:
            raise UsageError(f"--header: {name.strip()} is given twice")
        headers[name.strip()] = value.strip()
    return headers


def _strategy(pace: Pace) -> Strategy | None:
    every = seconds_or_text("2s" if pace.every is None else pace.every)
    longest = None if pace.max_every is None else seconds_or_text(pace.max_every)
    if pace.max_every is not None and pace.backoff in {None, "fixed"}:
        raise UsageError("--max-every needs --backoff linear or exponential")
    match pace.backoff:
        case None if pace.every is None:
            return None
        case None | "fixed":
            return Fixed(every)
        case "linear":
            return Linear(every, maximum=longest)
        case "exponential":
            return Exponential(every, maximum=longest)
        case other:
            raise UsageError(f"--backoff: fixed, linear or exponential, not {other!r}")


def _limits(flags: Flags) -> Limits | None:
    given: dict[str, Any] = {
        "max_polls": flags.max_polls,
        "total_duration": flags.timeout and seconds_or_text(flags.timeout),
    }
    named = {name: value for name, value in given.items() if value is not None}
    return Limits(**named) if named else None


def load_spec(path: str, *, allow_callables: bool = False) -> JobSpec:
    """The spec in this JSON file, `-` being stdin; raises `UsageError` or `SpecError`.

    A file that names callables is a program: it is refused, and with
    `allow_callables` their modules are imported.
    """
    loaded = _json(_read(path), f"--spec {path}")
    if not isinstance(loaded, dict):
        raise UsageError(f"--spec {path}: a JSON object is needed, this is a {type(loaded).__name__}")
    spec = JobSpec(**loaded)
    for function in spec.functions:
        if not allow_callables:
            raise UsageError(
                f"--spec {path}: it would call {plain(function.function, 80)}; "
                "add --allow-callables if you trust this file like a script"
            )
        _import(function, path)
    return spec


def _import(function: Function, path: str) -> None:
    try:
        importlib.import_module(function.function.partition(":")[0])
        function.load()
    except Exception as error:  # an import runs foreign code, and whatever it raises is told on one line
        problem = plain(f"{type(error).__name__}: {error}", 200)
        raise UsageError(f"--spec {path}: cannot use {plain(function.function, 80)}: {problem}") from error


def _read(path: str) -> str:
    try:
        if path == "-":
            raw = b"" if sys.stdin is None else sys.stdin.buffer.read(MAX_SPEC_BYTES + 1)
        # A FIFO or a device would hang the command, or never end.
        elif not Path(path).is_file():
            raise UsageError(f"--spec {path}: no such file")
        else:
            with Path(path).open("rb") as file:
                raw = file.read(MAX_SPEC_BYTES + 1)
        if len(raw) > MAX_SPEC_BYTES:
            raise UsageError(f"--spec {path}: larger than {MAX_SPEC_BYTES} bytes")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"--spec {path}: not UTF-8 text") from None
    except (OSError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"--spec {path}: {getattr(error, 'strerror', None) or 'cannot be read'}") from None


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text, parse_constant=no_constant, object_pairs_hook=_unique)
    except SpecError:
        raise
    except (ValueError, RecursionError) as error:
        problem = "too deep" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"{where}: not JSON: {problem}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two values under one name are a mistake, and JSON alone would drop one in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice in one object")
    return found
