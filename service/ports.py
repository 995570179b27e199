"""Loopback ports for processes that are started here."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

_FIRST, _COUNT = 20_000, 12_000
"""Below the range from which outgoing connections get their ports: a client that tries again while nobody listens could
otherwise be given the very port that it tries, connect to itself, and keep the server from coming back."""


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
