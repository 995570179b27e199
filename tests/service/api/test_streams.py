"""Streams, as the API shows them, from what workers tell."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from service.ports import free_port
from service.worker.status import StatusServer


class Told:
    """What a worker's metrics say."""

    def __init__(self, stream: Any, ready: bool = True) -> None:
        self._stream = stream
        self._ready = ready

    def status(self) -> Any:
        return {
            "stream": self._stream,
            "input": "orders.raw",
            "output": "orders.safe",
            "started": "2026-01-01T00:00:00Z",
            "ready": self._ready,
            "reason": None if self._ready else "restoring",
            "counts": {"taken": 5, "released": 3},
            "gauges": {"pending": 2.0},
            "guarantee": [{"model": "k-anonymity", "asked": 5, "achieved": 6, "more_is_safer": True}],
            "delay_limit": None,
            "partitions": {"0": {"lag": 1}},
            "stopped": {},
        }


@pytest.fixture
def workers() -> Iterator[Any]:
    servers = [StatusServer(Told(*what), "127.0.0.1", 0) for what in (("orders",), ("orders", False), ("clicks",))]  # type: ignore[arg-type]
    yield tuple(f"http://127.0.0.1:{server.port}" for server in servers)
    for server in servers:
        server.close()


def test_streams_are_gathered_from_their_workers(open_client: Any, workers: Any) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    client = open_client(workers=(*workers, nobody))
    told = client.get("/v1/streams").json()
    assert told["silent"] == [nobody]
    assert [(stream["name"], stream["ready"], len(stream["workers"])) for stream in told["streams"]] == [
        ("clicks", True, 1),
        ("orders", False, 2),
    ]
    orders = client.get("/v1/streams/orders").json()
    assert orders["workers"][0]["counts"] == {"taken": 5, "released": 3}
    assert orders["workers"][1]["reason"] == "restoring"
    assert client.get("/v1/streams/unknown").status_code == 404


def test_a_worker_that_talks_nonsense_counts_as_silent(
    open_client: Any, monkeypatch: pytest.MonkeyPatch, workers: Any
) -> None:
    monkeypatch.setattr(Told, "status", lambda _: {"stream": "orders", "ready": "perhaps"})
    assert open_client(workers=workers[:1]).get("/v1/streams").json() == {"streams": [], "silent": [workers[0]]}


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"9" * 5_000,
        b"HTTP/1.1 200 OK\r\n\r\n\xff",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}",
        b"HTTP/1.1 two hundred\r\n\r\n{}",
        b"what is that?\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 500 + b"\r\n{}",
        b"",
    ],
    ids=["nested", "number", "bytes", "short", "status", "line", "headers", "nothing"],
)
def test_whatever_listens_where_a_worker_should_be_counts_as_silent(open_client: Any, said: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            asking, _ = other.accept()
            with asking:
                asking.recv(65_536)
                asking.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"http://127.0.0.1:{other.getsockname()[1]}"
        assert open_client(workers=(address,)).get("/v1/streams").json() == {"streams": [], "silent": [address]}
        thread.join()


def test_without_workers_there_are_no_streams(client: Any) -> None:
    assert client.get("/v1/streams").json() == {"streams": [], "silent": []}
