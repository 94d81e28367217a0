"""A person at the controls: nudges, pauses and updates at any moment, from another process, break no promise."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tarry import Fixed, Limits, Outcome
from tarry.testing import Answer
from tarry.words import SECOND
from tests.worlds import STATE, Scene, spec_of

FLOOR = "2s"
LONG = 3 * SECOND
RUNNING = {"state": "RUNNING"}


def change(poller: Any, what: str) -> Any:
    """The command, as a person gives it."""
    slow = {"strategy": Fixed("9s"), "limits": Limits(min_interval=FLOOR, total_duration="1h", max_polls=12)}
    match what:
        case "nudge":
            return poller.nudge("orders")
        case "pause":
            return poller.pause("orders")
        case "resume":
            return poller.resume("orders")
        case _:
            return poller.update("orders", **slow)


COMMANDS = st.lists(
    st.tuples(
        st.integers(0, 4_000).map(lambda ms: ms / 1_000), st.sampled_from(["nudge", "pause", "resume", "update"])
    ),
    max_size=6,
)
ANSWERS = st.lists(
    st.builds(
        lambda code, delay: Answer(code, RUNNING, delay=delay),
        st.sampled_from([200, 200, 500]),
        st.sampled_from([0, LONG]),
    ),
    max_size=6,
)


@settings(max_examples=25)
@given(ANSWERS, COMMANDS)
def test_commands_break_no_promise(answers: list[Answer], commands: list[tuple[float, str]]) -> None:
    """Every poll is counted, the floor holds, no answer is lost, and the job ends well once it is not paused."""
    done = Answer(200, {"state": "DONE"})
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:  # noqa: S108  # a folder of its own
        world = Scene([*answers, done], folder=Path(folder))

        async def main() -> Any:
            holder, person = world.process(), world.process()
            limits = Limits(min_interval=FLOOR, max_polls=12, total_duration="1h")
            ending = await holder.awaiting("orders", spec_of(until=STATE, strategy=Fixed("4s"), limits=limits))
            async with person.poller as poller:
                await world.after(0.001)
                for pause, what in commands:
                    await world.after(pause)
                    job = await change(poller, what)
                    assert job.polls + job.reserved <= 12
                await poller.resume("orders")
                ended = await ending
                job, events = await poller.get("orders"), await poller.history("orders")
            await holder.poller.__aexit__(None, None, None)
            return ended, job, events

        try:
            ended, job, events = world.run(main)
        finally:
            world.close()
    starts = [seen.at for seen in world.job.requests]
    assert all(later - sooner >= 2 * SECOND for sooner, later in pairwise(starts))
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, world.job.polls)
    assert world.job.polls == len(answers) + 1
    assert [event.kind for event in events].count("finished") == 1
    assert job.paused is False
