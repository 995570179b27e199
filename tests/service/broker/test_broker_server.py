"""The embedded broker as a server: where it listens, and what it does with nonsense."""

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.broker import Broker, BrokerError
from service.kafka import KafkaSettings, Partition, connect
from service.ports import PortError, free_port
from tests.service.stopping import connections_while_it_stops


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "no-such-host.invalid"])
def test_it_refuses_to_listen_beyond_loopback(host: str) -> None:
    with pytest.raises(BrokerError):
        Broker(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_it_listens_on_loopback(host: str) -> None:
    with Broker(host) as broker:
        assert connect(KafkaSettings(bootstrap_servers=broker.bootstrap)).admin().list_topics() == []


def test_it_says_when_the_port_is_taken() -> None:
    with Broker() as broker, pytest.raises(PortError, match=r"cannot listen on .* another program listens there"):
        Broker(port=int(broker.bootstrap.split(":")[1])).start_in_thread()


def test_it_starts_and_stops_inside_of_an_event_loop() -> None:
    async def run() -> None:
        broker = Broker()
        await broker.start()
        reader, writer = await asyncio.open_connection(*broker.bootstrap.split(":"))
        await broker.stop()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()

    asyncio.run(run())


@pytest.mark.parametrize("turns", range(6))
def test_it_leaves_no_connection_open_that_comes_while_it_stops(turns: int) -> None:
    broker = Broker().start_in_thread()
    assert broker._loop is not None
    left_open = connections_while_it_stops(
        int(broker.bootstrap.split(":")[1]), broker._loop, broker._stopping, turns, broker.close
    )
    assert not left_open


@pytest.fixture
def connection(embedded_kafka: Any) -> Iterator[Any]:
    host, port = embedded_kafka.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        yield client


def _request(key: Any, version: Any, body: bytes = b"", correlation: int = 7) -> Any:
    header = struct.pack(">hhih", key, version, correlation, 2) + b"me"
    return struct.pack(">i", len(header) + len(body)) + header + body


@pytest.mark.parametrize(
    "nonsense",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">i", -5),
        struct.pack(">i", 2**31 - 1) + b"x",
        struct.pack(">i", 12) + bytes(12),
        _request(0, 999),
        _request(999, 0),
        _request(1, 12, b"\x00\xff\xff"),
        _request(3, 9, b"\xff" * 40),
    ],
    ids=["http", "negative", "huge", "zeros", "future version", "unknown request", "cut off", "garbage"],
)
def test_nonsense_closes_the_connection_and_nothing_else(embedded_kafka: Any, connection: Any, nonsense: Any) -> None:
    connection.sendall(nonsense)
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b""
    admin = connect(KafkaSettings(bootstrap_servers=embedded_kafka)).admin()
    assert isinstance(admin.list_topics(), list)


def test_a_client_from_the_future_is_told_what_there_is(connection: Any) -> None:
    connection.sendall(_request(18, 99))
    size, correlation, error, count = struct.unpack(">iihi", connection.recv(14))
    assert (correlation, error) == (7, 35)
    assert count > 20
    assert size == 10 + 6 * count


def test_it_creates_topics_on_demand_only_where_it_is_told_to() -> None:
    import confluent_kafka  # noqa: PLC0415 - the plain client of a stranger

    for allowed in (False, True):
        with Broker(auto_create_topics=allowed) as broker:
            producer = confluent_kafka.Producer(
                {"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 2_000, "log_level": 0}
            )
            producer.produce("on-demand", b"x")
            producer.flush(5)
            admin = connect(KafkaSettings(bootstrap_servers=broker.bootstrap)).admin()
            assert ("on-demand" in admin.list_topics()) is allowed


def test_retention_by_size_is_seen_by_clients() -> None:
    with Broker(retention_bytes=200_000) as broker:
        client = connect(KafkaSettings(bootstrap_servers=broker.bootstrap))
        admin, producer, reader = client.admin(), client.producer("p"), client.reader()
        admin.create_topic("small", 1)
        producer.init_transactions()
        for _ in range(10):
            producer.begin()
            producer.produce(Partition("small", 0), [b"x" * 1000] * 50)
            producer.commit()
        low, high = reader.watermarks(Partition("small", 0))
        assert 0 < low < high
        assert sum(map(len, reader.read(Partition("small", 0), 0, high, 10))) < 250
        reader.close()
        producer.close()


@pytest.mark.slow
def test_the_program_runs_until_it_is_told_to_stop(tmp_path: Path) -> None:
    code = f"from service.broker import run_broker; run_broker(port={free_port()})"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ)
    try:
        assert "not for production" in process.stdout.readline()  # type: ignore[union-attr]
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.communicate()
