"""Callers' plain callables, run off the event loop on threads that hold up nothing else."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Executor, Future
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

_MISTAKABLE = (StopIteration, StopAsyncIteration, CancelledError)


class Misbehaved(RuntimeError):
    """A callable raised what asyncio would take for a word of its own, or what ends a process; or did not end in time."""


class Aside:
    """Runs plain callables, one at a time for each job.

    Each call has a daemon thread of its own: one that never ends keeps
    neither other jobs, nor the loop's own helpers, nor the end of the process waiting.
    """

    def __init__(self) -> None:
        self._threads = _Threads()
        self._busy: set[str] = set()

    async def call(self, job: str, function: Callable[..., Any], /, *args: Any, **named: Any) -> object:
        """The function's answer: an async one runs on the event loop, a plain one off it, as `run` says."""
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004  # an object whose __call__ is async
            return await _outlived(function(*args, **named))
        answer = await self.run(job, partial(function, *args, **named))
        return await _outlived(answer) if inspect.isawaitable(answer) else answer

    async def run(self, job: str, call: Callable[[], T]) -> T:
        """The call's answer. Raises what it raises, and `Misbehaved` while the job's last call still runs."""
        if job in self._busy:
            raise Misbehaved("its last call still runs")
        self._busy.add(job)

        def called() -> T:
            try:
                return call()
            finally:
                self._busy.discard(job)

        return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, called)


async def _outlived(answer: Awaitable[T]) -> T:
    """The answer; an exit that is raised on the way ends one call, where it would end the loop and all that is on it."""
    try:
        return await answer
    except SystemExit:
        raise Misbehaved("it raised SystemExit") from None


class _Threads(Executor):
    """A daemon thread a call."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start it at once."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        Thread(target=_answer, args=(future, partial(fn, *args, **kwargs)), name="tarry-callable", daemon=True).start()
        return future


def _answer(future: Future[T], call: Callable[[], T]) -> None:
    try:
        answer = call()
    except _MISTAKABLE as error:
        future.set_exception(Misbehaved(f"it raised {type(error).__name__}"))
    except Exception as error:  # noqa: BLE001  # whatever user code raises belongs to whoever called it
        future.set_exception(error)
    except BaseException as error:  # noqa: BLE001  # on a thread, an exit ends one call: on the loop it would end them all
        future.set_exception(Misbehaved(f"it raised {type(error).__name__}"))
    else:
        future.set_result(answer)
