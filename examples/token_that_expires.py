"""A job behind a bearer token that ends before the job does. No poll is lost, and no token is stored.

The service answers 401 once a token has ended. The poll is made again with a fresh one, as soon as the floor of 1 s
allows. The function that gives the token is told by `refresh`, so that it signs in again in place of answering from
its cache. A script plays the service, and time jumps.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tarry import Fixed, JobSpec, Match, Poller, Request
from tarry.ports import Prepared
from tarry.testing import FakeClock, ScriptedJob

EXPORT = JobSpec(
    poll=Request("GET", "https://api.example.com/jobs/7", headers={"Authorization": "Bearer {secret.TOKEN}"}),
    until=Match("body.state", succeeded="DONE", pending="RUNNING"),
    strategy=Fixed("10s"),
)
CACHE: dict[str, str] = {}
ISSUED: list[str] = []


def token(name: str, *, refresh: bool = False) -> str:
    """Sign in when there is no token yet, or when the service no longer takes the one that there is."""
    if refresh or name not in CACHE:
        CACHE[name] = sign_in()
    return CACHE[name]


async def main(clock: FakeClock) -> None:
    """Seven good answers take three tokens; the two that came too late are polls, too."""
    async with Poller("sqlite://", transport=ScriptedJob([answer], clock=clock), clock=clock, secrets=token) as poller:
        result = await poller.await_job("export-7", EXPORT)
        print(f"{result.outcome} after {result.polls} polls in {result.elapsed}, with {len(ISSUED)} tokens")


def sign_in() -> str:
    """Stands for a call of the identity provider."""
    ISSUED.append(f"token-{len(ISSUED) + 1}")
    print("  signed in:", ISSUED[-1])
    return ISSUED[-1]


SEEN: Counter[str] = Counter()


def answer(request: Prepared) -> Any:
    """The service: each token is good for three polls, and the job for seven good answers."""
    bearer = dict(request.headers)["Authorization"].removeprefix("Bearer ")
    SEEN[bearer] += 1
    status = 200 if SEEN[bearer] <= 3 else 401
    print(f"  poll {SEEN.total()} with {bearer}: {status}")
    good = sum(min(uses, 3) for uses in SEEN.values())
    return {"state": "DONE" if good == 7 else "RUNNING"} if status == 200 else status


if __name__ == "__main__":
    virtual = FakeClock()
    virtual.run(main(virtual))
