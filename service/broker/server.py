"""The broker as a server: connections in, requests read and answered in turn."""

import asyncio
import contextlib
import ipaddress
import logging
import socket
import struct
import threading
import time
from typing import Any, Self

from kafka import errors as kp
from kafka.protocol.metadata import ApiVersionsResponse

from microdata.errors import PortcullisError
from service.broker.apis import API_VERSIONS, APIS, NEWEST_API_VERSIONS, Api, supported
from service.broker.groups import Groups
from service.broker.node import Call, Node
from service.broker.topics import BrokerTopics
from service.broker.transactions import Transactions
from service.ports import PortError, port_error, stop_listening

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 100 * 2**20
READ_AHEAD_BYTES = 4 * 2**20
CLOCK_SECONDS = 0.05
DEFAULT_RETENTION_BYTES = 512 * 2**20


class BrokerError(PortcullisError):
    """The embedded broker cannot do what it is asked to."""


class Broker:
    """A Kafka broker for development: one node, in memory, on loopback only.

    `port=0` takes a free port. `retention_bytes` bounds each partition of a topic that sets no
    `retention.bytes` of its own.

    Inside of an event loop use `await start()` and `await stop()`; elsewhere `start_in_thread()` and `close()`,
    or a `with` block.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        retention_bytes: int = DEFAULT_RETENTION_BYTES,
        auto_create_topics: bool = False,
    ) -> None:
        _require_loopback(host)
        topics, groups = BrokerTopics(retention_bytes), Groups()
        transactions = Transactions(topics, groups)
        self._node = Node(host, port, topics, groups, transactions, auto_create_topics)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return f"{self._node.host}:{self._node.port}"

    async def start(self) -> None:
        """Listen."""
        host, port = self._node.host, self._node.port
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=READ_AHEAD_BYTES)
        except OSError as error:
            raise port_error(error, host, port, "choose another port (0 takes any free one)") from error
        self._node.port = self._server.sockets[0].getsockname()[1]
        self._keep(asyncio.create_task(self._tick()))

    async def stop(self) -> None:
        """Close every connection and forget everything."""
        if self._server is not None:
            await stop_listening(self._server)
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._server = None

    def start_in_thread(self) -> Self:
        """Run in a thread of its own; returns when clients can connect."""
        ready = threading.Event()
        failure: list[PortError] = []

        async def run() -> None:
            self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
            try:
                await self.start()
            except PortError as error:
                failure.append(error)
                return
            finally:
                ready.set()
            await self._stopping.wait()
            await self.stop()

        self._thread = threading.Thread(target=lambda: asyncio.run(run()), name="portcullis-broker", daemon=True)
        self._thread.start()
        ready.wait()
        if failure:
            raise failure[0]
        return self

    def close(self) -> None:
        """End the thread."""
        if self._thread is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Self:
        return self.start_in_thread()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _tick(self) -> None:
        """Let sessions and transactions run out."""
        while True:
            now = time.monotonic()
            self._node.groups.expire(now)
            self._node.transactions.expire(now)
            await asyncio.sleep(CLOCK_SECONDS)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: requests are answered one after the other, as Kafka does."""
        task = asyncio.current_task()
        if task is not None:
            self._keep(task)
        try:
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                answer = await self._answer(await _frame(reader))
                if answer is not None:
                    writer.write(answer)
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            log.debug("a client went away")
        except asyncio.CancelledError:
            log.debug("the broker stops")  # and ends here: asyncio's streams complain of a cancelled handler
            writer.transport.abort()  # a client that does not read its answers would never be done
        except (ValueError, IndexError, struct.error) as error:
            log.warning("a connection is closed: what came is no request (%s)", type(error).__name__)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, frame: bytes) -> bytes | bytearray | None:
        """The bytes that answer a request; None where no answer is wanted."""
        view = memoryview(frame)
        key, version, correlation_id, client_id_length = struct.unpack_from(">hhih", view)
        position = 10 + max(client_id_length, 0)
        client_id = bytes(view[10:position]).decode()
        if key == API_VERSIONS:
            return _api_versions(version, correlation_id)
        api = APIS.get(key)
        if api is None or not api.oldest <= version <= api.newest:
            raise ValueError(f"request {key} version {version} is not supported")
        if api.request.flexible_version_q(version):
            position = _behind_tags(view, position)
        body = api.request.decode(view[position:], version=version)
        response = await self._response(api, Call(self._node, body, version, client_id))
        return None if response is None else _encoded(response, version, correlation_id)

    async def _response(self, api: Api, call: Call) -> Any:
        """What is said to a request; None for no answer."""
        return await api.answer(call)


def _require_loopback(host: str) -> None:
    try:
        addresses = {ipaddress.ip_address(each[4][0]) for each in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise BrokerError(f"host {host!r} is unknown") from error
    if not all(address.is_loopback for address in addresses):
        raise BrokerError(
            f"the embedded broker is for development and listens on loopback only (127.0.0.1, ::1), given {host!r}"
        )


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    if not 10 <= size <= MAX_REQUEST_BYTES:
        raise ValueError(f"a request has 10 to {MAX_REQUEST_BYTES} bytes, announced {size}")
    return await reader.readexactly(size)


def _behind_tags(view: memoryview, position: int) -> int:
    """Where the body begins: behind the tagged fields of a flexible header, which nobody needs."""
    tags, position = _varint(view, position)
    for _ in range(tags):
        _, position = _varint(view, position)
        size, position = _varint(view, position)
        position += size
    return position


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _api_versions(version: int, correlation_id: int) -> bytes | bytearray:
    """What the broker can do; a client from the future is told in version 0, by convention."""
    if version > NEWEST_API_VERSIONS:
        refusal = ApiVersionsResponse(error_code=kp.UnsupportedVersionError.errno, api_keys=supported())
        return _encoded(refusal, 0, correlation_id)
    return _encoded(ApiVersionsResponse(error_code=0, api_keys=supported()), version, correlation_id)


def _encoded(response: Any, version: int, correlation_id: int) -> bytes | bytearray:
    response.API_VERSION = version  # before the header: the library would look for a version there
    response.with_header(correlation_id=correlation_id)
    encoded: bytes | bytearray = response.encode(header=True, framed=True)
    return encoded
