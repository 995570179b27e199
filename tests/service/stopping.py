"""Clients that connect in the very moment in which a server stops."""

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack

CLIENTS = 20


def connections_while_it_stops(
    port: int, loop: asyncio.AbstractEventLoop, stopping: asyncio.Event, turns: int, close: Callable[[], None]
) -> int:
    """How many of the clients that connect so many turns of the server's loop before its end nobody hangs up on."""

    def wait(turns: int) -> None:
        if turns:
            loop.call_soon(wait, turns - 1)
        else:
            stopping.set()

    def hold_up() -> None:
        time.sleep(0.2)  # those who come meanwhile are all accepted in one turn
        wait(turns)

    with ExitStack() as stack:
        loop.call_soon_threadsafe(hold_up)
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port), 60)) for _ in range(CLIENTS)]
        close()
        return sum(not _hung_up(client) for client in clients)


def _hung_up(client: socket.socket) -> bool:
    client.settimeout(0.5)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
