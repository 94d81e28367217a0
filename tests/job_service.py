"""The job service that the prose talks to: two routes on loopback, done on the second poll."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self._answer(202, {"jobId": f"job-{next(self.server.numbers)}"})

    def do_GET(self) -> None:
        self.server.polls[self.path] += 1
        if self.server.polls[self.path] < 2:
            # The prose may say "5s"; the hint keeps a run short.
            self._answer(200, {"state": "RUNNING", "progress": 0.5}, {"retry-after-ms": "1"})
        else:
            self._answer(200, {"state": "SUCCEEDED", "progress": 1, "result": {"rows": 1204}})

    def _answer(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep quiet: the output is the page's."""


class _Service(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.numbers = count(1)
        self.polls: Counter[str] = Counter()


@contextmanager
def serve() -> Iterator[str]:
    """The origin of a fresh service, as `http://127.0.0.1:PORT`."""
    with _Service() as service:
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{service.server_port}"
        finally:
            service.shutdown()
            thread.join()
