"""The commands and their options; each body only hands over."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated

import typer

from tarry.cli import options
from tarry.cli.database import DEFAULT
from tarry.cli.exits import Exit
from tarry.cli.handing import hand_over, of_a_job
from tarry.cli.world import guarded, say

if TYPE_CHECKING:  # it needs pydantic, and the help does not
    from tarry.cli.flags import Flags

app = typer.Typer(
    name="tarry",
    help="Await remote jobs: polls politely, checkpoints before every sleep, resumes after a crash.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
@of_a_job
def await_(
    ctx: typer.Context,
    *,
    flags: Flags,
    wait_timeout: options.WaitTimeout = None,
    db: options.Db = DEFAULT,
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

    how = How(db, wait_timeout, answers, as_json=as_json, quiet=quiet, dry_run=dry_run)
    hand_over(ctx, lambda world: await_command(world, flags, how))


@app.command()
@of_a_job
def submit(ctx: typer.Context, *, flags: Flags, db: options.Db = DEFAULT, as_json: options.Json = False) -> None:
    """Store a job and return at once.

    `tarry run` polls it, or whoever awaits it: `tarry await --key KEY`. The same key and job again changes nothing.
    """
    from tarry.cli.submit import submit_command

    hand_over(ctx, lambda world: submit_command(world, flags, db, as_json_object=as_json))


@app.command()
@of_a_job
def plan(ctx: typer.Context, *, flags: Flags, polls: options.Polls = 10, as_json: options.Json = False) -> None:
    """Show the polls to come and the worst case."""
    from tarry.cli.plan import plan_command

    hand_over(ctx, lambda _: plan_command(flags, polls, as_json_object=as_json))


@app.command()
def run(
    ctx: typer.Context,
    *,
    db: options.Db = DEFAULT,
    until_idle: options.UntilIdle = False,
    modules: options.Modules = None,
    concurrent: options.Concurrent = 16,
    per_second: options.PerSecond = None,
    keep_finished: options.KeepFinished = None,
    as_json: options.JsonLines = False,
    quiet: options.Quiet = False,
) -> None:
    """Poll the jobs in a database until stopped: a worker.

    Several may share a database. SIGINT and SIGTERM let calls under way end (5 s), give all jobs back, and
    exit with 0; a second one does not wait.
    """
    from tarry.cli.run import Work, run_command

    work = Work(db, tuple(modules or ()), concurrent, per_second, keep_finished, until_idle=until_idle)
    hand_over(ctx, lambda world: run_command(world, work, as_json_lines=as_json, quiet=quiet))


@app.command()
def watch(
    ctx: typer.Context, key: options.KeyToShow, *, db: options.Db = DEFAULT, as_json: options.JsonLines = False
) -> None:
    """Tell what happens to a job until it is over.

    Whoever polls it: this command does not. The exit code is that of `await`.
    """
    from tarry.cli.watch import watch_command

    hand_over(ctx, lambda world: watch_command(world, key, db, as_json_lines=as_json))


@app.command()
def cancel(
    ctx: typer.Context,
    key: options.KeyToShow,
    *,
    local: options.Local = False,
    db: options.Db = DEFAULT,
    as_json: options.Json = False,
) -> None:
    """Ask the service to cancel a job, as its spec says; one without a `cancel` is cancelled here.

    A job that the service was asked to cancel is polled on until it says how it ended. One that is over stays so.
    """
    from tarry.cli.control import control_command

    hand_over(
        ctx,
        lambda world: control_command(
            world, lambda poller: poller.cancel(key, remote=not local), db, as_json_object=as_json
        ),
    )


@app.command()
def nudge(
    ctx: typer.Context, key: options.KeyToShow, *, db: options.Db = DEFAULT, as_json: options.Json = False
) -> None:
    """Poll a job as soon as its floor permits, whoever polls it."""
    from tarry.cli.control import control_command

    hand_over(ctx, lambda world: control_command(world, lambda poller: poller.nudge(key), db, as_json_object=as_json))


@app.command()
def pause(
    ctx: typer.Context, key: options.KeyToShow, *, db: options.Db = DEFAULT, as_json: options.Json = False
) -> None:
    """Stop polling a job until it is resumed; its deadline goes on."""
    from tarry.cli.control import control_command

    hand_over(ctx, lambda world: control_command(world, lambda poller: poller.pause(key), db, as_json_object=as_json))


@app.command()
def resume(
    ctx: typer.Context, key: options.KeyToShow, *, db: options.Db = DEFAULT, as_json: options.Json = False
) -> None:
    """Poll a paused job again."""
    from tarry.cli.control import control_command

    hand_over(ctx, lambda world: control_command(world, lambda poller: poller.resume(key), db, as_json_object=as_json))


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
    hand_over(ctx, lambda world: list_command(world, db, wanted, as_json_array=as_json))


@app.command()
def show(
    ctx: typer.Context, key: options.KeyToShow, *, db: options.Db = DEFAULT, as_json: options.Json = False
) -> None:
    """Show one job: state, limits, the timeline of its polls, its events, its output."""
    from tarry.cli.show import show_command

    hand_over(ctx, lambda world: show_command(world, key, db, as_json_object=as_json))


@app.command()
def prune(
    ctx: typer.Context, *, older_than: options.OlderThan, db: options.Db = DEFAULT, as_json: options.Json = False
) -> None:
    """Forget jobs that have been over for long."""
    from tarry.cli.prune import prune_command

    hand_over(ctx, lambda world: prune_command(world, older_than, db, as_json_object=as_json))


@app.command("db")
def db_(ctx: typer.Context, *, db: options.Db = DEFAULT, as_json: options.Json = False) -> None:
    """Look at the database, and change nothing.

    Where it is, whether its schema fits this version, and how many jobs and workers it holds.
    """
    from tarry.cli.about import about_command

    hand_over(ctx, lambda _: about_command(db, as_json_object=as_json))


@app.command()
def doctor(ctx: typer.Context, *, db: options.Db = DEFAULT, as_json: options.Json = False) -> None:
    """Look for what is wrong with the database and the jobs in it, and say what to do.

    It changes nothing. Exit codes: 0 when nothing is wrong (there may be notes and warnings), 1 when something is.
    """
    from tarry.cli.doctor import doctor_command

    hand_over(ctx, lambda world: doctor_command(world, db, as_json_object=as_json))


@app.command()
def schema(ctx: typer.Context) -> None:
    """Print the JSON Schema of a spec file, for editors."""
    from tarry.cli.schema import schema_command

    hand_over(ctx, lambda _: schema_command())


@app.command()
def demo(ctx: typer.Context, *, code: options.Code = False) -> None:
    """Kill a waiting process half-way, start it again, and see that nothing was lost or sent twice."""
    from tarry.cli.demo import demo_command

    hand_over(ctx, lambda world: demo_command(world, only_code=code))


@app.command()
def stub(ctx: typer.Context, *, port: options.Port = 8089, log: options.Log = None) -> None:
    """Run a job service on loopback to try things against."""
    from tarry.cli.stub import stub_command

    hand_over(ctx, lambda _: stub_command(port, log))
