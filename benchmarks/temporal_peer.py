"""The same wait as a Temporal activity: it polls in a loop and sends a heartbeat with each answer.

The loop does not wait until a heartbeat is stored, and those that come too fast are
left out by the library. What counts as a durable poll is a heartbeat that the server has
taken. The dev server keeps its database in a file.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp
from temporalio import activity as temporal
from temporalio.client import Client
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.worker import Worker

from benchmarks.jobs import folder
from benchmarks.load import serving
from benchmarks.meter import Reading, while_running, window
from benchmarks.postgres import free_port
from benchmarks.scale import Scale, Skipped
from benchmarks.temporal_flow import Wait

_QUEUE = "bench"
_HEARTBEAT = 'operation="RecordActivityTaskHeartbeat"'


async def activity(scale: Scale) -> Reading:
    """One activity a job on one worker of the dev server."""
    turns, told = asyncio.Semaphore(scale.in_flight), free_port()
    metrics = PrometheusConfig(bind_address=f"127.0.0.1:{told}")
    runtime = Runtime(telemetry=TelemetryConfig(metrics=metrics))
    with serving() as service, _server() as address:
        client = await _connected(address, runtime)
        async with aiohttp.ClientSession() as session:

            @temporal.defn(name="wait")
            async def wait(url: str) -> str:
                while True:
                    async with turns, session.get(url) as response:
                        state: str = json.loads(await response.read())["state"]
                    if state != "RUNNING":
                        return state
                    temporal.heartbeat(state)
                    await asyncio.sleep(0.001)

            worker = Worker(
                client,
                task_queue=_QUEUE,
                activities=[wait],
                workflows=[Wait],
                max_concurrent_activities=scale.jobs,
                max_heartbeat_throttle_interval=timedelta(milliseconds=1),
                default_heartbeat_throttle_interval=timedelta(milliseconds=1),
                graceful_shutdown_timeout=timedelta(),
            )
            async with worker:
                begin = _begin(client, [service.url(n) for n in range(scale.jobs)])

                async def stored() -> int:
                    async with session.get(f"http://127.0.0.1:{told}/metrics") as response:
                        return _heartbeats(await response.text())

                return await while_running(begin, window(stored, scale))


async def _begin(client: Client, urls: list[str]) -> None:
    """Start a workflow a URL, some at a time, and stay."""
    gate = asyncio.Semaphore(20)

    async def one(number: int, url: str) -> None:
        async with gate:
            await client.start_workflow("Wait", url, id=f"job-{number}", task_queue=_QUEUE)

    await asyncio.gather(*(one(n, url) for n, url in enumerate(urls)))
    await asyncio.Event().wait()


def _heartbeats(metrics: str) -> int:
    lines = (line for line in metrics.splitlines() if line.startswith("temporal_request{") and _HEARTBEAT in line)
    return sum(int(float(line.rpartition(" ")[2])) for line in lines)


async def _connected(address: str, runtime: Runtime) -> Client:
    for _ in range(100):
        try:
            return await Client.connect(address, runtime=runtime)
        except RuntimeError:
            await asyncio.sleep(0.1)
    raise Skipped("the Temporal dev server did not come up within 10 s")


@contextmanager
def _server() -> Iterator[str]:
    """A dev server while the block runs, its database in a file."""
    beside = Path(sys.executable).with_name("temporal")
    program = beside if beside.exists() else shutil.which("temporal")
    if program is None:
        raise Skipped("no Temporal dev server here")
    with folder() as place:
        port = free_port()
        command = [program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port)]
        command += ["--db-filename", place / "temporal.db", "--log-level", "never"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                yield f"127.0.0.1:{port}"
            finally:
                server.terminate()
