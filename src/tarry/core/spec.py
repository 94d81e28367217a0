"""`JobSpec`: how a job is submitted, polled, judged and limited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, field_validator, model_validator

from tarry.core.batch import Batch
from tarry.core.conditions import AnyCondition, Condition
from tarry.core.durations import DurationLike
from tarry.core.expressions import DOCUMENT, checked
from tarry.core.function import Function, as_function
from tarry.core.limits import Limits
from tarry.core.model import Model
from tarry.core.phases import AnyStrategy
from tarry.core.policies import Errors, Hints
from tarry.core.request import Request, plain_json, url_problem
from tarry.core.stalls import Stall
from tarry.core.strategies import DEFAULT, Strategy
from tarry.core.templates import roots, texts
from tarry.words import CallKind, Json, Outcome

_LOCAL = {
    Outcome.TIMED_OUT,
    Outcome.EXHAUSTED,
    Outcome.UNREACHABLE,
    Outcome.CANCELLED,
    Outcome.INVALID,
    Outcome.SUBMIT_UNKNOWN,
}
_OUTCOMES = {*(outcome.value for outcome in Outcome), "success", "failure", "any"}


class JobSpec(Model):
    """How one remote job is submitted, polled, judged and limited.

    Data: frozen, JSON-serialisable, unknown names refused.

    - `poll`: the status call: a `Request`, an importable callable, or a `Batch` for many jobs in one call.
    - `until`: the condition that judges each answer.
    - `submit`: the request or callable that starts the job; without one the job exists already.
    - `fetch`: the request or callable that gets the result of a job that succeeded, wholly or
      partly; `result` then reads its answer in place of the last poll's.
    - `cancel`: the request or callable that asks the service to cancel the job.
    - `cancel_on`: ends decided here that send it, once: any of timed_out, exhausted, unreachable,
      cancelled, invalid, submit_unknown.
    - `then`: importable callables by outcome ("failed"), group ("success", "failure") or "any", for
      a job that nobody awaits: called at least once with the `JobResult`, or the `JobError`.
    - `strategy`, `limits`, `errors`, `hints`: when to poll, and when to give up.
    - `input`: any JSON, seen by templates and conditions.
    - `args`: keyword arguments for each callable; texts may hold placeholders.
    - `result`, `progress`, `reason`: JMESPath over the answer: the output, a
      0..1 or percent or text progress, and the failure's words.
    - `keep`: JMESPath of the part of the body that is stored with the job (default: all, bounded).
    - `stall`: when a job that does not move is called stalled, and whether that ends it.
    - `confirm`: how many equal terminal verdicts in a row end the job (1).
    - `allowed_hosts`: hosts beside the request's own that a URL found in an answer may name, as
      "host" or "host:port".
    - `labels`: texts to find the job by.

    Raises `SpecError` naming the field when the definition can never work.
    """

    poll: Request | Function | Batch
    until: AnyCondition
    submit: Request | Function | None = None
    fetch: Request | Function | None = None
    cancel: Request | Function | None = None
    cancel_on: tuple[Outcome, ...] = ()
    then: dict[str, Function] = Field(default_factory=dict)
    strategy: AnyStrategy = DEFAULT
    limits: Limits = Limits()
    errors: Errors = Errors()
    hints: Hints = Hints()
    input: Any = None
    args: dict[str, Any] = Field(default_factory=dict)
    result: str | None = None
    progress: str | None = None
    reason: str | None = None
    keep: str | None = None
    stall: Stall | None = None
    confirm: Annotated[int, Field(strict=True, ge=1, le=1000)] = 1
    allowed_hosts: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            poll: Request | Batch | Callable[..., Any],
            until: Condition | Callable[..., Any],
            submit: Request | Callable[..., Any] | None = None,
            fetch: Request | Callable[..., Any] | None = None,
            cancel: Request | Callable[..., Any] | None = None,
            cancel_on: Sequence[Outcome | str] = (),
            then: Mapping[str, Callable[..., object]] = ...,
            strategy: Strategy | Callable[..., DurationLike] = ...,
            limits: Limits = ...,
            errors: Errors = ...,
            hints: Hints = ...,
            input: Json | Mapping[str, Any] | Sequence[Any] = None,
            args: Mapping[str, Any] = ...,
            result: str | None = None,
            progress: str | None = None,
            reason: str | None = None,
            keep: str | None = None,
            stall: Stall | None = None,
            confirm: int = 1,
            allowed_hosts: Sequence[str] = (),
            labels: Mapping[str, str] = ...,
        ) -> None: ...

    def target(self, kind: CallKind) -> Request | Function | Batch:
        """What a call of this kind calls."""
        found: Request | Function | Batch | None = getattr(self, kind.value)
        return found or self.poll

    @property
    def functions(self) -> tuple[Function, ...]:
        """All callables that the spec names."""
        cancel = (self.cancel,) if isinstance(self.cancel, Function) else ()
        return (*self.polling_functions, *cancel, *self.then.values())

    @property
    def polling_functions(self) -> tuple[Function, ...]:
        """The callables that whoever polls the job has to know."""
        called = tuple(call for call in (self.submit, self.poll, self.fetch) if isinstance(call, Function))
        return (*called, *self.until.functions, *self.strategy.functions)

    @property
    def is_plain(self) -> bool:
        """Whether an answer is judged, and the next wait set, without a callable."""
        return self.until.is_plain and not self.strategy.functions

    @field_validator("poll", "submit", "fetch", "cancel", mode="before")
    @classmethod
    def _callable_by_name(cls, value: object) -> object:
        return as_function(value)

    @field_validator("then", mode="before")
    @classmethod
    def _callables_by_name(cls, value: object) -> object:
        return {name: as_function(call) for name, call in value.items()} if isinstance(value, Mapping) else value

    @field_validator("then")
    @classmethod
    def _answers_outcomes(cls, then: dict[str, Function]) -> dict[str, Function]:
        for name in then:
            if name not in _OUTCOMES:
                raise ValueError(f"{name!r} is no outcome; use one of {', '.join(sorted(_OUTCOMES))}")
        return then

    @field_validator("cancel_on")
    @classmethod
    def _ends_here(cls, outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
        for outcome in outcomes:
            if outcome not in _LOCAL:
                raise ValueError(f"{outcome} is not decided here; use {', '.join(sorted(_LOCAL))}")
        return outcomes

    @field_validator("input", "args")
    @classmethod
    def _is_json(cls, value: object) -> Json:
        return plain_json(value)

    @field_validator("allowed_hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(_is_host, hosts)):
            raise ValueError('no host; write "files.example.com", or "files.example.com:8443" for that port alone')
        return hosts

    @field_validator("result", "progress", "reason")
    @classmethod
    def _reads_the_document(cls, path: str | None) -> str | None:
        return None if path is None else checked(path, within=DOCUMENT)

    @field_validator("keep")
    @classmethod
    def _reads_the_body(cls, path: str | None) -> str | None:
        return None if path is None else checked(path)

    def _roots(self, call: Request | Function | Batch | None) -> frozenset[str]:
        """What the placeholders of a call name; those of a callable are in `args`, of a batch in its `id`."""
        if isinstance(call, Function):
            return frozenset[str]().union(*(roots(text) for text in texts(self.args)))
        if isinstance(call, Batch):
            return roots(call.id)
        return frozenset() if call is None else call.roots

    @model_validator(mode="after")
    def _any_worker_can_act(self) -> JobSpec:
        """A cancel and what `then` names may be called by any process, so nothing in them works only here."""
        called = [("cancel", self.cancel), *((f"then.{name}", call) for name, call in self.then.items())]
        for name, call in called:
            if isinstance(call, Function) and call.inline:
                raise ValueError(f"{name}: {call.function} cannot be imported by name; define it in a module")
        if self.cancel_on and self.cancel is None:
            raise ValueError("cancel_on: there is no cancel to send; add one, or leave it out")
        return self

    @model_validator(mode="after")
    def _templates_can_be_filled(self) -> JobSpec:
        for name in ("submit", "poll", "fetch", "cancel"):
            named = self._roots(getattr(self, name))
            for root in sorted(
                named & {"poll", "baseline", "batch"} - ({"poll"} if name in {"fetch", "cancel"} else set())
            ):
                raise ValueError(
                    f"{name}: nothing fills {{{root}…}}; use {{input…}}, {{submit…}}, {{key}} or {{secret…}}"
                )
            if name == "submit" and "submit" in named:
                raise ValueError("submit: {submit…} is known only after the submit; use {input…} or {key}")
            if self.submit is None and "submit" in named:
                raise ValueError(
                    f"{name}: {{submit…}} needs a submit; add one, or write the URL with {{input…}} or {{key}}"
                )
        return self


def _is_host(text: str) -> bool:
    """Whether this is all of a URL between the slashes: a name or an address, with a port or without."""
    whole = (f"https://{text}", f"https://[{text}]")  # an IPv6 address may come without its brackets
    return set(text).isdisjoint("/?#@") and not all(map(url_problem, whole))
