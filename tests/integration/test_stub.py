"""The stub service over real sockets."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tarry.testing import Behaviour, FakeClock, ScriptedJob, StubService
from tarry.testing.stub.__main__ import main as command
from tarry.words import HOUR, SECOND

Talk = Callable[[StubService, asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, Any]]


def raw(talk: Talk, **options: Any) -> Any:
    """The result of a talk over one raw connection."""

    async def main() -> Any:
        async with StubService(**options) as stub:
            reader, writer = await asyncio.open_connection(stub.host, stub.port)
            try:
                return await talk(stub, reader, writer)
            finally:
                writer.transport.abort()

    return asyncio.run(main())


def get(path: str, *lines: str, method: str = "GET") -> bytes:
    """The bytes of a request without a body."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: stub", *lines, "", ""]).encode()


async def answer(reader: asyncio.StreamReader, *, head_only: bool = False) -> tuple[int, dict[str, str], bytes]:
    """One whole answer: status, headers, body."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = b"" if head_only else await reader.readexactly(int(headers.get("content-length", 0)))
    return int(first.split(" ")[1]), headers, body


def with_httpx(talk: Callable[[StubService, httpx.AsyncClient], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    """The result of a talk through an HTTP client."""

    async def main() -> Any:
        async with StubService(**options) as stub, httpx.AsyncClient(base_url=stub.url, timeout=60) as client:
            return await talk(stub, client)

    return asyncio.run(main())


def test_a_client_sees_a_job_through() -> None:
    """Submitted, polled to the end, and counted."""

    async def talk(stub: StubService, client: httpx.AsyncClient) -> None:
        submitted = await client.post("/jobs", json={"dataset": "orders"}, headers={"Idempotency-Key": "k"})
        assert submitted.status_code == 202
        job = submitted.json()["jobId"]
        states = [(await client.get(submitted.headers["location"])).json()["state"] for _ in range(4)]
        assert states == ["QUEUED", "RUNNING", "RUNNING", "SUCCEEDED"]
        assert stub.polls == {job: 4}
        assert stub.jobs[job].polls == 4
        assert [(each["kind"], each["key"]) for each in stub.requests] == [("submit", "k")] + [("poll", None)] * 4

    with_httpx(talk)


def test_many_clients_at_once() -> None:
    """Each sees its own job move on, whatever the others do."""

    async def talk(stub: StubService, client: httpx.AsyncClient) -> None:
        async def one() -> list[str]:
            job = (await client.post("/jobs")).json()["jobId"]
            return [(await client.get(f"/jobs/{job}")).json()["state"] for _ in range(4)]

        every = await asyncio.gather(*[one() for _ in range(30)])
        assert every == [["QUEUED", "RUNNING", "RUNNING", "SUCCEEDED"]] * 30
        assert set(stub.polls.values()) == {4}

    with_httpx(talk)


def test_a_connection_is_kept_and_pipelined() -> None:
    """Requests sent in one go are answered in order, on one connection, cut anywhere."""

    async def talk(_: StubService, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests = get("/jobs", "Content-Length: 0", method="POST") + get("/polls") + get("/nothing") + get("/jobs")
        for byte in requests:
            writer.write(bytes([byte]))
            await writer.drain()
        writer.write(requests)
        statuses = [(await answer(reader))[0] for _ in range(8)]
        assert statuses == [202, 200, 404, 200] * 2

    raw(talk)


def test_a_slow_answer_holds_up_only_its_own_connection() -> None:
    """Behind it others wait in order; on another connection they do not."""
    clock = FakeClock(0)

    async def main() -> None:
        async with StubService(clock=clock) as stub:
            reader, writer = await asyncio.open_connection(stub.host, stub.port)
            other, other_writer = await asyncio.open_connection(stub.host, stub.port)
            writer.write(get("/jobs?mode=answer&delay=3600", method="POST") + get("/jobs"))
            await clock.sleep(SECOND)
            other_writer.write(get("/jobs"))
            assert len(json.loads((await answer(other))[2])["jobs"]) == 1
            assert clock.now() == SECOND
            assert [(await answer(reader))[0] for _ in range(2)] == [202, 200]
            assert clock.now() == HOUR
            writer.close()
            other_writer.close()

    clock.run(main)


def test_head_has_no_body_and_close_closes() -> None:
    """HEAD tells the length only; a client that wants to close is let go."""

    async def talk(_: StubService, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(get("/polls", method="HEAD") + get("/polls", "Connection: close"))
        status, headers, _body = await answer(reader, head_only=True)
        assert (status, headers["content-length"]) == (200, "13")
        assert (await answer(reader))[1]["connection"] == "close"
        assert await reader.read() == b""

    raw(talk)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x00\xa5garbage", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/3.0\r\n\r\n", 505),
        (b"POST /jobs HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 3_000_000, 413),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000, 431),
    ],
)
def test_garbage_is_refused_and_the_service_lives_on(data: bytes, status: int) -> None:
    """The sender hears why, the connection ends, the next client is served."""

    async def talk(stub: StubService, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        refused, headers, body = await answer(reader)
        assert (refused, headers["connection"]) == (status, "close")
        assert json.loads(body)["error"]
        assert await reader.read() == b""
        writer.write(b"GET /polls HTTP/1.1\r\n\r\n")
        other, other_writer = await asyncio.open_connection(stub.host, stub.port)
        other_writer.write(get("/polls"))
        assert (await answer(other))[0] == 200
        other_writer.close()

    raw(talk)


def job_with(stub: StubService, *behaviours: Behaviour) -> str:
    """A job with this script, whose id is known beforehand."""
    stub._api.respond(_submit())
    job = list(stub.jobs)[-1]
    stub.script(job, *behaviours)
    return job


def _submit() -> Any:
    from tarry.testing.stub.wire import Request

    return Request("POST", "/jobs")


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (Behaviour(mode="drop"), httpx.RemoteProtocolError),
        (Behaviour(mode="cut"), httpx.RemoteProtocolError),
        (Behaviour(mode="garbage"), httpx.RemoteProtocolError),
    ],
)
def test_broken_answers_break_for_a_client(behaviour: Behaviour, error: type[Exception]) -> None:
    """Dropped, cut or garbled: the client has an error, and the next request works."""

    async def talk(stub: StubService, client: httpx.AsyncClient) -> None:
        job = job_with(stub, behaviour)
        with pytest.raises(error):
            await client.get(f"/jobs/{job}")
        assert (await client.get("/polls")).json() == {"polls": {job: 1}}

    with_httpx(talk)


def test_a_cut_answer_begins_well() -> None:
    """All headers and half of the body arrive."""

    async def talk(_: StubService, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(get("/polls") + get("/jobs?mode=cut", method="POST"))
        await answer(reader)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        assert len(await reader.read()) == length // 2

    raw(talk)


def test_a_dripped_answer_takes_its_time() -> None:
    """Byte by byte, whole in the end, a pause after each."""
    clock = FakeClock(0)

    async def main() -> None:
        async with StubService(clock=clock) as stub:
            job = job_with(stub, Behaviour(mode="drip", pause=10))
            reader, writer = await asyncio.open_connection(stub.host, stub.port)
            writer.write(get(f"/jobs/{job}") + get("/polls"))
            status, headers, body = await answer(reader)
            assert (status, json.loads(body)["state"]) == (200, "QUEUED")
            assert clock.now() >= 10 * SECOND * (len(body) + len(headers) - 1)
            assert (await answer(reader))[0] == 200
            writer.write(get(f"/jobs/{job}", "Connection: close"))
            assert (await answer(reader))[0] == 200
            assert await reader.read() == b""
            writer.close()

    clock.run(main)


def test_a_hanging_answer_never_comes() -> None:
    """Nothing is sent on that connection, also not what was asked next; others are served."""
    clock = FakeClock(0)

    async def main() -> None:
        async with StubService(clock=clock) as stub:
            job = job_with(stub, Behaviour(mode="hang"))
            reader, writer = await asyncio.open_connection(stub.host, stub.port)
            writer.write(get(f"/jobs/{job}") + get("/polls"))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(86_400):
                    await reader.read(1)
            assert stub.polls == {job: 1}
            writer.close()

    clock.run(main)


def test_a_delayed_answer_to_nobody_is_harmless() -> None:
    """A client that leaves while its answer is on the way disturbs nothing."""
    clock = FakeClock(0)

    async def main() -> None:
        async with StubService(clock=clock) as stub:
            for mode in ("answer", "drip", "hang"):
                reader, writer = await asyncio.open_connection(stub.host, stub.port)
                writer.write(get(f"/jobs?mode={mode}&delay=5&pause=5", method="POST"))
                await clock.sleep(7 * SECOND)
                writer.close()
                await clock.sleep(SECOND)
                del reader
            assert len(stub.jobs) == 3

    clock.run(main)


def test_a_huge_body_arrives_whole_and_a_bomb_grows() -> None:
    """Megabytes plain, or gzipped into little."""

    async def talk(stub: StubService, client: httpx.AsyncClient) -> None:
        job = job_with(stub, Behaviour(mode="huge", mib=4, until=1), Behaviour(mode="bomb", mib=4))
        huge, bomb = await client.get(f"/jobs/{job}"), await client.get(f"/jobs/{job}")
        assert len(huge.content) > 4 * 1024 * 1024
        assert huge.json()["state"] == "QUEUED"
        assert int(bomb.headers["content-length"]) < 100_000
        assert len(bomb.content) > 4 * 1024 * 1024
        assert bomb.json()["state"] == "RUNNING"

    with_httpx(talk)


def test_a_client_that_does_not_read_is_not_fed() -> None:
    """Answers wait for a client that reads slowly, and all arrive in the end."""

    async def talk(stub: StubService, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        job = job_with(stub, Behaviour(mode="huge", mib=4))
        writer.write(get(f"/jobs/{job}") * 8)
        await writer.drain()
        other, other_writer = await asyncio.open_connection(stub.host, stub.port)
        for _ in range(20):
            other_writer.write(get("/jobs"))
            await answer(other)
        assert stub.polls[job] < 8
        for _ in range(8):
            assert len((await answer(reader))[2]) > 4 * 1024 * 1024
        assert stub.polls[job] == 8
        other_writer.close()

    raw(talk)


def test_pipelined_requests_behind_a_slow_one_are_bounded() -> None:
    """A flood behind an answer that hangs is not taken in without end."""
    clock = FakeClock(0)

    async def main() -> int:
        async with StubService(clock=clock) as stub:
            _, writer = await asyncio.open_connection(stub.host, stub.port)
            writer.write(get("/jobs?mode=hang", method="POST"))
            flood = get("/polls") * 1000
            sent = 0
            while writer.transport.get_write_buffer_size() == 0 and sent < 100_000_000:
                writer.write(flood)
                sent += len(flood)
                await clock.sleep(0)
            writer.transport.abort()
            return sent

    assert clock.run(main) < 50_000_000


def test_it_runs_in_a_thread_for_blocking_clients() -> None:
    """The port is there inside the block and gone after it."""
    with StubService().run_in_thread() as stub:
        with httpx.Client(base_url=stub.url) as client:
            job = client.post("/jobs").json()["jobId"]
            stub.script(job, Behaviour(status=503))
            assert client.get(f"/jobs/{job}").status_code == 503
        port = stub.port
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", port))


def test_a_port_in_use_is_an_error_in_every_form() -> None:
    """Whoever starts it hears why it cannot listen."""

    async def main(port: int) -> None:
        async with StubService(port=port):
            pytest.fail("two services on one port")

    with StubService().run_in_thread() as first:
        second = StubService(port=first.port)
        with pytest.raises(OSError, match="in use"), second.run_in_thread():
            pytest.fail("two services on one port")
        with pytest.raises(OSError, match="in use"):
            asyncio.run(main(first.port))
        with pytest.raises(OSError, match="in use"):
            second.run()


def test_leaving_without_having_started_is_harmless() -> None:
    """Closing a service that never listened does nothing."""
    asyncio.run(StubService().__aexit__(None, None, None))


def test_a_script_for_an_unknown_job_is_an_error() -> None:
    """A misspelt id is noticed."""
    with pytest.raises(KeyError):
        StubService().script("job-unknown", Behaviour())


def test_steps_may_take_seconds() -> None:
    """Each of the three stages takes a step."""
    clock = FakeClock(0)

    async def main() -> list[Any]:
        async with StubService(clock=clock, step=10) as stub:
            job = job_with(stub)
            seen = []
            for _ in range(4):
                seen.append(stub.jobs[job].look(clock.now())["progress"])
                clock.advance(10 * SECOND)
            return seen

    assert clock.run(main) == [33, 66, 99, 100]


def start(log: Path) -> subprocess.Popen[str]:
    """The stub service as a process."""
    line = [sys.executable, "-m", "tarry.testing.stub", "--step", "0", "--log", str(log)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_the_command_says_where_it_listens_and_ends_when_told(tmp_path: Path, name: signal.Signals) -> None:
    """One JSON line, a log that is there before the answer, and a clean end."""
    log = tmp_path / "requests.jsonl"
    with start(log) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            job = httpx.post(f"{url}/jobs", headers={"Idempotency-Key": "k"}).json()["jobId"]
            logged = [json.loads(line) for line in log.read_text().splitlines()]
            assert [(each["kind"], each["job"], each["key"]) for each in logged] == [("submit", job, "k")]
            assert httpx.get(f"{url}/jobs/{job}").json()["state"] == "SUCCEEDED"
            assert len(log.read_text().splitlines()) == 2
            process.send_signal(name)
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()


def test_the_log_is_appended_to(tmp_path: Path) -> None:
    """A second run adds to what the first one wrote."""
    log = tmp_path / "requests.jsonl"
    for _ in range(2):
        with StubService(log=log).run_in_thread() as stub:
            httpx.get(f"{stub.url}/polls")
    assert len(log.read_text().splitlines()) == 2


def test_the_command_refuses_bad_options(capsys: pytest.CaptureFixture[str]) -> None:
    """A usage error, before anything listens."""
    with pytest.raises(SystemExit) as caught:
        command(["--step", "soon"])
    assert caught.value.code == 2
    assert "--step" in capsys.readouterr().err


def test_the_fixtures_work(
    fake_clock: FakeClock, scripted_job: Callable[..., ScriptedJob], stub_service: StubService
) -> None:
    """A clock, a job on that clock, and a service that answers."""
    job = scripted_job([{"state": "DONE"}], repeat=False)
    assert job._clock is fake_clock
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: httpx.get(f"{stub_service.url}/polls").status_code, range(8)))
    assert answers == [200] * 8
