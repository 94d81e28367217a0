"""Lets blocking code call into an event loop that runs on a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, suppress
from threading import Lock, Thread
from typing import Any, TypeVar

from tarry.errors import TarryError

T = TypeVar("T")

_AGAIN = 0.05  # seconds between two cancellations of a close that is hurried


class Portal:
    """Holds one async resource open on a loop of its own; calls come from any other thread.

    The thread is a daemon: it keeps no process alive. A process that ends closes the
    resource on its way out. A forked child has no such thread: it is refused, and closes nothing.
    """

    def __init__(self, resource: AbstractAsyncContextManager[Any]) -> None:
        self._resource = resource
        self._lock = Lock()
        self._opened: Future[asyncio.AbstractEventLoop] = Future()
        self._ended: Future[None] = Future()
        self._closed = False
        self._stop = asyncio.Event()
        self._main: asyncio.Future[None] | None = None
        self._process = os.getpid()
        self._thread = Thread(target=self._run, name="tarry-loop", daemon=True)

    def open(self) -> None:
        """Enter the resource; raises what that raises."""
        refuse_in_a_loop()
        self._thread.start()
        self._opened.result()
        atexit.register(self.close)

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the coroutine returns or raises. A Ctrl-C here cancels it, and nothing else.

        Raises `TarryError` inside a running event loop, in a forked child, and when the portal is closed meanwhile.
        """
        refuse_in_a_loop()
        future = self._begun(work)
        try:
            return future.result()
        except CancelledError:
            raise TarryError("the poller was closed meanwhile; its jobs live on") from None
        finally:
            future.cancel()  # no effect on what is done

    def post(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Begin the coroutine without waiting for it; nothing when the portal is closed, or the parent's."""
        with suppress(TarryError):
            self._begun(work)

    def close(self) -> None:
        """Leave the resource and wait until it is left; a second Ctrl-C makes it hurry. May be called twice."""
        if not self._shut():
            return
        try:
            self._thread.join()
        except BaseException:
            self._hurried()
            raise
        self._ended.result()

    def hurry(self) -> None:
        """As `close`, but what is in flight is cut."""
        if self._shut():
            self._hurried()

    def _shut(self) -> bool:
        """Refuse further calls and begin to leave; false where there is nothing to leave."""
        if os.getpid() != self._process:
            return False
        with self._lock:
            if self._closed or not self._opened.done():
                return False
            self._closed = True
        atexit.unregister(self.close)
        self._signal(self._stop.set)
        return True

    def _begun(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        if os.getpid() != self._process:
            raise TarryError("this poller belongs to the parent process; after a fork, open one of your own")
        with self._lock:
            if self._closed:
                raise TarryError("the poller is closed; make another one")
            return asyncio.run_coroutine_threadsafe(work(), self._opened.result())

    def _hurried(self) -> None:
        # One cancellation may come before the resource has begun to close, and then cuts nothing short.
        while self._thread.is_alive():
            if self._main is not None:
                self._signal(self._main.cancel)
            self._thread.join(_AGAIN)

    def _signal(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop has ended by itself
            self._opened.result().call_soon_threadsafe(call)

    def _run(self) -> None:
        try:
            self._run_loop()
        except BaseException as error:  # noqa: BLE001  # whoever opens or closes hears of it, on a thread that lives
            self._fail(error)
        else:
            self._ended.set_result(None)

    def _run_loop(self) -> None:
        runner = asyncio.Runner()
        try:
            runner.run(self._serve())
        finally:
            # A process on its way out starts no thread any more, and asyncio wants one to end its own threads with.
            with suppress(RuntimeError):
                runner.close()

    def _fail(self, error: BaseException) -> None:
        self._closed = True
        if self._opened.done():
            self._ended.set_exception(error)
        else:
            self._opened.set_exception(error)

    async def _serve(self) -> None:
        self._main = asyncio.current_task()
        async with self._resource:
            self._opened.set_result(asyncio.get_running_loop())
            await self._stop.wait()


def refuse_in_a_loop() -> None:
    """Raise `TarryError` where an event loop runs in this thread: blocking would stop it, and all that it carries."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise TarryError(
        "an event loop runs in this thread, and a blocking call would stop it: "
        "use tarry.Poller with await (a notebook allows await at the top of a cell)"
    )
