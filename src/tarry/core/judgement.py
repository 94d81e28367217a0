"""What a condition makes of an answer, and the words to show it with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tarry.core.expressions import paths, roots, search
from tarry.frozen import quick
from tarry.words import Verdict

SUCCESSES: Final = frozenset({Verdict.SUCCEEDED, Verdict.PARTIAL, Verdict.SKIPPED})
FAILURES: Final = frozenset({Verdict.FAILED, Verdict.CANCELLED, Verdict.EXPIRED})

_ANSWERED = frozenset({"status", "headers", "body", "error"})
_BY_NUMBER: dict[float, Verdict] = {1: Verdict.SUCCEEDED, 0: Verdict.PENDING, -1: Verdict.FAILED}
_WORDS = frozenset(Verdict)
_NO_SCALARS = frozenset({"missing", "object", "list"})
_LONGEST_SHOWN = 60
_LONGEST_NUMBER = 128
MOST_SEEN = 8
_SEPARATORS = re.compile(r"[\s_-]+")


class InvalidAnswer(Exception):
    """The condition answered something that is no verdict; the text says what."""


@quick
@dataclass(frozen=True, slots=True)
class Judgement:
    """What a condition made of one answer.

    `value` is the status as text, for people. `seen` holds what the condition
    looked at: pairs of a path and the value there, as text of at most 60
    characters ("object", "list" and "missing" stand for those).
    """

    verdict: Verdict
    value: str | None = None
    seen: tuple[tuple[str, str], ...] = ()


def short(value: object) -> str:
    """The value as one line of at most 60 characters; "object", "list" and "missing" for what is no scalar."""
    match value:
        case None:
            return "missing"
        case bool():
            return "true" if value else "false"
        case str():
            return _one_line(value)
        case int() if value.bit_length() > _LONGEST_NUMBER:
            return "a huge number"
        case int() | float():
            return repr(value)
        case Mapping():
            return "object"
        case list() | tuple():
            return "list"
        case _:
            return _one_line(type(value).__name__)


def _one_line(text: str) -> str:
    cut = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
    return cut if cut.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut)


def look(expressions: Iterable[str], document: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What the answer holds at the paths that the expressions read."""
    read = dict.fromkeys(path for expression in expressions for path in paths(expression))
    shown = [path for path in read if not _ANSWERED.isdisjoint(roots(path))]
    return tuple((path, short(search(path, document))) for path in shown[:MOST_SEEN])


def shown(seen: tuple[tuple[str, str], ...]) -> str | None:
    """The first value that says something."""
    return next((value for _, value in seen if value not in _NO_SCALARS), None)


def of_all(verdicts: Sequence[Verdict]) -> Verdict:
    """What the elements of a list say together: the first failure, else what is open, else success of all."""
    failures = [verdict for verdict in verdicts if verdict in FAILURES]
    better = [verdict for verdict in verdicts if verdict is not Verdict.SUCCEEDED]
    return [*failures, *_open(verdicts), *better, Verdict.SUCCEEDED][0]


def of_any(verdicts: Sequence[Verdict]) -> Verdict:
    """What the elements of a list say when one is enough: the first success, else what is open, else the first."""
    return [*(verdict for verdict in verdicts if verdict in SUCCESSES), *_open(verdicts), *verdicts][0]


def _open(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """What goes on, the most telling first: a word that is not known, then one under way, then one that is blocked."""
    return [verdict for verdict in (Verdict.UNKNOWN, Verdict.PENDING, Verdict.BLOCKED) if verdict in verdicts]


def all_of(found: Sequence[Judgement]) -> Judgement:
    """The first terminal failure, else success when all succeeded, else pending."""
    verdicts = [each.verdict for each in found]
    failures = [verdict for verdict in verdicts if verdict in FAILURES]
    if failures:
        return _merged(failures[0], found)
    if SUCCESSES.issuperset(verdicts):
        # Partial or skipped says more than succeeded does.
        return _merged(next((each for each in verdicts if each is not Verdict.SUCCEEDED), Verdict.SUCCEEDED), found)
    return _merged(Verdict.PENDING, found)


def any_of(found: Sequence[Judgement]) -> Judgement:
    """The first success, else pending when any is, else what the first says."""
    verdicts = [each.verdict for each in found]
    pending = [Verdict.PENDING] if Verdict.PENDING in verdicts else []
    return _merged([*(each for each in verdicts if each in SUCCESSES), *pending, *verdicts][0], found)


def _merged(verdict: Verdict, found: Sequence[Judgement]) -> Judgement:
    """One judgement of several: the value of one with this verdict where there is one, and all that was seen."""
    values = [each.value for each in found if each.verdict is verdict] + [each.value for each in found]
    seen = dict.fromkeys(pair for each in found for pair in each.seen)
    return Judgement(verdict, next((value for value in values if value is not None), None), tuple(seen)[:MOST_SEEN])


def verdict_of(answer: object, *, words: bool = False) -> Verdict:
    """The verdict of true, 1, false, 0, -1 or, where `words` count, of a verdict's word; else `InvalidAnswer`."""
    if isinstance(answer, bool | int | float) and answer in _BY_NUMBER:
        return _BY_NUMBER[answer]
    if words and isinstance(answer, str) and answer in _WORDS:
        return Verdict(answer)
    kind = {str: "the text ", int: "the number ", float: "the number "}.get(type(answer), "")
    raise InvalidAnswer(f"{kind}{short(answer)}" if answer is not None else "nothing (null)")


def key_of(value: object, *, case_sensitive: bool = False, ignore_separators: bool = False) -> object:
    """What two equal status values have in common: 1 and 1.0 are equal, 1 and true and "1" are not."""
    match value:
        case bool():
            return ("boolean", value)
        case int() | float():
            return ("number", value)
        case str():
            text = value if case_sensitive else value.casefold()
            return ("text", _SEPARATORS.sub("", text) if ignore_separators else text)
        case _:
            return None


def copied(value: Any) -> Any:
    """The same JSON in new lists and objects, for code that may change what it gets."""
    match value:
        case Mapping():
            return {name: copied(part) for name, part in value.items()}
        case list() | tuple():
            return [copied(part) for part in value]
        case _:
            return value
