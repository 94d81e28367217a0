"""The flags of `tarry await` as a spec."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tarry.cli.exits import UsageError
from tarry.core.conditions import Match
from tarry.core.limits import Limits
from tarry.core.request import Request
from tarry.core.spec import JobSpec
from tarry.core.strategies import Exponential, Fixed, Linear, Strategy
from tarry.errors import SpecError

MAX_SPEC_BYTES = 4_000_000
VERDICTS = ("succeeded", "failed", "pending", "cancelled", "blocked", "partial", "expired", "skipped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What the command line said of the job; None and empty mean that it said nothing."""

    url: str | None = None
    until: str | None = None
    verdicts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    every: str | None = None
    backoff: str | None = None
    max_every: str | None = None
    max_polls: int | None = None
    timeout: str | None = None
    key: str | None = None
    spec: str | None = None
    submit_url: str | None = None
    submit_json: str | None = None
    idempotent: bool = False
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
    if flags.url is None or flags.submit_url is not None or "{" in flags.url:
        raise UsageError("--key is missing: the name under which this job is found again after a crash")
    if "?" in flags.url or "@" in flags.url:
        raise UsageError("--key is missing: this URL may hold a secret, and a key is stored and shown")
    return flags.url


def spec_of(flags: Flags) -> JobSpec | None:
    """The spec that the flags describe; None where only a stored job is named.

    Raises `UsageError` naming the flag, or `SpecError` naming the field.
    """
    if not flags.describes_a_job:
        return None
    if flags.spec is not None:
        if flags != Flags(key=flags.key, spec=flags.spec):
            raise UsageError("--spec: the file says it all; leave out the URL and the other flags of the job")
        return load_spec(flags.spec)
    if flags.url is None:
        raise UsageError("the status URL is missing: tarry await URL --until PATH --succeeded WORD")
    spec = {
        "poll": Request("GET", flags.url, headers=_headers(flags.headers)),
        "until": _condition(flags),
        "submit": _submit(flags),
        "limits": _limits(flags),
        "result": flags.result,
        "progress": flags.progress,
        "strategy": _strategy(flags),
    }
    return JobSpec(**{name: value for name, value in spec.items() if value is not None})


def _condition(flags: Flags) -> Match:
    if flags.until is None:
        raise UsageError("--until is missing: where the status is in the answer, such as body.state")
    words = {verdict: _listed(values) for verdict, values in flags.verdicts if values}
    if not words.keys() & {"succeeded", "partial", "skipped"}:
        raise UsageError("--succeeded is missing: the status (or several) that means done")
    return Match(flags.until, **words)


def _listed(values: Sequence[str]) -> list[str]:
    return [word.strip() for value in values for word in value.split(",") if word.strip()]


def _submit(flags: Flags) -> Request | None:
    if flags.submit_url is None:
        for name, value in (("--submit-json", flags.submit_json), ("--idempotent", flags.idempotent or None)):
            if value is not None:
                raise UsageError(f"{name} needs --submit-url")
        return None
    body = None if flags.submit_json is None else _json(flags.submit_json, "--submit-json")
    return Request("POST", flags.submit_url, json=body, headers=_headers(flags.headers), idempotent=flags.idempotent)


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


def _strategy(flags: Flags) -> Strategy | None:
    every = "2s" if flags.every is None else flags.every
    if flags.max_every is not None and flags.backoff in {None, "fixed"}:
        raise UsageError("--max-every needs --backoff linear or exponential")
    match flags.backoff:
        case None if flags.every is None:
            return None
        case None | "fixed":
            return Fixed(every)
        case "linear":
            return Linear(every, maximum=flags.max_every)
        case "exponential":
            return Exponential(every, maximum=flags.max_every)
        case other:
            raise UsageError(f"--backoff: fixed, linear or exponential, not {other!r}")


def _limits(flags: Flags) -> Limits | None:
    given: dict[str, Any] = {"max_polls": flags.max_polls, "total_duration": flags.timeout}
    named = {name: value for name, value in given.items() if value is not None}
    return Limits(**named) if named else None


def load_spec(path: str) -> JobSpec:
    """The spec in this JSON file, `-` being stdin; raises `UsageError` or `SpecError`."""
    loaded = _json(_read(path), f"--spec {path}")
    if not isinstance(loaded, dict):
        raise UsageError(f"--spec {path}: a JSON object is needed, this is a {type(loaded).__name__}")
    return JobSpec(**loaded)


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
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
    except SpecError:
        raise
    except (ValueError, RecursionError) as error:
        problem = "too deep" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"{where}: not JSON: {problem}") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two values under one name are a mistake, and JSON alone would drop one in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice in one object")
    return found
