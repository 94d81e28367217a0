"""`tarry await`: wait for one job, report on the way, and exit with its outcome."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tarry.cli import database, endings
from tarry.cli.dry_run import dry_run_command
from tarry.cli.exits import Exit, UsageError, code_of
from tarry.cli.flags import Flags, key_of, seconds_or_text, spec_of
from tarry.cli.history import Cursor, cursor_after, whole_history
from tarry.cli.interrupts import interruptible
from tarry.cli.reporters import LiveReport, Reporter, reporter
from tarry.cli.text import as_json, plain, readable
from tarry.cli.world import World, complain, program, say
from tarry.core.durations import parse
from tarry.core.results import Job, JobResult
from tarry.core.spec import JobSpec
from tarry.errors import JobError, JobNotFound, WaitTimeout

if TYPE_CHECKING:
    from tarry.api import Poller


@dataclass(frozen=True, slots=True)
class How:
    """How to wait and to report: the database, the caller's patience, the form of the answer.

    `dry_run`: not at all, but to try the job on the `answers` of a file.
    """

    db: str = database.DEFAULT
    wait_timeout: str | None = None
    answers: str | None = None
    _: KW_ONLY
    as_json: bool = False
    quiet: bool = False
    dry_run: bool = False


def await_command(world: World, flags: Flags, how: How) -> int:
    """Wait for the job that the flags describe, or for a stored one; the exit code of how it ended."""
    if how.dry_run:
        return dry_run_command(world, flags, how.answers, as_json_array=how.as_json)
    if how.answers is not None:
        raise UsageError("--answers needs --dry-run: a job that is awaited is asked itself")
    waiting = _Waiting(world, flags, how)
    url = database.url_of(how.db, must_exist=waiting.spec is None)
    return world.run(waiting.run(url))


def _patience(text: str) -> timedelta:
    try:
        return parse(seconds_or_text(text))
    except ValueError as error:
        raise UsageError(f"--wait-timeout: {error}") from None


class _Waiting:
    """One wait, from the first look to the last line."""

    def __init__(self, world: World, flags: Flags, how: How) -> None:
        self._world = world
        self._key = key_of(flags)
        self.spec: JobSpec | None = spec_of(flags)
        self._spec_file = flags.spec
        self._how = how
        self._patience = None if how.wait_timeout is None else _patience(how.wait_timeout)
        self._stored = False

    async def run(self, url: str) -> int:
        """The exit code."""
        report = reporter(self._world.clock, quiet=self._how.quiet, to_stderr=self._how.as_json)
        with interruptible():
            try:
                async with self._world.poller(url) as poller:
                    return await self._wait(poller, report)
            except asyncio.CancelledError:
                return self._interrupted()

    async def _wait(self, poller: Poller, report: Reporter) -> int:
        after = await self._attach(poller)
        reporting = asyncio.create_task(report.follow(poller, self._key, after))
        waiting = asyncio.create_task(self._ended(poller))
        try:
            # Both end when the job is over. A pipe that broke or a patience that is over ends them at once.
            await asyncio.wait({reporting, waiting}, return_when=asyncio.FIRST_EXCEPTION)
            for one in (reporting, waiting):
                if one.done():
                    one.result()
            return self._tell(await waiting, live=isinstance(report, LiveReport))
        except WaitTimeout as late:
            reporting.cancel()
            await asyncio.gather(reporting, return_exceptions=True)
            await report.rest(poller, self._key)
            return self._late(late, await poller.get(self._key))
        finally:
            reporting.cancel()
            waiting.cancel()
            await asyncio.gather(reporting, waiting, return_exceptions=True)

    async def _ended(self, poller: Poller) -> JobResult[Any] | JobError:
        try:
            return await poller.await_job(self._key, self.spec, wait_timeout=self._patience)
        except JobError as error:
            return error

    async def _attach(self, poller: Poller) -> Cursor:
        """Make sure that the job is stored; where its report starts: at its beginning if it is new, else now."""
        try:
            job = await poller.get(self._key)
        except JobNotFound:
            if self.spec is None:
                raise
            await poller.add(self._key, self.spec)
            self._stored = True
            return (0, 0)
        self._stored = True
        self._say(endings.met(job))
        return cursor_after(await whole_history(poller, self._key))

    def _tell(self, ended: JobResult[Any] | JobError, *, live: bool) -> int:
        if isinstance(ended, JobError):
            complain(f"tarry: {plain(readable(str(ended)))}")
            self._answer(endings.error_json(ended))
            return code_of(ended)
        if not live:
            self._say(endings.summary(ended))
        if not self._how.as_json and ended.output is not None:
            say(as_json(ended.output, indent=2))
        self._answer(endings.result_json(ended))
        return code_of(ended.outcome)

    def _late(self, late: WaitTimeout, job: Job) -> int:
        complain(f"tarry: {endings.late(job)}; the job lives on, go on with: {self._again()}")
        self._answer(endings.open_json(self._key, "wait_timeout", job))
        return code_of(late)

    def _interrupted(self) -> int:
        if self._stored:
            complain(f"tarry: interrupted; the job lives on, go on with: {self._again()}")
        else:
            complain("tarry: interrupted before the job was stored; nothing was sent")
        self._answer(endings.open_json(self._key, "interrupted"))
        return Exit.INTERRUPTED

    def _answer(self, answer: dict[str, Any]) -> None:
        if self._how.as_json:
            say(as_json(answer))

    def _say(self, text: str) -> None:
        if not self._how.quiet:
            (complain if self._how.as_json else say)(text)

    def _again(self) -> str:
        """The command that goes on: the spec is stored, so the key and the database are enough.

        Not for callables: nothing that comes from a database is imported.
        """
        command = [program(), "await", "--key", self._key, "--db", database.shown(self._how.db)]
        if self.spec is not None and self.spec.functions:
            command += ["--spec", str(self._spec_file), "--allow-callables"]
        return shlex.join(command)
