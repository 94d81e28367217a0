"""Near misses: what a condition looked at, and why it may never match."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tarry.core.judgement import Judgement
from tarry.words import Verdict

_END = re.compile(
    "done|success|succeed|complete|finish|ended|closed|ready|passed"
    "|fail|error|cancel|abort|stopped|terminat|expir|timeout|timedout|skip|reject|kill|crash|dead|lost"
)
_SEPARATORS = re.compile(r"[\s_-]+")


def looks_terminal(value: str) -> bool:
    """Whether the word reads like the end of a job: "DONE" and "Timed Out" do, "cancelling" does not."""
    word = _SEPARATORS.sub("", value.casefold())
    return not word.endswith("ing") and _END.search(word) is not None


def no_word(path: str, value: str) -> str | None:
    """What is wrong where a path leads to no word at all; `value` is what `judgement.short` makes of it."""
    match value:
        case "object":
            return f"{path} is an object: write the path of the word in it"
        case "list":
            return f'{path} is a list: select an element, or say over="all" or "any"'
        case _:
            return None


def problems(judgement: Judgement) -> Iterator[str]:
    """Why an answer that ends nothing may be one that should, a line each."""
    if judgement.seen and all(value == "missing" for _, value in judgement.seen):
        yield f"{' and '.join(path for path, _ in judgement.seen)}: missing"
    if judgement.verdict is not Verdict.UNKNOWN:
        return
    for path, value in judgement.seen:
        problem = no_word(path, value)
        if problem is not None:
            yield problem
    if judgement.value is not None and no_word("", judgement.value) is None:
        end = " and looks like an end" if looks_terminal(judgement.value) else ""
        yield f"{judgement.value} is named nowhere{end}"
