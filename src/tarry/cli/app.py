"""The commands and their options; each body only hands over."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated

import typer

from tarry.cli import options
from tarry.cli.database import DEFAULT
from tarry.cli.exits import Exit
from tarry.cli.world import World, guarded, say

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    name="tarry",
    help="Await remote jobs: polls politely, checkpoints before every sleep, resumes after a crash.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _run(ctx: typer.Context, command: Callable[[World], int]) -> None:
    world = ctx.obj if isinstance(ctx.obj, World) else World()
    raise typer.Exit(guarded(lambda: command(world)))


def _show_version(wanted: bool) -> None:  # noqa: FBT001  # the signature that typer calls
    if wanted:
        raise typer.Exit(guarded(_tell_version))


def _tell_version() -> int:
    try:
        say(f"tarry {version('tarry')}")
    except PackageNotFoundError:
        say("tarry (not installed)")
    return Exit.OK


@app.callback()
def main(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Await remote jobs: polls politely, checkpoints before every sleep, resumes after a crash."""


@app.command("await")
def await_(
    ctx: typer.Context,
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
    wait_timeout: options.WaitTimeout = None,
    key: options.Key = None,
    db: options.Db = DEFAULT,
    spec: options.Spec = None,
    allow_callables: options.AllowCallables = False,
    submit_url: options.SubmitUrl = None,
    submit_json: options.SubmitJson = None,
    idempotent: options.Idempotent = False,
    header: options.Header = None,
    result: options.Result = None,
    progress: options.Progress = None,
    dry_run: options.DryRun = False,
    answers: options.Answers = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Wait for a remote job; the same key resumes the same job, also after a kill.

    With --key alone, goes on with a stored job. Exit codes: 0 succeeded, 1 failed,
    2 wrong usage or no verdict, 3 timed out, 4 unreachable, lost or trouble with the database
    or the output, 5 cancelled, 130 interrupted (the job lives on).
    """
    from tarry.cli.await_ import How, await_command
    from tarry.cli.flags import Flags, Pace, Submit, Words

    flags = Flags(
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
    how = How(db, wait_timeout, answers, as_json=as_json, quiet=quiet, dry_run=dry_run)
    _run(ctx, lambda world: await_command(world, flags, how))


@app.command("list")
def list_(
    ctx: typer.Context,
    *,
    db: options.Db = DEFAULT,
    outcome: options.Outcomes = None,
    prefix: options.Prefix = "",
    limit: options.Limit = 100,
    as_json: options.Json = False,
) -> None:
    """List the jobs in a database, oldest first."""
    from tarry.cli.show import Filter, list_command

    wanted = Filter(outcomes=tuple(outcome or ()), prefix=prefix, limit=limit)
    _run(ctx, lambda world: list_command(world, db, wanted, as_json_array=as_json))


@app.command()
def show(
    ctx: typer.Context, key: options.KeyToShow, *, db: options.Db = DEFAULT, as_json: options.Json = False
) -> None:
    """Show one job: state, limits, the timeline of its polls, its events, its output."""
    from tarry.cli.show import show_command

    _run(ctx, lambda world: show_command(world, key, db, as_json_object=as_json))


@app.command()
def schema(ctx: typer.Context) -> None:
    """Print the JSON Schema of a spec file, for editors."""
    from tarry.cli.schema import schema_command

    _run(ctx, lambda _: schema_command())


@app.command()
def demo(ctx: typer.Context, *, code: options.Code = False) -> None:
    """Kill a waiting process half-way, start it again, and see that nothing was lost or sent twice."""
    from tarry.cli.demo import demo_command

    _run(ctx, lambda world: demo_command(world, only_code=code))


@app.command()
def stub(ctx: typer.Context, *, port: options.Port = 8089, log: options.Log = None) -> None:
    """Run a job service on loopback to try things against."""
    from tarry.cli.stub import stub_command

    _run(ctx, lambda _: stub_command(port, log))
