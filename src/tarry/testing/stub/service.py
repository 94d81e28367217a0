"""The stub service: a job API on a loopback port, that misbehaves on demand."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tarry.clock import SystemClock
from tarry.ports import Clock
from tarry.testing.stub.api import JobApi
from tarry.testing.stub.behaviour import Behaviour
from tarry.testing.stub.connection import Connection
from tarry.testing.stub.jobs import Document, StubJob

_STAGES = 3


def _new_id() -> str:
    return "job-" + secrets.token_hex(4)


class StubService:
    """A job service to test against: real HTTP/1.1, kept in memory.

    - `host`, `port`: where to listen; port 0 takes a free one.
    - `clock`: tells the time and waits out delays (default: the system's).
    - `step`: a job moves on with each "poll", or stays this many seconds in each of its
      three stages. A submit whose body says `{"seconds": 8}` takes 8 seconds in all.
    - `script`: behaviours of every job.
    - `log`: a file to append each request to, as a JSON line, before it is answered.

    | request | answer |
    |---|---|
    | `POST /jobs` | 202, `{"jobId": …, "state": "QUEUED"}` and `Location`; the same `Idempotency-Key` gives the same job |
    | `GET /jobs/{id}` | QUEUED 33, RUNNING 66, RUNNING 99, then SUCCEEDED 100 with a `result` |
    | `GET /jobs/{id}/result` | that `result` by itself; 404 before it is there; no poll |
    | `POST /jobs/{id}/fail` | every later look shows FAILED |
    | `POST /jobs/{id}/cancel` | 202, then CANCELLING once, then CANCELLED; 409 when it is over |
    | `POST /jobs/{id}/script` | the job behaves as the list of behaviours in the body says |
    | `GET /jobs`, `/polls`, `/requests` | all jobs; polls by job; every request with its time |

    How a job misbehaves is a list of `Behaviour`: under `script` in the submit's body, through
    `script()`, or for one URL in its query (`?mode=answer&status=503&until=2`).

    Use it as an async context manager, in a thread with `run_in_thread`, or as a process with `run`.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        clock: Clock | None = None,
        step: Literal["poll"] | float = "poll",
        script: Sequence[Behaviour] = (),
        log: str | Path | None = None,
        new_id: Callable[[], str] = _new_id,
    ) -> None:
        self.host = host
        self.port = port
        self._clock = clock or SystemClock()
        seconds = None if step == "poll" else step * _STAGES
        self._api = JobApi(self._clock, new_id=new_id, seconds=seconds, script=script)
        self._log = log
        self._server: asyncio.Server | None = None
        self._files = ExitStack()
        self._connections: set[Connection] = set()

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"http://{self.host}:{self.port}"

    @property
    def requests(self) -> list[Document]:
        """The requests so far: `at` (microseconds), `method`, `path`, `kind`, `job`, `call`, `key`, `status`, `mode`."""
        return list(self._api.requests)

    @property
    def polls(self) -> dict[str, int]:
        """Polls by job."""
        return self._api.polls

    @property
    def jobs(self) -> dict[str, StubJob]:
        """The jobs by id."""
        return dict(self._api.book.jobs)

    def script(self, job_id: str, *behaviours: Behaviour) -> None:
        """From now on the job behaves like this. Raises KeyError for a job that is not there."""
        self._api.book.jobs[job_id].script = behaviours

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        with ExitStack() as opening:
            if self._log is not None:
                log = Path(self._log).open("a", encoding="utf-8")  # noqa: ASYNC230, SIM115  # once; the stack closes it
                self._api.log = opening.enter_context(log)
            self._server = await loop.create_server(self._connect, self.host, self.port, backlog=1024)
            self._files = opening.pop_all()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        leaving = [*self._connections]
        for connection in leaving:
            connection.abort()
        await asyncio.gather(*[connection.lost for connection in leaving])
        await server.wait_closed()
        self._files.close()

    @contextmanager
    def run_in_thread(self) -> Iterator[Self]:
        """Serve from a thread while the block runs: for blocking clients and other processes."""
        ready: Future[Callable[[], object]] = Future()
        with ThreadPoolExecutor(1, thread_name_prefix="tarry-stub") as thread:
            done = thread.submit(lambda: asyncio.run(self._serve(ready)))
            done.add_done_callback(lambda _: ready.cancel())  # it may end before it is ready
            try:
                stop = ready.result()
            except CancelledError:
                done.result()  # raises what kept it from starting
                raise
            try:
                yield self
            finally:
                stop()

    def run(self, *, ready: Callable[[str], None] | None = None) -> None:
        """Serve until SIGINT or SIGTERM; tells `ready` the URL once it listens. Main thread only."""

        async def main() -> None:
            stop, loop = asyncio.Event(), asyncio.get_running_loop()
            for name in (signal.SIGINT, signal.SIGTERM):
                with suppress(NotImplementedError):  # Windows: Ctrl-C still raises KeyboardInterrupt
                    loop.add_signal_handler(name, stop.set)
            async with self:
                if ready is not None:
                    ready(self.url)
                await stop.wait()

        with suppress(KeyboardInterrupt):
            asyncio.run(main())

    async def _serve(self, ready: Future[Callable[[], object]]) -> None:
        """Serve until the function that `ready` gets is called, from any thread."""
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        async with self:
            ready.set_result(lambda: loop.call_soon_threadsafe(stop.set))
            await stop.wait()

    def _connect(self) -> Connection:
        return Connection(self._api.respond, self._clock, self._connections)
