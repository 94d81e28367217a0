"""`JobSpec`: how a job is submitted, polled, judged and limited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, field_validator, model_validator

from tarry.core.batch import Batch
from tarry.core.conditions import AnyCondition, Condition
from tarry.core.durations import DurationLike
from tarry.core.expressions import DOCUMENT, checked, effort, is_path
from tarry.core.expressions import roots as roots_of
from tarry.core.function import Function, as_function
from tarry.core.limits import Limits
from tarry.core.model import Model
from tarry.core.phases import AnyStrategy
from tarry.core.policies import Errors, Hints
from tarry.core.request import Request, plain_json, url_problem, url_template_problem
from tarry.core.stalls import Stall
from tarry.core.strategies import DEFAULT, Strategy
from tarry.core.templates import ANSWER_ROOTS, roots, secret_names, texts
from tarry.core.validators import MOVING, refusal
from tarry.errors import SpecError
from tarry.words import CallKind, Json, Micros, Outcome, micros

_LOCAL = {
    Outcome.TIMED_OUT,
    Outcome.EXHAUSTED,
    Outcome.UNREACHABLE,
    Outcome.CANCELLED,
    Outcome.INVALID,
    Outcome.SUBMIT_UNKNOWN,
}
_OUTCOMES = {*(outcome.value for outcome in Outcome), "success", "failure", "any"}

_POLL = CallKind.POLL
_CALLS = ("baseline", "submit", "probe", "poll", "fetch", "cancel")


class JobSpec(Model):
    """How one remote job is submitted, polled, judged and limited.

    Data: frozen, JSON-serialisable, unknown names refused.

    - `poll`: the status call: a `Request`, an importable callable, or a `Batch` for many jobs in one call.
    - `until`: the condition that judges each answer.
    - `submit`: the request or callable that starts the job; without one the job exists already.
    - `submitted`: a condition on the submit's answer: a terminal verdict ends the job unpolled, anything else goes on.
    - `baseline`: a request or callable made and stored before the submit; without one, the first answer
      that `until` judges is the baseline.
    - `probe`: the request or callable that finds the job of a submit whose answer was lost; its answer
      stands in for the submit's. A submit that may be sent again is, without a probe.
    - `redirect`: where the job is polled from then on when the verdict is redirect, such as
      "{poll.headers.location}".
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
    submitted: AnyCondition | None = None
    baseline: Request | Function | None = None
    probe: Request | Function | None = None
    redirect: str | None = None
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
            submitted: Condition | Callable[..., Any] | None = None,
            baseline: Request | Callable[..., Any] | None = None,
            probe: Request | Callable[..., Any] | None = None,
            redirect: str | None = None,
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
        found: Request | Function | Batch | None = getattr(self, kind)
        return found or self.poll

    @property
    def calls(self) -> dict[str, Request | Function | Batch]:
        """What is called, by the field's name, in the order of a job's life."""
        found = {name: getattr(self, name) for name in _CALLS}
        return {name: call for name, call in found.items() if call is not None}

    @cached_property
    def bounds(self) -> dict[CallKind, Micros]:
        """How long a call of each kind may take, whatever the time is."""
        return {kind: self._bound(self.target(kind)) for kind in CallKind}

    @cached_property
    def is_led(self) -> bool:
        """Whether the status URL moves with the answers: the URL of `poll` names `{poll…}`."""
        return isinstance(self.poll, Request) and "poll" in roots(self.poll.url)

    @cached_property
    def judged_roots(self) -> frozenset[str]:
        """The top-level names of the document that `until` reads."""
        return self.until.roots

    @cached_property
    def named(self) -> frozenset[str]:
        """The roots that placeholders of the calls name."""
        return frozenset[str]().union(*map(self._roots, self.calls.values()))

    @cached_property
    def reads_baseline(self) -> bool:
        """Whether anything reads the baseline; callables may."""
        read = self.until.roots.union(*(roots_of(path) for path in (self.result, self.progress, self.reason) if path))
        return "baseline" in read or bool(self.until.functions) or "baseline" in self.named

    @cached_property
    def is_forgetful(self) -> bool:
        """Whether no call and no condition reads anything of an earlier answer to a poll, unless that moved it elsewhere."""
        is_revalidated = isinstance(self.poll, Request) and self.poll.is_revalidated
        return not (self.reads_baseline or "poll" in self.named or is_revalidated)

    @cached_property
    def is_told_by_body(self) -> bool:
        """Whether the status and the body of an answer to a poll tell all that it means, each time anew."""
        read = self.until.roots | (frozenset() if self.progress is None else roots_of(self.progress))
        leads_on = self.redirect is not None or self.hints.path is not None
        return self.is_plain(_POLL) and self.is_forgetful and read.isdisjoint(MOVING) and not leads_on

    @property
    def functions(self) -> tuple[Function, ...]:
        """All callables that the spec names."""
        cancel = (self.cancel,) if isinstance(self.cancel, Function) else ()
        return (*self.polling_functions, *cancel, *self.then.values())

    @cached_property
    def polling_functions(self) -> tuple[Function, ...]:
        """The callables that whoever polls the job has to know."""
        called = (call for name, call in self.calls.items() if isinstance(call, Function) and name != "cancel")
        judging = self.until.functions if self.submitted is None else self.submitted.functions + self.until.functions
        return (*called, *judging, *self.strategy.functions)

    def is_plain(self, kind: CallKind) -> bool:
        """Whether an answer to such a call is judged, and the next wait set, without a callable."""
        judge = self.until if kind is _POLL else self.submitted
        return (judge is None or judge.is_plain) and not self.strategy.functions

    def is_walk(self, kind: CallKind) -> bool:
        """Whether judging an answer to such a call does no more than follow a path in it, however large it is."""
        return kind is _POLL and self._is_walk

    @cached_property
    def _is_walk(self) -> bool:
        told = [path for path in (self.progress, self.reason, self.hints.path) if path is not None]
        return self.is_plain(_POLL) and self.until.is_walk and all(map(is_path, told))

    def effort(self, kind: CallKind) -> int:
        """How many times over judging an answer to such a call may go through it."""
        judge = self.until if kind is _POLL else self.submitted
        told = sum(effort(path) for path in (self.progress, self.reason, self.hints.path) if path is not None)
        return told + (1 if judge is None else judge.effort)

    def _bound(self, call: Request | Function | Batch) -> Micros:
        request = call.request if isinstance(call, Batch) else call
        bound = request.total_timeout if isinstance(request, Request) else None
        return micros(self.limits.poll_timeout if bound is None else min(bound, self.limits.poll_timeout))

    @field_validator(*_CALLS, mode="before")
    @classmethod
    def _callable_by_name(cls, value: object) -> object:
        return _as_call(value)

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

    @field_validator("redirect")
    @classmethod
    def _leads_somewhere(cls, template: str | None) -> str | None:
        problem = None if template is None else url_template_problem(template)
        if template is not None and secret_names(template):
            problem = "names a secret, and a status URL is stored; a secret in the params of poll is sent there, too"
        if problem:
            raise ValueError(problem)
        return template

    @model_validator(mode="after")
    def _holds_together(self) -> JobSpec:
        for name in ("submitted", "baseline", "probe"):
            if self.submit is None and getattr(self, name) is not None:
                raise ValueError(f"{name}: needs a submit; add one, or leave it out")
        if not isinstance(self.poll, Request) and self.redirect is not None:
            raise ValueError("redirect: a callable or a batch has no status URL to move; let the poll find its own way")
        if isinstance(self.poll, Request) and "poll" in roots(self.poll.url) and secret_names(self.poll.url):
            raise ValueError("poll: its URL changes and is stored, and it names a secret; write that into params")
        return self

    @model_validator(mode="after")
    def _may_be_conditional(self) -> JobSpec:
        for name, call in self.calls.items():
            if isinstance(call, Request) and call.conditional:
                problem = refusal(call, self.until) if name == "poll" else "that is for poll alone; leave it out"
                if problem:
                    raise ValueError(f"{name}.conditional: {problem}")
        return self

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
        named = {name: self._roots(call) for name, call in self.calls.items()}
        if self.redirect is not None:
            named["redirect"] = roots(self.redirect)
        for name, found in named.items():
            for root in sorted(found & {*ANSWER_ROOTS, "batch"}):
                problem = self._unanswered(name, root)
                if problem:
                    raise ValueError(f"{name}: {{{root}…}} {problem}")
        return self

    def _unanswered(self, name: str, root: str) -> str | None:
        """Why an answer is not there when this call is made; None where it is."""
        if root == "batch":
            return "is filled in a Batch only; use {input…}, {submit…} or {key}"
        if root not in _ANSWERED_BEFORE.get(name, ANSWER_ROOTS):
            return f"is known only after the {name if name == 'submit' else 'job is polled'}; use {{input…}} or {{key}}"
        if root == "baseline":
            is_polled = name in {"redirect", "fetch", "cancel"}  # then there is a first answer
            return None if is_polled or self.baseline is not None else "needs a baseline; add that request"
        if self.submit is None and (root == "submit" or name == "poll"):
            return "needs a submit; add one, or write the URL with {input…} or {key}"
        return None


_ANSWERED_BEFORE: dict[str, frozenset[str]] = {
    "baseline": frozenset(),
    "submit": frozenset({"baseline"}),
    "probe": frozenset({"baseline"}),
}
"""The answers that are there when a call is made; all of them where nothing is said."""


def _as_call(value: object) -> object:
    """The call that data stands for, found by its shape, so that not every kind is tried.

    What is wrong in it is left for the union of the kinds to say.
    """
    if not isinstance(value, Mapping):
        return as_function(value)
    kind = Function if "function" in value else Batch if "request" in value else Request
    try:
        return kind(**value)
    except (SpecError, TypeError):
        return value


def _is_host(text: str) -> bool:
    """Whether this is all of a URL between the slashes: a name or an address, with a port or without."""
    whole = (f"https://{text}", f"https://[{text}]")  # an IPv6 address may come without its brackets
    return set(text).isdisjoint("/?#@") and not all(map(url_problem, whole))
