"""The flags of `tarry await` as a spec."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tarry.cli.exits import UsageError
from tarry.cli.text import plain
from tarry.core.conditions import Match
from tarry.core.limits import Limits
from tarry.core.request import Request
from tarry.core.spec import JobSpec
from tarry.core.strategies import Exponential, Fixed, Linear, Strategy
from tarry.errors import SpecError
from tarry.specs import json_text
from tarry.specs.files import import_functions, read_spec

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

_NO_URL = "the status URL is missing: tarry await URL --until PATH --succeeded WORD"

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
    if flags.url is None and flags.spec is None:
        raise UsageError(_NO_URL)
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
        return _from_file(flags.spec, allow_callables=flags.allow_callables)
    if flags.allow_callables:
        raise UsageError("--allow-callables needs --spec: only a spec file names callables")
    if flags.url is None:
        raise UsageError(_NO_URL)
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


def _from_file(path: str, *, allow_callables: bool) -> JobSpec:
    """The spec of `--spec`; one that names callables is a program, and needs a word of trust."""
    name = f"--spec {path}"
    spec = read_spec(path, name)
    if not allow_callables:
        for function in spec.functions:
            raise UsageError(
                f"{name}: it would call {plain(function.function, 80)}; "
                "add --allow-callables if you trust this file like a script"
            )
    import_functions(spec.functions, name)
    return spec


def _json(text: str, where: str) -> Any:
    try:
        return json_text.read(text)
    except ValueError as error:
        raise UsageError(f"{where}: not JSON: {error}") from None
