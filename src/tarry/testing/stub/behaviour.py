"""How a stubbed job misbehaves, as data: in a submit's body, in a query, or in Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import parse_qsl

from pydantic import Field, field_validator

from tarry.core.model import Model
from tarry.errors import SpecError

Mode = Literal["answer", "drip", "drop", "cut", "garbage", "hang", "text", "huge", "bomb", "redirect", "etag"]
Hint = Literal["seconds", "date", "ms", "x-ms", "openai-ms", "interval", "garbage"]
CallName = Literal["poll", "submit"]

_Seconds = Annotated[float, Field(ge=0, le=1_000_000)]
_Headers = dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")], Annotated[str, Field(pattern=r"^[\x20-\x7e]*$")]]


class Behaviour(Model):
    """What is odd about some calls.

    Which calls:

    - `on`: "poll" or "submit". Submits are counted per Idempotency-Key, or per body where there is none.
    - `calls`: their numbers, 1 being the first; `until`: all up to this number; without either: every one.

    What is odd:

    - `mode`: "answer" (as usual), "drip" (a byte at a time, `pause` seconds between), "drop"
      (the connection closes without an answer), "cut" (it closes half-way), "garbage" (not
      HTTP), "hang" (no answer, ever), "text" (an HTML page), "huge" (a body of `mib` MiB), "bomb" (the same,
      gzipped), "redirect" (to `url`; 302 unless `status` says otherwise) or "etag" (the job stays as it is, its
      answer has an `ETag`, and a poll that names that in `If-None-Match` gets 304).
    - `status`: this HTTP code, with an `error` in the body; 404 looks like a job that is not known yet.
    - `states`: the state that the job reports; of several the n-th call gets the n-th, round and round.
    - `delay`: seconds before the answer.
    - `hint`: asks to wait for `wait` seconds: `Retry-After` in "seconds" or as a "date",
      `retry-after-ms` ("ms"), "x-ms", "openai-ms", "interval", or "garbage".
    - `headers`: more headers, as they are.
    - `accepted`: whether a submit counts though its answer is odd (by default all but
      429 and other 4xx): with "drop" or "hang" its answer is lost, with a 500 it lies.

    A call whose answer does not show the job leaves the job's progress as it was.
    Raises `SpecError` naming the field.
    """

    on: CallName = "poll"
    calls: tuple[Annotated[int, Field(ge=1)], ...] = ()
    until: Annotated[int, Field(ge=1)] | None = None
    mode: Mode = "answer"
    status: Annotated[int, Field(ge=200, le=599)] | None = None
    states: tuple[str, ...] = ()
    delay: _Seconds = 0
    pause: _Seconds = 0.01
    hint: Hint | None = None
    wait: Annotated[float, Field(ge=0, le=1_000_000_000)] = 1
    headers: _Headers = Field(default_factory=dict)
    url: Annotated[str, Field(pattern=r"^[\x21-\x7e]+$")] = "/elsewhere"
    mib: Annotated[int, Field(ge=1, le=256)] = 8
    accepted: bool | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            on: CallName = "poll",
            calls: Sequence[int] = (),
            until: int | None = None,
            mode: Mode = "answer",
            status: int | None = None,
            states: Sequence[str] = (),
            delay: float = 0,
            pause: float = 0.01,
            hint: Hint | None = None,
            wait: float = 1,
            headers: dict[str, str] = ...,
            url: str = "/elsewhere",
            mib: int = 8,
            accepted: bool | None = None,
        ) -> None: ...

    @field_validator("calls", "states", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return value.split(",") if isinstance(value, str) else value

    def covers(self, on: CallName, call: int) -> bool:
        """Whether this is about the n-th call of that name."""
        if self.on != on:
            return False
        if self.calls or self.until is not None:
            return call in self.calls or call <= (self.until or 0)
        return True

    @property
    def shows_the_job(self) -> bool:
        """Whether a client can read the job's state in the answer."""
        return self.mode in {"answer", "drip", "huge", "bomb"} and (self.status or 200) < 300

    @property
    def accepts(self) -> bool:
        """Whether a submit creates the job."""
        return not 400 <= (self.status or 200) < 500 if self.accepted is None else self.accepted


class Plan(Model):
    """What a submit's body may say of its job: how many `seconds` it takes, and its `script`."""

    seconds: _Seconds | None = None
    script: tuple[Behaviour, ...] = ()


def plan_of(content: bytes) -> Plan:
    """The plan in a submit's body, whose other members are nobody's business. Raises `SpecError`."""
    body = _json(content)
    if not isinstance(body, dict):
        return Plan()
    return Plan(**{name: body[name] for name in Plan.model_fields if name in body})


def script_of(content: bytes) -> tuple[Behaviour, ...]:
    """A body that is a list of behaviours. Raises `SpecError`."""
    body = _json(content)
    if not isinstance(body, list):
        raise SpecError("script", "send a JSON list of behaviours")
    given: dict[str, Any] = {"script": body}
    return Plan(**given).script


def behaviour_of(query: str, on: CallName) -> Behaviour | None:
    """The behaviour in a query such as `mode=answer&status=503&until=2`; None without a mode. Raises `SpecError`."""
    if "mode=" not in query:
        return None
    given = dict(parse_qsl(query, keep_blank_values=True))
    known: dict[str, Any] = {name: given[name] for name in Behaviour.model_fields if name in given}
    known["on"] = on
    return Behaviour(**known) if "mode" in known else None


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
