"""The vocabulary: what everyone may name, one meaning each.

Instants and spans of time are integers of microseconds. An `Instant` counts
from 1970-01-01T00:00:00Z; a `Micros` is a span. Integers compare, add and
survive storage exactly, at any size.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

Instant: TypeAlias = int
"""Microseconds since 1970-01-01T00:00:00Z."""

Micros: TypeAlias = int
"""A span of time in microseconds."""

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A value that JSON can hold."""

MILLISECOND: Micros = 1_000
SECOND: Micros = 1_000_000
MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
DAY: Micros = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(span: timedelta) -> Micros:
    """The span as whole microseconds, exactly."""
    return span // _MICROSECOND


def span(value: Micros) -> timedelta:
    """The microseconds as a `timedelta`."""
    return timedelta(microseconds=value)


def moment(value: Instant) -> datetime:
    """The instant as an aware UTC `datetime`; `OverflowError` outside of the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=value)


def instant(value: datetime) -> Instant:
    """The aware `datetime` as an instant."""
    return (value - _EPOCH) // _MICROSECOND


class Verdict(StrEnum):
    """What a condition says of one observation."""

    PENDING = "pending"
    BLOCKED = "blocked"
    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    SKIPPED = "skipped"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    NOT_FOUND = "not_found"
    TRANSIENT = "transient"
    REDIRECT = "redirect"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """How a job ended: terminal, written once."""

    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    SKIPPED = "skipped"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    LOST = "lost"
    TIMED_OUT = "timed_out"
    EXHAUSTED = "exhausted"
    UNREACHABLE = "unreachable"
    SUBMIT_UNKNOWN = "submit_unknown"
    INVALID = "invalid"

    @property
    def is_success(self) -> bool:
        """Whether `await_job` returns (succeeded, partial, skipped) or raises."""
        return self in _SUCCESSES


_SUCCESSES = frozenset({Outcome.SUCCEEDED, Outcome.PARTIAL, Outcome.SKIPPED})


class CallKind(StrEnum):
    """What a call to the remote service is for."""

    SUBMIT = "submit"
    POLL = "poll"
    BASELINE = "baseline"
    """For how things were before the submit."""
    PROBE = "probe"
    """For the job of a submit whose answer was lost."""
    CANCEL = "cancel"
    FETCH = "fetch"
    """For the result of a job that ended well; not a poll, and not counted as one."""


class Phase(StrEnum):
    """Where a job stands between two calls."""

    PREPARING = "preparing"
    """The baseline is not taken yet; the next call is for it, and the submit comes after."""
    SUBMITTING = "submitting"
    """Not submitted yet, or not known to be; the next call is a submit."""
    SENDING = "sending"
    """A submit was about to leave when this was committed: its answer is not known."""
    PROBING = "probing"
    """The submit's answer was lost; the next call looks for its job."""
    WAITING = "waiting"
    """The remote job is under way; the next call is a poll."""
    BLOCKED = "blocked"
    """As waiting, but the remote job waits for a person."""
    DONE = "done"
    """Terminal: the outcome is set."""


class DeliveryKind(StrEnum):
    """What is to be done for a job by whichever worker comes first."""

    CANCEL = "cancel"
    """To cancel the remote job: at most once."""
    THEN = "then"
    """To call what the spec's `then` names for the outcome: at least once."""


class DeliveryState(StrEnum):
    """How far that has come."""

    PENDING = "pending"
    DONE = "done"
    DEAD = "dead"
    """Not done, and not tried any more: for a person to look at."""


class ErrorKind(StrEnum):
    """Why a call brought no usable answer."""

    CONNECT = "connect"
    """Refused, unreachable, DNS, TLS, connect timeout: no byte of the request left."""
    TIMEOUT = "timeout"
    """The call took longer than its bound; bytes may have left."""
    PROTOCOL = "protocol"
    """The connection broke, or what came was not HTTP; bytes may have left."""
    POOL = "pool"
    """The local connection pool was full: congestion here, not there."""
    TOO_LARGE = "too_large"
    """The body, decoded, passed the bound."""
    BAD_BODY = "bad_body"
    """The condition reads the body, and it is not JSON (or too deep, or broken)."""
    HTTP_STATUS = "http_status"
    """A status that the condition does not judge."""
    REDIRECT = "redirect"
    """A redirect that nothing in the spec judges, or one that leaves the origin."""
    REFUSED = "refused"
    """Refused here before sending: origin rule, missing secret or template value."""
    CALLABLE = "callable"
    """The polled callable raised."""
    CONDITION = "condition"
    """The condition raised while it judged."""
    REPORTED = "reported"
    """The condition called the answer transient."""


class WaitSource(StrEnum):
    """What set the length of a wait."""

    START = "start"
    STRATEGY = "strategy"
    STRATEGY_ERROR = "strategy_error"
    """The strategy is a callable and raised: the default strategy stood in."""
    MAXIMUM = "maximum"
    HINT = "hint"
    HINT_BOUND = "hint_bound"
    FLOOR = "floor"
    AT_ONCE = "at_once"
    """Nothing but the floor: the status URL moved, or fresh credentials are to be tried."""
    ERROR_BACKOFF = "error_backoff"
    DEADLINE = "deadline"
    NUDGE = "nudge"
    STAGGER = "stagger"
