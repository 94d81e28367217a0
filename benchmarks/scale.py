"""How large a run is: full, or tiny to see that everything still runs."""

from __future__ import annotations

from dataclasses import dataclass


class Skipped(Exception):
    """This cannot be measured here; says why."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The sizes of a run.

    - `jobs`: polled as fast as it goes, `in_flight` of them at a time.
    - `seconds`: how long a window of measuring is; `warm`: the longest wait before it.
    - `paced`: jobs that are each polled every `pace` seconds.
    - `few`, `some`, `many`: jobs that only wait in the store.
    - `awaited`: jobs whose memory is weighed.
    - `overdue`: jobs that were due while nothing ran.
    - `nap`: seconds that a peer's jobs sleep before they are overdue: all of them have to start meanwhile.
    - `calls`: single waits, one after another.
    """

    jobs: int = 1_000
    in_flight: int = 64
    seconds: float = 4
    warm: float = 60
    hosts: int = 1_000
    paced: int = 10_000
    pace: float = 5
    few: int = 1_000
    some: int = 10_000
    many: int = 1_000_000
    awaited: int = 10_000
    overdue: int = 1_000
    nap: float = 60
    calls: int = 200


FULL = Scale()

TINY = Scale(
    jobs=20,
    seconds=0.2,
    warm=10,
    hosts=10,
    paced=40,
    pace=0.2,
    few=20,
    some=40,
    many=80,
    awaited=50,
    overdue=10,
    nap=2,
    calls=5,
)
