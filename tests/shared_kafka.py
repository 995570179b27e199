"""One Apache Kafka for all xdist workers of a run: it starts when the first of them asks, and stops with the run.

A broker takes ten seconds of two cores to start, and its first minutes are its slowest. Tests on it name topics and
groups of their own, so they do not meet; those that kill or freeze a broker start one for themselves.
"""

import contextlib
import os
import threading
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener

from tests.service.kafka.real_kafka import RealKafka


class SharedKafka:
    """Answers xdist workers from a thread of the process that started them."""

    def __init__(self, start: Callable[[], RealKafka] = lambda: RealKafka().__enter__()) -> None:
        self._start = start
        self._kafka: RealKafka | None = None
        self._error: str | None = None
        self._key = os.urandom(16)
        self._listener = Listener(None, authkey=self._key)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, bytes]:
        """Where to ask, and the word that opens."""
        return str(self._listener.address), self._key

    def close(self) -> None:
        """Stop the broker, where it was asked for."""
        with contextlib.suppress(OSError), Client(self._listener.address, authkey=self._key) as connection:
            connection.send("end")
        self._thread.join()
        self._listener.close()
        if self._kafka is not None:
            self._kafka.__exit__()

    def _serve(self) -> None:
        while True:
            with contextlib.suppress(EOFError, OSError, AuthenticationError), self._listener.accept() as connection:
                if connection.recv() == "end":
                    return
                self._answer(connection)

    def _answer(self, connection: Connection) -> None:
        try:
            if self._kafka is None and self._error is None:
                self._kafka = self._start()
            connection.send(self._error if self._kafka is None else self._kafka.for_others())
        except Exception as error:  # noqa: BLE001 - whoever asks hears of it, and so do all who ask later
            self._error = f"{type(error).__name__}: {error}"
            connection.send(self._error)


def shared_kafka(address: str, key: bytes) -> RealKafka:
    """The broker of this run, as its address was told to an xdist worker."""
    with Client(address, authkey=key) as connection:
        connection.send("kafka")
        answer = connection.recv()
    if isinstance(answer, RealKafka):
        return answer
    raise RuntimeError(answer)
