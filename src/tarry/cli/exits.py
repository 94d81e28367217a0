"""Exit codes: one meaning each, for scripts."""

from __future__ import annotations

from enum import IntEnum

from tarry.errors import (
    JobError,
    JobNotFound,
    KeyConflict,
    ResultUnavailable,
    SpecError,
    StoreError,
    WaitTimeout,
)
from tarry.words import Outcome


class UsageError(ValueError):
    """The command line cannot be carried out as written; the text says what to write instead."""


class DatabaseError(ValueError):
    """The database named on the command line cannot be used."""


class OutputError(OSError):
    """Stdout or stderr does not take what is written to it, such as a file on a full disk."""


class Exit(IntEnum):
    """What the shell sees."""

    OK = 0
    """The job succeeded, partly succeeded or was skipped; or there was nothing to wait for."""
    FAILED = 1
    """The service says that the job failed or expired; a demo whose claims did not hold; a doctor who found an error."""
    USAGE = 2
    """The command line, the key or the spec is wrong; or the condition answered no verdict (invalid)."""
    TIMED_OUT = 3
    """A limit or the caller's patience ran out."""
    TROUBLE = 4
    """Unreachable, lost, a submit of unknown fate, a result that cannot be fetched, or trouble with the database or the output."""
    CANCELLED = 5
    """The job was cancelled."""
    INTERRUPTED = 130
    """SIGINT or SIGTERM; the job lives on."""
    BROKEN_PIPE = 141
    """The reader of the output went away (128 + SIGPIPE); the job lives on."""


_BY_OUTCOME = {
    Outcome.SUCCEEDED: Exit.OK,
    Outcome.PARTIAL: Exit.OK,
    Outcome.SKIPPED: Exit.OK,
    Outcome.FAILED: Exit.FAILED,
    Outcome.EXPIRED: Exit.FAILED,
    Outcome.INVALID: Exit.USAGE,
    Outcome.TIMED_OUT: Exit.TIMED_OUT,
    Outcome.EXHAUSTED: Exit.TIMED_OUT,
    Outcome.UNREACHABLE: Exit.TROUBLE,
    Outcome.LOST: Exit.TROUBLE,
    Outcome.SUBMIT_UNKNOWN: Exit.TROUBLE,
    Outcome.CANCELLED: Exit.CANCELLED,
}

EXPECTED = (UsageError, DatabaseError, OutputError, SpecError, JobError, WaitTimeout, StoreError)
"""Errors that have an exit code; anything else is a fault of ours and may show its traceback."""


def code_of(found: Outcome | BaseException) -> Exit:
    """The exit code of an outcome, or of an error in `EXPECTED`."""
    match found:
        case Outcome():
            return _BY_OUTCOME[found]
        case ResultUnavailable():
            return Exit.TROUBLE
        case JobError():
            return _BY_OUTCOME[found.outcome]
        case WaitTimeout():
            return Exit.TIMED_OUT
        # A key that is not there, or is another job's, is a slip of the person who typed it.
        case UsageError() | SpecError() | KeyConflict() | JobNotFound():
            return Exit.USAGE
        case _:
            return Exit.TROUBLE
