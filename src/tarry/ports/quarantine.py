"""How a job that kills its process is told from those that only shared it.

When a process ends without giving its jobs back, each job that may have been called just
then gets a strike. One with `SUSPECT` strikes is called alone: its process makes no other call
meanwhile. If that process ends too, the strike is this job's alone, and at `CONVICTED` it is quarantined: nobody
calls it until a person resumes it. An answer that was committed clears all strikes.
"""

from __future__ import annotations

SUSPECT = 2
"""Strikes from which a job is called alone; processes that it shared with others give no more than these."""

CONVICTED = 4
"""Strikes at which it is quarantined: that many processes ended, the last two of them with it alone."""

QUARANTINED = 2
"""The `paused` of a job that nobody calls because it killed its process."""
