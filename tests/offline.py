"""No socket beyond loopback: a guard for the test process, and for a script run under it.

`python -m tests.offline script.py` runs the script with the guard on. The
guard listens to the interpreter's own audit events, so that no library can go
around it, and remembers what it refused, so that no library can hide it.
"""

from __future__ import annotations

import runpy
import sys
from ipaddress import ip_address

refused: list[str] = []

_BY_ADDRESS = {"socket.bind", "socket.connect", "socket.sendto", "socket.sendmsg"}
_BY_NAME = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}


class BeyondLoopback(RuntimeError):
    """Something tried to reach, or to be reached from, another machine."""


def is_loopback(host: object) -> bool:
    """Whether the host is this machine and no other."""
    name = host.decode() if isinstance(host, bytes) else host
    if name is None or name == "localhost":
        return True
    try:
        return ip_address(str(name).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _host(event: str, arguments: tuple[object, ...]) -> object:
    """Whom the event speaks of; None for this machine, a connected peer, or a Unix socket."""
    if event in _BY_NAME:
        return arguments[0]
    if event in _BY_ADDRESS and isinstance(arguments[1], tuple) and arguments[1]:
        return arguments[1][0]
    return None


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if event.startswith("socket.") and not is_loopback(host := _host(event, arguments)):
        refused.append(f"{event} {host!r}")
        raise BeyondLoopback(refused[-1])


def guard() -> None:
    """Refuse sockets beyond loopback for the rest of this process."""
    sys.addaudithook(_listen)


if __name__ == "__main__":
    guard()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    sys.exit(f"reached beyond loopback: {refused}" if refused else 0)
