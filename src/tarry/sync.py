"""The blocking twin of the front door: the same methods, without `await`.

    from tarry.sync import Poller

    with Poller("sqlite:///tarry.db") as poller:
        result = poller.await_job("orders-2026-q2", export)

A thin portal over `tarry.Poller`, which runs on a thread of its own. A method
of the async one becomes a method here by one line.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import update_wrapper
from inspect import signature
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from tarry import api
from tarry.core.results import JobResult
from tarry.core.spec import JobSpec
from tarry.core.typed import Output, OutputType
from tarry.errors import TarryError
from tarry.portal import Portal
from tarry.runtime.attaching import Reuse
from tarry.runtime.options import Options

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine as DatabaseEngine

    from tarry.core.durations import DurationLike
    from tarry.ports import Store

__all__ = ["Poller", "await_job"]

P = ParamSpec("P")
T = TypeVar("T")

_END: Any = object()


def _as(model: Callable[..., Any], function: Callable[P, T]) -> Callable[P, T]:
    """The function with the name, description and arguments of the model; not a coroutine function, as that is."""
    del update_wrapper(function, model).__wrapped__
    vars(function)["__signature__"] = signature(model)
    return function


def _items(portal: Portal, items: AsyncGenerator[T]) -> Iterator[T]:
    async def following() -> T:
        return await anext(items, _END)

    try:
        while (item := portal.call(following)) is not _END:
            yield item
    finally:
        portal.post(items.aclose)


class _Twin:
    """What turns a method of the async poller into one that blocks."""

    _poller: api.Poller
    _portal: Portal | None = None

    @property
    def _open(self) -> Portal:
        if self._portal is None:
            raise TarryError("enter the poller first: with Poller(...) as poller")
        return self._portal

    @staticmethod
    def _made(
        init: Callable[Concatenate[api.Poller, P], None],
    ) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
        """An `__init__` with the arguments of that one."""
        return lambda function: _as(init, function)

    @staticmethod
    def _blocking(
        method: Callable[Concatenate[api.Poller, P], Coroutine[Any, Any, T]],
    ) -> Callable[Concatenate[_Twin, P], T]:
        """The method, waiting for its answer."""

        def call(self: _Twin, /, *args: P.args, **options: P.kwargs) -> T:
            return self._open.call(lambda: method(self._poller, *args, **options))

        return _as(method, call)

    @staticmethod
    def _iterating(
        method: Callable[Concatenate[api.Poller, P], AsyncGenerator[T]],
    ) -> Callable[Concatenate[_Twin, P], Iterator[T]]:
        """The method as a plain iterator, each step waiting for the next item."""

        def call(self: _Twin, /, *args: P.args, **options: P.kwargs) -> Iterator[T]:
            return _items(self._open, method(self._poller, *args, **options))

        return _as(method, call)


_made, _blocking, _iterating = _Twin._made, _Twin._blocking, _Twin._iterating  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # for the lines below, and nobody else


class Poller(_Twin):
    """Awaits remote jobs, durably, for code that blocks: `tarry.Poller` without `await`.

    A context manager; takes the arguments of `tarry.Poller`, and has its methods. Any thread may call them,
    several at once. The polling, and `on_event`, are on one background thread with an event loop of its own; a
    `client` of yours belongs to that loop, so share it with nothing else.

    A Ctrl-C during a wait raises `KeyboardInterrupt`, and leaves the job and the remote work as they are.

    Raises `TarryError` inside a running event loop, where it would stop everything else: use `tarry.Poller` there.
    """

    @_made(api.Poller.__init__)
    def __init__(self, *args: Any, **options: Any) -> None:
        self._poller = api.Poller(*args, **options)

    def __enter__(self) -> Self:
        if self._portal is not None:
            raise TarryError("a poller is entered once; make another one")
        portal = Portal(self._poller)
        portal.open()
        self._portal = portal
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave every job as it is, and give the lease back; after a Ctrl-C without waiting for calls in flight."""
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._open.hurry()
        else:
            self._open.close()

    await_job = _blocking(api.Poller.await_job)
    add = _blocking(api.Poller.add)
    dead_letters = _blocking(api.Poller.dead_letters)
    redeliver = _blocking(api.Poller.redeliver)
    get = _blocking(api.Poller.get)
    jobs = _blocking(api.Poller.jobs)
    history = _blocking(api.Poller.history)
    watch = _iterating(api.Poller.watch)
    cancel = _blocking(api.Poller.cancel)
    nudge = _blocking(api.Poller.nudge)
    update = _blocking(api.Poller.update)
    pause = _blocking(api.Poller.pause)
    resume = _blocking(api.Poller.resume)
    reset = _blocking(api.Poller.reset)
    export = _blocking(api.Poller.export)
    import_job = _blocking(api.Poller.import_job)
    await_all = _blocking(api.Poller.await_all)
    run = _blocking(api.Poller.run)
    run_once = _blocking(api.Poller.run_once)
    tick = _blocking(api.Poller.tick)
    prune = _blocking(api.Poller.prune)
    health = _blocking(api.Poller.health)


def await_job(
    key: str,
    spec: JobSpec | None = None,
    *,
    store: str | DatabaseEngine | Store,
    wait_timeout: DurationLike | None = None,
    raises: bool = True,
    reuse: Reuse = "attach",
    output_type: OutputType[Output] | None = None,
    **options: Unpack[Options],
) -> JobResult[Output]:
    """`Poller.await_job` for one call: opens a poller on `store`, waits, closes it. `options` are those of `Poller`."""
    with Poller(store, **options) as poller:
        return poller.await_job(
            key, spec, wait_timeout=wait_timeout, raises=raises, reuse=reuse, output_type=output_type
        )
