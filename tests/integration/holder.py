"""A process that holds a job in the database it is told, says so, and waits to be killed.

    python holder.py DATABASE MODE

MODE `hold` holds; `fork` also leaves a forked child behind; `use-after-fork` uses
the store in a forked child and prints what it is told.
"""

from __future__ import annotations

import os
import sys

from tarry.errors import StoreError
from tarry.store import SqlStore
from tests.contract.bench import START, TTL, grip, held


def say(words: str) -> None:
    """One line for the test that started this."""
    print(words, flush=True)


def main(database: str, mode: str) -> None:
    """Hold the job `orders` with its permit reserved, until stdin ends."""
    store = SqlStore(f"sqlite:///{database}")
    store.open(START)
    row = held(store, uuid=f"holder-{os.getpid()}")
    store.reserve([grip(row)])
    if mode == "use-after-fork":
        use_after_fork(store)
    elif mode == "fork" and os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
    say(f"holding {row.id}")
    sys.stdin.read()
    store.renew(row.owner or 0, START, TTL)
    store.close()


def use_after_fork(store: SqlStore) -> None:
    """What a forked child hears when it uses its parent's store."""
    child = os.fork()
    if child == 0:
        for use in (lambda: store.find("default", "orders"), lambda: store.bury(1, START)):
            try:
                use()
            except StoreError as error:
                say(str(error))
        store.close()
        os._exit(0)
    os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
