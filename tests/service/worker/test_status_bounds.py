"""The worker's web server has a bound for everything, and answers only for its own names."""

import http.client
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from service.ports import PortError
from service.worker import status as module
from service.worker.metrics import Metrics
from service.worker.status import MOST_CONNECTIONS, MOST_HEAD_BYTES, StatusServer
from tests.service.kafka.world import eventually
from tests.service.stopping import connections_while_it_stops
from tests.service.worker.test_crashes import stream_of

HALF_OPEN = 3_000


@pytest.fixture
def start() -> Iterator[Any]:
    with ExitStack() as stack:

        def start(host: str = "127.0.0.1", names: Any = ()) -> Any:
            server = StatusServer(Metrics(stream_of(2, 0)), host, 0, names)
            stack.callback(server.close)
            return server

        yield start


def ask(server: Any, path: str = "/status", host: Any = None, method: str = "GET", **headers: Any) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    try:
        connection.putrequest(method, path, skip_host=host is not None)
        for name, value in ({"Host": host} | headers if host else headers).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def open_files() -> Any:
    return len(list(Path("/proc/self/fd").iterdir()))


def raw(server: Any, data: Any) -> Any:
    """What comes back for these bytes, until the server hangs up."""
    with socket.create_connection(("127.0.0.1", server.port), 120) as connection:
        connection.sendall(data)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
        return answer


@pytest.mark.slow
def test_thousands_of_half_open_connections_take_one_thread_and_few_files_and_healthz_answers(start: Any) -> None:
    server = start()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * HALF_OPEN)), hard))
    threads, files = set(threading.enumerate()), open_files()
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for number in range(HALF_OPEN):
            held = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 120))
            if number % 2:
                held.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127")
        assert ask(server, "/healthz")[1] == "ok\n"
        assert set(threading.enumerate()) <= threads  # one of another test may have ended meanwhile
        assert open_files() - files - HALF_OPEN <= MOST_CONNECTIONS + 1


def test_a_request_that_does_not_arrive_in_time_is_given_up(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.2)
    server = start()
    assert raw(server, b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n") == b""
    eventually(lambda: not server._connections)


def test_an_answer_that_is_not_taken_in_time_is_given_up(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.2)
    server = start()
    server._routes["/status"] = lambda: module._Answer(module.HTTPStatus.OK, b"x" * (32 << 20))  # type: ignore[attr-defined]
    with socket.create_connection(("127.0.0.1", server.port), 120) as connection:
        connection.sendall(b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.recv(8) == b"HTTP/1.1"
        eventually(lambda: not server._connections)


def test_the_head_of_a_request_has_a_largest_size(start: Any) -> None:
    server = start()
    start_, end = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", b"\r\n\r\n"
    largest = MOST_HEAD_BYTES - len(start_) - len(end)
    assert raw(server, start_ + b"x" * largest + end).startswith(b"HTTP/1.1 200 ")
    assert b" 431 " in raw(server, start_ + b"x" * 2 * MOST_HEAD_BYTES)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (b"GET /healthz HTTP/2\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.0\r\n\r\n", 200),
        (b"POST /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    ],
)
def test_what_is_no_request_for_it_is_refused(start: Any, request_: bytes, status: int) -> None:
    assert raw(start(), request_).startswith(f"HTTP/1.1 {status} ".encode())


def test_head_is_answered_without_a_body(start: Any) -> None:
    server = start()
    assert ask(server, "/healthz", method="HEAD") == (200, "")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9400", "127.0.0.1:1", "[::1]", "[::1]:9400", "workers.lan:8"])
def test_its_own_names_are_answered(start: Any, host: str) -> None:
    assert ask(start(names=["Workers.lan"]), host=host)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9400", "127.0.0.1.evil.example", "192.0.2.1", "localhost.", "[::1", "", "@"]
)
def test_a_page_that_points_its_name_at_this_machine_gets_nothing(start: Any, host: str) -> None:
    status, body = ask(start(), host=host or " ")
    assert status == 403
    assert "evil" not in body
    assert "stream" not in body


def test_where_every_address_is_listened_on_every_address_is_its_own_and_no_other_name(start: Any) -> None:
    server = start(host="0.0.0.0")
    assert ask(server, host="192.0.2.1:9400")[0] == 200
    assert ask(server, host="evil.example")[0] == 403


def test_a_port_that_is_taken_is_told_with_what_to_do(start: Any) -> None:
    port = start().port
    with pytest.raises(PortError, match=f"127.0.0.1:{port}: another program listens there; .*--status-port"):
        StatusServer(Metrics(stream_of(2, 0)), "127.0.0.1", port)


@pytest.mark.parametrize("turns", range(6))
def test_no_connection_stays_open_that_comes_while_it_stops(turns: int) -> None:
    server = StatusServer(Metrics(stream_of(2, 0)), "127.0.0.1", 0)
    assert not connections_while_it_stops(server.port, server._loop, server._ended, turns, server.close)
