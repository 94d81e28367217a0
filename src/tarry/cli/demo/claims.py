"""What the demo claims, each checked against what its witnesses saw."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tarry.cli.demo.story import Story
from tarry.cli.text import count
from tarry.words import SECOND, Micros, Outcome

FLOOR: Micros = SECOND
SLACK: Micros = SECOND // 10
"""Two requests a second apart may reach a busy service this much closer together."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence, and whether it holds."""

    text: str
    holds: bool


def claims(story: Story) -> Sequence[Claim]:
    """Every claim, in the order of the story."""
    first, second, job = story.first, story.second, story.job
    gets = len(story.polls)
    return [
        Claim("process 1 was killed with SIGKILL half-way", first.exit_code == -signal.SIGKILL),
        Claim(
            "process 2 went on with the same job and returned its result",
            second.exit_code == 0 and job.outcome is Outcome.SUCCEEDED and bool(second.printed),
        ),
        Claim(
            f"the service created {count(story.jobs_created, 'job')} for {count(len(story.submits), 'submit')}",
            story.jobs_created == 1 and len(story.submits) == 1,
        ),
        Claim(f"it saw {count(gets, 'poll')}; the database counts {job.polls}{_why(story)}", 2 < gets <= job.polls),
        Claim("no two polls came closer than the floor of 1s, the kill included", closest(story) >= FLOOR - SLACK),
    ]


def _why(story: Story) -> str:
    spare = story.job.polls - len(story.polls)
    return " (one that process 1 was permitted, and died before, counts as spent)" if spare == 1 else ""


def closest(story: Story) -> Micros:
    """The shortest time between two polls, as the service saw them."""
    return min((later.at - earlier.at for earlier, later in pairwise(story.polls)), default=0)
