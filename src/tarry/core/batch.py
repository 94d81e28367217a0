"""`Batch`: one status call for many jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from tarry.core import templates
from tarry.core.durations import Duration, DurationLike
from tarry.core.expressions import checked, is_path, search
from tarry.core.model import Model
from tarry.core.observation import CallError, Observation, saying
from tarry.core.request import Request
from tarry.errors import SpecError
from tarry.words import SECOND, ErrorKind, Json, micros

Missing = Literal["not_found", "pending", "transient"]

Id: TypeAlias = str | int
"""What the service calls a job."""

IDS = "{batch.ids}"
"""Where the ids go in the request of a batch."""

MAX_WINDOW = 2 * SECOND
"""A lease that was good when a poll began still is when its window closes."""

_READABLE = frozenset({"body", "headers"})
_LONGEST_ID = 512
_GONE = frozenset({404, 410})
_MEANING = {"not_found": 404, "pending": 304}


class Batch(Model):
    """One status call for many jobs, each judged by its own item of the answer.

    - `request`: the call, with `{batch.ids}` where the ids go: in a text they are joined by commas, a parameter
      `["{batch.ids}"]` is repeated for each, alone in a JSON body they are a list. Of other
      placeholders it may have `{secret.NAME}` alone: it is the same for all jobs that share it.
    - `id`: what the service calls the job, such as `{submit.body.jobId}` (default: `{key}`).
    - `items`: the path of the items in the answer, such as `body.jobs`: a list, or an object by id.
    - `item_id`: the path of the id within an item of a list (default: `id`).
    - `chunk`: how many ids one call asks for at most (1 to 1000; default 50).
    - `window`: how long a poll that is due waits for others (0 to 2 s; default 200 ms).
    - `missing`: what an id that the answer leaves out means: "not_found" (a 404 for that job), "pending"
      (nothing new) or "transient" (a failed poll).

    Jobs whose batches differ in `id` alone are asked for together. The item is the `body` that conditions and paths
    see; status and headers are those of the whole answer. Each member counts a poll. Raises `SpecError` naming the field.
    """

    _positional: ClassVar[tuple[str, ...]] = ("request",)

    request: Request
    items: str
    id: str = "{key}"
    item_id: str = "id"
    chunk: Annotated[int, Field(strict=True, ge=1, le=1000)] = 50
    window: Duration = Field(default="200ms", validate_default=True)
    missing: Missing = "not_found"

    if TYPE_CHECKING:

        def __init__(
            self,
            request: Request,
            *,
            items: str,
            id: str = "{key}",
            item_id: str = "id",
            chunk: int = 50,
            window: DurationLike = "200ms",
            missing: Missing = "not_found",
        ) -> None: ...

    @cached_property
    def group(self) -> str:
        """The same text for all batches that can share a call."""
        return self.model_dump_json(exclude={"id"})

    def is_accepted(self, status: int) -> bool:
        """As of the request."""
        return self.request.is_accepted(status)

    def id_of(self, values: Mapping[str, Any]) -> Id:
        """What the service calls the job. Raises `TemplateError` when it cannot be told, or not be asked for."""
        found = templates.render_json(self.id, values)
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise templates.TemplateError("the id of the job is neither a text nor a whole number")
        text = str(found)
        if not 1 <= len(text) <= _LONGEST_ID:
            raise templates.TemplateError(f"the id of the job has {len(text)} characters; use 1 to {_LONGEST_ID}")
        if "," in text and self._joins:
            raise templates.TemplateError("the id of the job has a comma, which parts ids in this request")
        return found

    def asking(self, count: int) -> Request:
        """The request with a placeholder for each of this many ids."""
        each = [_place(position) for position in range(count)]
        request = self.request
        return request.model_copy(
            update={
                "url": _joined(request.url, each),
                "headers": _joined(request.headers, each),
                "params": _repeated(request.params, each),
                "data": _repeated(request.data, each),
                "content": _joined(request.content, each),
                "json_body": _joined(request.json_body, each, keep=IDS),
            }
        )

    def shares(self, seen: Observation, ids: Iterable[Id]) -> dict[str, Observation]:
        """What each member sees of the answer, by its id as text."""
        if seen.error is None and seen.status in _GONE and not self.is_accepted(seen.status):
            # It says of the call, and of no job, that nothing is there.
            seen = _failed(seen, ErrorKind.HTTP_STATUS, f"HTTP {seen.status} to the batch as a whole")
        if seen.error is not None or seen.status is None or not self.is_accepted(seen.status):
            return {str(each): seen for each in ids}
        found = self._found(seen)
        if found is None:
            problem = _failed(seen, ErrorKind.BAD_BODY, f"{self.items} selects neither a list nor an object")
            return {str(each): problem for each in ids}
        return {str(each): self._share(seen, found, str(each)) for each in ids}

    def _found(self, seen: Observation) -> Mapping[str, Json] | None:
        """The items by id."""
        items = search(self.items, {"headers": dict(seen.headers), "body": seen.body})
        if isinstance(items, dict):
            return items
        if not isinstance(items, list):
            return None
        ids = [search(self.item_id, item) for item in items]
        # Of several with one id the first counts, as in a search from the top.
        return {str(each): item for each, item in reversed(list(zip(ids, items, strict=True))) if each is not None}

    def _share(self, seen: Observation, found: Mapping[str, Json], name: str) -> Observation:
        if name in found:
            return saying(seen, found[name], is_json=True)
        if self.missing == "transient":
            return _failed(seen, ErrorKind.BAD_BODY, "the answer has no item of this job")
        return saying(seen, None, status=_MEANING[self.missing], is_json=False)

    @cached_property
    def _joins(self) -> bool:
        pair = ",".join(map(_place, range(2)))
        return any(pair in text for text in _texts(self.asking(2)))

    @field_validator("items")
    @classmethod
    def _selects_items(cls, path: str) -> str:
        return _plain(checked(path, within=_READABLE))

    @field_validator("item_id")
    @classmethod
    def _selects_an_id(cls, path: str) -> str:
        return _plain(checked(path))

    @field_validator("window")
    @classmethod
    def _is_short(cls, window: Any) -> Any:
        if micros(window) > MAX_WINDOW:
            raise ValueError("longer than 2s; a poll would come late")
        return window

    @model_validator(mode="after")
    def _is_the_same_for_all(self) -> Batch:
        named = self.request.roots
        if "batch" not in named:
            raise SpecError("Batch.request", f"has no {IDS}; write it where the ids go")
        if others := sorted(named - {"batch", "secret"}):
            raise SpecError(
                "Batch.request", f"has {{{others[0]}…}}, which differs from job to job; write it in id, and {IDS} here"
            )
        if self.request.conditional:
            raise SpecError("Batch.request.conditional", "one answer is for many jobs, and each poll asks for others")
        if any(_odd(text) for text in _texts(self.request)):
            raise SpecError("Batch.request", f"write {IDS} as it is: all ids, in one place")
        host = re.match(r"[^:]*://[^/?#]*", self.request.url)
        if host is None or "{" in host.group():
            raise SpecError("Batch.request.url", "has a placeholder for its host; write the host out")
        return self

    @model_validator(mode="after")
    def _names_the_job(self) -> Batch:
        named = templates.roots(self.id)
        if not named & {"key", "input", "submit"} or named - {"key", "input", "submit"}:
            raise SpecError("Batch.id", "write {key}, {input…} or {submit…}, by which the service knows the job")
        return self


def _place(position: int) -> str:
    """The placeholder of one of the ids."""
    return f"{IDS[:-1]}.{position}}}"


def _failed(seen: Observation, kind: ErrorKind, detail: str) -> Observation:
    return saying(seen, None, status=None, is_json=False, error=CallError(kind, detail))


def _plain(path: str) -> str:
    if not is_path(path):
        raise ValueError("more than a path; write names and positions alone, such as body.jobs")
    return path


def _odd(text: str) -> bool:
    """Whether a text names something of the batch that there is not."""
    return any(found.root == "batch" and found.name != "batch.ids" for found in templates.placeholders(text))


def _joined(value: Any, each: Sequence[str], keep: str | None = None) -> Any:
    """The value with the ids joined in every text; a text that is `keep` stays."""
    if isinstance(value, str):
        return value if value == keep else value.replace(IDS, ",".join(each))
    if isinstance(value, list):
        return [_joined(item, each, keep) for item in value]
    if isinstance(value, dict):
        return {name: _joined(item, each, keep) for name, item in value.items()}
    return value


def _repeated(fields: Mapping[str, Any] | None, each: Sequence[str]) -> Any:
    """The fields with a list of the ids in place of the list of their placeholder."""
    return fields and {name: list(each) if item == [IDS] else _joined(item, each) for name, item in fields.items()}


def _texts(request: Request) -> list[str]:
    whole = request.model_dump(mode="json", include={"url", "headers", "params", "data", "content", "json_body"})
    return list(templates.texts(whole))
