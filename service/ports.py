"""Ports: free ones for processes that are started here, and a clear word where one is taken."""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
from contextlib import suppress

from microdata.errors import UnavailableError

_FIRST, _COUNT = 20_000, 12_000
"""Below the range from which outgoing connections get their ports: a client that tries again while nobody listens could
otherwise be given the very port that it tries, connect to itself, and keep the server from coming back."""
_TURNS = 5
"""Of the loop, more than asyncio needs from accepting a connection until its handler has begun (three)."""
_REASONS = {
    errno.EADDRINUSE: "another program listens there",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EACCES: "ports below 1024 need more rights",
}


class PortError(UnavailableError):
    """An address on which nobody can listen at the moment."""


def free_ports(count: int) -> list[int]:
    """Different ports that nobody uses at the moment."""
    found: list[int] = []
    while len(found) < count:
        port = _FIRST + secrets.randbelow(_COUNT)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found += [port] if port not in found else []
    return found


def free_port() -> int:
    """A port that nobody uses at the moment."""
    return free_ports(1)[0]


def listening(host: str, port: int, remedy: str) -> list[socket.socket]:
    """Sockets that listen on every address of a host; `remedy` tells how to choose another port."""
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            # Where any free port will do, all addresses take the one that the first was given.
            number = sockets[0].getsockname()[1] if sockets else port
            sockets.append(socket.create_server((address[0], number), family=family))
    except OSError as error:
        for each in sockets:
            each.close()
        raise port_error(error, host, port, remedy) from error
    return sockets


async def stop_listening(*servers: asyncio.Server) -> None:
    """Accept no more; every connection that was accepted has its handler afterwards.

    asyncio drops what it is accepting when its server is closed, and a handler that is cancelled before it has begun
    closes nothing: in both cases the connection would stay open, and its client would wait.
    """
    loop = asyncio.get_running_loop()
    for listener in (each for server in servers for each in server.sockets):
        loop.remove_reader(listener.fileno())
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    for server in servers:
        server.close()


def port_error(error: OSError, host: str, port: int, remedy: str) -> PortError:
    """What a failed attempt to listen means, and what to do."""
    if isinstance(error, socket.gaierror):
        return PortError(f"cannot listen on {address_of(host, port)}: the host's name is unknown")
    reason = _REASONS.get(error.errno or 0, error.strerror or type(error).__name__)
    return PortError(f"cannot listen on {address_of(host, port)}: {reason}; {remedy}")


def address_of(host: str, port: int) -> str:
    """Host and port as addresses write them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
