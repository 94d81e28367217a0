"""The commands and their options; each body only hands over."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated

import typer

from tarry.cli.world import World, guarded

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

Db = Annotated[str, typer.Option("--db", metavar="FILE|URL", help="The database: a file or a database URL.")]
Words = Annotated[list[str] | None, typer.Option(metavar="WORD", help="Repeat it, or separate with commas.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


def _run(ctx: typer.Context, command: Callable[[World], int]) -> None:
    world = ctx.obj if isinstance(ctx.obj, World) else World()
    raise typer.Exit(guarded(lambda: command(world)))


def _show_version(wanted: bool) -> None:  # noqa: FBT001  # the signature that typer calls
    if wanted:
        try:
            typer.echo(f"tarry {version('tarry')}")
        except PackageNotFoundError:
            typer.echo("tarry (not installed)")
        raise typer.Exit


@app.callback()
def main(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Await remote jobs: polls politely, checkpoints before every sleep, resumes after a crash."""


@app.command("await")
def await_(  # noqa: PLR0913  # each argument is an option of the command line
    ctx: typer.Context,
    url: Annotated[str | None, typer.Argument(metavar="[URL]", help="The status URL.", show_default=False)] = None,
    *,
    until: Annotated[str | None, typer.Option(metavar="PATH", help="Where the status is, such as body.state.")] = None,
    succeeded: Words = None,
    failed: Words = None,
    pending: Words = None,
    cancelled: Words = None,
    blocked: Words = None,
    partial: Words = None,
    expired: Words = None,
    skipped: Words = None,
    every: Annotated[
        str | None, typer.Option(metavar="DURATION", help="The wait between polls: 2s, 5m, 1h30m.")
    ] = None,
    backoff: Annotated[str | None, typer.Option(metavar="KIND", help="fixed, linear or exponential.")] = None,
    max_every: Annotated[str | None, typer.Option(metavar="DURATION", help="The longest wait of a backoff.")] = None,
    max_polls: Annotated[
        int | None, typer.Option(metavar="N", help="At most N status calls, restarts included.")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="The job's time from its creation, downtime included [24h].")
    ] = None,
    wait_timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long this command waits; the job lives on.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="The name by which a later run finds the job; by default the URL.")
    ] = None,
    db: Db = "tarry.db",
    spec: Annotated[
        str | None, typer.Option(metavar="FILE", help="A JSON JobSpec instead of flags; - is stdin.")
    ] = None,
    submit_url: Annotated[str | None, typer.Option(metavar="URL", help="POST here first to start the job.")] = None,
    submit_json: Annotated[str | None, typer.Option(metavar="JSON", help="The body of that POST.")] = None,
    idempotent: Annotated[
        bool, typer.Option("--idempotent", help="The service honours Idempotency-Key: a lost POST is sent again.")
    ] = False,
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="'NAME: VALUE'", help="{secret.NAME} is the environment variable NAME, never stored."),
    ] = None,
    result: Annotated[str | None, typer.Option(metavar="PATH", help="What to print of the last answer.")] = None,
    progress: Annotated[str | None, typer.Option(metavar="PATH", help="Where the progress is.")] = None,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No report on the way.")] = False,
) -> None:
    """Wait for a remote job. The same key resumes the same job, also after a kill.

    With --key alone, goes on with a stored job. Exit codes: 0 succeeded, 1 failed,
    2 wrong usage, 3 timed out, 4 unreachable, lost or database trouble,
    5 cancelled, 130 interrupted (the job lives on).
    """
    from tarry.cli.await_ import How, await_command
    from tarry.cli.flags import Flags

    words = {
        "succeeded": succeeded,
        "failed": failed,
        "pending": pending,
        "cancelled": cancelled,
        "blocked": blocked,
        "partial": partial,
        "expired": expired,
        "skipped": skipped,
    }
    flags = Flags(
        url=url,
        until=until,
        verdicts=tuple((verdict, tuple(given)) for verdict, given in words.items() if given),
        every=every,
        backoff=backoff,
        max_every=max_every,
        max_polls=max_polls,
        timeout=timeout,
        key=key,
        spec=spec,
        submit_url=submit_url,
        submit_json=submit_json,
        idempotent=idempotent,
        headers=tuple(header or ()),
        result=result,
        progress=progress,
    )
    how = How(db=db, wait_timeout=wait_timeout, as_json=as_json, quiet=quiet)
    _run(ctx, lambda world: await_command(world, flags, how))


@app.command("list")
def list_(
    ctx: typer.Context,
    *,
    db: Db = "tarry.db",
    outcome: Annotated[list[str] | None, typer.Option(metavar="OUTCOME", help="Only these; repeat it.")] = None,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Only keys that begin so.")] = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="At most this many.")] = 100,
    as_json: Json = False,
) -> None:
    """List the jobs in a database, oldest first."""
    from tarry.cli.show import Filter, list_command

    wanted = Filter(outcomes=tuple(outcome or ()), prefix=prefix, limit=limit)
    _run(ctx, lambda world: list_command(world, db, wanted, as_json_array=as_json))


@app.command()
def show(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The job's key.")],
    *,
    db: Db = "tarry.db",
    as_json: Json = False,
) -> None:
    """Show one job: state, limits, the timeline of its polls, its events, its output."""
    from tarry.cli.show import show_command

    _run(ctx, lambda world: show_command(world, key, db, as_json_object=as_json))


@app.command()
def demo(
    ctx: typer.Context,
    *,
    code: Annotated[bool, typer.Option("--code", help="Print the program that the demo runs, and stop.")] = False,
) -> None:
    """Kill a waiting process half-way, start it again, and see that nothing was lost or sent twice."""
    from tarry.cli.demo import demo_command

    _run(ctx, lambda world: demo_command(world, only_code=code))


@app.command()
def stub(
    ctx: typer.Context,
    *,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port on 127.0.0.1; 0 picks a free one.")] = 8089,
    log: Annotated[str | None, typer.Option(metavar="FILE", help="Write each request as one line of JSON.")] = None,
) -> None:
    """Run a job service on loopback to try things against."""
    from tarry.cli.stub import stub_command

    _run(ctx, lambda _: stub_command(port, log))
