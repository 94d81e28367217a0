"""The options of the commands: how each is written, and what help says of it."""

from __future__ import annotations

from typing import Annotated

import typer


def _value(metavar: str, text: str) -> object:
    return typer.Option(metavar=metavar, help=text, show_default=False)


# What every command shares.
Db = Annotated[str, typer.Option("--db", metavar="FILE|URL", help="The database: a file or a database URL.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]

# The job.
Url = Annotated[str | None, typer.Argument(metavar="URL", help="The status URL.", show_default=False)]
Until = Annotated[str | None, _value("PATH", "Where the status is in the answer, such as body.state.")]
Words = Annotated[list[str] | None, _value("WORD", "Statuses that mean so; repeat it, or separate with commas.")]
Every = Annotated[str | None, _value("DURATION", "The wait between polls: 2s, 5m, 1h30m.")]
Backoff = Annotated[str | None, _value("KIND", "How the wait grows: fixed, linear or exponential.")]
MaxEvery = Annotated[str | None, _value("DURATION", "The longest wait of a backoff.")]
MaxPolls = Annotated[int | None, _value("N", "At most N status calls, restarts included.")]
Timeout = Annotated[
    str | None, _value("DURATION", "The job's time from its creation, downtime included; 24h if not given.")
]
Key = Annotated[
    str | None,
    _value("KEY", "The name by which a later run finds the job; the URL if not given; needed with --submit-url."),
]
Spec = Annotated[str | None, _value("FILE", "A JobSpec as JSON or YAML instead of flags; - is stdin.")]
AllowCallables = Annotated[
    bool, typer.Option("--allow-callables", help="Call the functions that --spec names: trust FILE like a script.")
]
SubmitUrl = Annotated[str | None, _value("URL", "POST here first to start the job.")]
SubmitJson = Annotated[str | None, _value("JSON", "The body of that POST.")]
Idempotent = Annotated[
    bool, typer.Option("--idempotent", help="The service honours Idempotency-Key: a lost POST is sent again.")
]
Header = Annotated[
    list[str] | None, _value("'NAME: VALUE'", "{secret.NAME} is the environment variable NAME, and is never stored.")
]
Result = Annotated[str | None, _value("PATH", "What to print of the last answer, such as body.result.")]
Progress = Annotated[str | None, _value("PATH", "Where the progress is in the answer.")]

# The wait.
WaitTimeout = Annotated[str | None, _value("DURATION", "How long this command waits; the job lives on.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No report on the way.")]

# The trial.
DryRun = Annotated[bool, typer.Option("--dry-run", help="Send nothing: say what the job would make of --answers.")]
Answers = Annotated[str | None, _value("FILE", "A list of answers as JSON or YAML, for --dry-run; - is stdin.")]

# Looking.
Outcomes = Annotated[list[str] | None, _value("OUTCOME", "Only jobs that ended so; repeat it.")]
Prefix = Annotated[str, _value("TEXT", "Only keys that begin so.")]
Limit = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="At most this many.")]
KeyToShow = Annotated[str, typer.Argument(metavar="KEY", help="The job's key.")]

# Trying.
Code = Annotated[bool, typer.Option("--code", help="Print the program that the demo runs, and stop.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="The port on 127.0.0.1; 0 takes a free one.")]
Log = Annotated[str | None, _value("FILE", "Append each request as one line of JSON.")]

# Controlling.
Local = Annotated[bool, typer.Option("--local", help="Cancel it here only, at once: the remote job runs on.")]

# Working.
UntilIdle = Annotated[bool, typer.Option("--until-idle", help="Return when no job is left to poll.")]
Modules = Annotated[
    list[str] | None,
    typer.Option(
        "--import", metavar="MODULE", help="Import this first: it has callables that jobs name.", show_default=False
    ),
]
Concurrent = Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Calls to one host at once.")]
PerSecond = Annotated[float | None, _value("N", "Calls to one host a second.")]
KeepFinished = Annotated[
    str | None,
    _value("DURATION", "Forget jobs that have been over for longer than this: 30d; all are kept if not given."),
]
JsonLines = Annotated[bool, typer.Option("--json", help="Print each event as one line of JSON.")]
OlderThan = Annotated[str, typer.Option("--older-than", metavar="DURATION", help="Over for longer than this: 30d.")]
Polls = Annotated[int, typer.Option("--polls", metavar="N", min=1, max=1000, help="How many polls to show.")]
