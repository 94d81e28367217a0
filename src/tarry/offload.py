"""Where blocking calls run: on a thread of their own, or right here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class ThreadOffload:
    """An `Offload` with one dedicated thread: calls run one after another, in order.

    A call that has begun ends, also when whoever awaits it is cancelled.
    `name` is what the thread is called.
    """

    def __init__(self, name: str = "tarry-store") -> None:
        self._line = _Line(name)

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        """Queue the call at once. Raises RuntimeError after `close`."""
        return asyncio.get_running_loop().run_in_executor(self._line, work)

    def close(self) -> None:
        """Finish what is queued, then end the thread; blocks meanwhile. May be called twice."""
        self._line.shutdown()


class _Line(Executor):
    """One daemon thread, begun with the first call.

    Unlike a pool of the standard library's it still works while the process is on its way out, when
    what is open gives back what it holds.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._lock = Lock()
        self._is_closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue the call. Raises RuntimeError after `shutdown`."""
        future: Future[T] = Future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the thread has ended; nothing runs on it any more")
            if self._thread.ident is None:
                self._thread.start()
            self._calls.put(partial(_answer, future, partial(fn, *args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  # the base's
        """Finish what is queued, and end the thread."""
        with self._lock:
            self._is_closed = True
            self._calls.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _answer(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        answer = call()
    except BaseException as error:  # noqa: BLE001  # whatever it raises belongs to whoever called
        future.set_exception(error)
    else:
        future.set_result(answer)


async def inline(work: Callable[[], T], /) -> T:
    """An `Offload` that calls right here: for work that never waits, such as a store in memory."""
    return work()
