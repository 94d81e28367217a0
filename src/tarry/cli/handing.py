"""From what typer read to the command: the world around it, the exit code after it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from tarry.cli import options
from tarry.cli.world import World, guarded

if TYPE_CHECKING:
    from tarry.cli.flags import Flags


def hand_over(ctx: typer.Context, command: Callable[[World], int]) -> None:
    """Run the command, and exit with its code."""
    world = ctx.obj if isinstance(ctx.obj, World) else World()
    raise typer.Exit(guarded(lambda: command(world)))


def of_a_job(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the flags that describe a job beside its own options; it gets them as `flags`."""
    own = [parameter for name, parameter in signature(command).parameters.items() if name != "flags"]
    described = signature(_flags).parameters.values()

    @wraps(command)
    def taking(**given: Any) -> None:
        flags = _flags(**{name: given.pop(name) for name in signature(_flags).parameters})
        command(**given, flags=flags)

    # The flags as a value are for the command, and not for typer; their module is loaded when they are needed.
    unread = {"Flags": object}
    hints = get_type_hints(_flags, None, unread, include_extras=True)
    hints |= get_type_hints(command, None, unread, include_extras=True)
    every = [p.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[p.name]) for p in (*own[:1], *described, *own[1:])]
    setattr(taking, "__signature__", signature(command).replace(parameters=every))  # noqa: B010  # what typer reads
    taking.__annotations__ = {parameter.name: parameter.annotation for parameter in every} | {"return": None}
    return taking


def _flags(
    url: options.Url = None,
    *,
    until: options.Until = None,
    succeeded: options.Words = None,
    failed: options.Words = None,
    pending: options.Words = None,
    cancelled: options.Words = None,
    blocked: options.Words = None,
    partial: options.Words = None,
    expired: options.Words = None,
    skipped: options.Words = None,
    every: options.Every = None,
    backoff: options.Backoff = None,
    max_every: options.MaxEvery = None,
    max_polls: options.MaxPolls = None,
    timeout: options.Timeout = None,
    key: options.Key = None,
    spec: options.Spec = None,
    allow_callables: options.AllowCallables = False,
    submit_url: options.SubmitUrl = None,
    submit_json: options.SubmitJson = None,
    idempotent: options.Idempotent = False,
    header: options.Header = None,
    result: options.Result = None,
    progress: options.Progress = None,
) -> Flags:
    from tarry.cli.flags import Flags, Pace, Submit, Words

    return Flags(
        url=url,
        until=until,
        words=Words(succeeded, failed, pending, cancelled, blocked, partial, expired, skipped),
        pace=Pace(every, backoff, max_every),
        max_polls=max_polls,
        timeout=timeout,
        key=key,
        spec=spec,
        allow_callables=allow_callables,
        submit=Submit(submit_url, submit_json, idempotent=idempotent),
        headers=tuple(header or ()),
        result=result,
        progress=progress,
    )
