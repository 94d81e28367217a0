"""After a downtime: what is overdue is polled one after another, not all at once.

Each job's place in the spread follows from its key alone, so that it is the same in
every process and at every restart, and jobs with the same cadence come apart. A few
overdue jobs are no storm, and a job whose deadline is near has no time to lose: those are
polled at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from tarry.ports import JobRow
from tarry.words import SECOND, Instant, Micros

LATE: Micros = 2 * SECOND
"""A job is overdue when it is later than a worker that runs would be."""

PER_SECOND = 20
"""How many overdue jobs are polled in a second."""

LONGEST: Micros = 30 * SECOND
"""However many they are, they are spread over no more than this."""

MOST = PER_SECOND * LONGEST // SECOND
"""More overdue jobs than these make no difference."""

_FEW = 10


@dataclass(frozen=True, slots=True)
class Stagger:
    """The spread of the jobs that were overdue at `began`; `overdue` is how many, up to `MOST`."""

    began: Instant
    overdue: int

    @property
    def spread(self) -> Micros:
        """Over how long they are spread."""
        return 0 if self.overdue <= _FEW else min(self.overdue * SECOND // PER_SECOND, LONGEST)

    def start(self, row: JobRow) -> Instant | None:
        """When to poll this job; None where its own due time holds."""
        is_overdue = row.due is not None and row.due <= self.began - LATE
        is_urgent = row.deadline is not None and row.deadline <= self.began + 2 * self.spread
        if not self.spread or not is_overdue or is_urgent:
            return None
        drawn = blake2b(row.key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return self.began + int.from_bytes(drawn, "big") % self.spread
