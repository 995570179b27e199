"""librdkafka's own mock cluster: it answers chosen requests with chosen codes."""

import ctypes
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, Self

import confluent_kafka

_PRODUCER = 0
_BROKER = 1


class Request(IntEnum):
    """Kafka's numbers of the requests that a worker sends and a mock cluster knows."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


def _library() -> ctypes.CDLL:
    """The very library that the client has loaded: wheels bring their own."""
    found = sorted(Path(confluent_kafka.__file__).parent.parent.glob("confluent_kafka.libs/librdkafka*.so*"))
    return ctypes.CDLL(str(found[0]) if found else "librdkafka.so.1")


class MockBroker:
    """A cluster of one broker, inside of a librdkafka handle of its own."""

    def __init__(self) -> None:
        self._library = _library()
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        configuration = self._function("conf_new", pointer)()
        self._handle = self._function("new", pointer)(
            _PRODUCER, pointer(configuration), ctypes.create_string_buffer(512), ctypes.c_size_t(512)
        )
        self._cluster = pointer(self._function("mock_cluster_new", pointer)(pointer(self._handle), 1))
        self.bootstrap = self._function("mock_cluster_bootstraps", text)(self._cluster).decode()
        self._function("mock_group_initial_rebalance_delay_ms")(self._cluster, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._function("mock_cluster_destroy", None)(self._cluster)
        self._function("destroy", None)(ctypes.c_void_p(self._handle))

    def create(self, topic: str, partitions: int = 1) -> None:
        """A topic."""
        self._function("mock_topic_create")(self._cluster, topic.encode(), partitions, 1)

    def spoil(self, request: Request, code: int) -> None:
        """Answer the next request of a kind with a code."""
        push = self._function("mock_broker_push_request_error_rtts")
        push(self._cluster, _BROKER, ctypes.c_int16(request), ctypes.c_size_t(1), code, 0)

    def due(self, request: Request) -> int:
        """How many codes have not been answered yet."""
        count = ctypes.c_size_t()
        ask = self._function("mock_broker_error_stack_cnt")
        ask(self._cluster, _BROKER, ctypes.c_int16(request), ctypes.byref(count))
        return count.value

    def forget(self, request: Request) -> None:
        """Answer as a broker should."""
        self._function("mock_clear_request_errors", None)(self._cluster, ctypes.c_int16(request))

    def _function(self, name: str, result: Any = ctypes.c_int) -> Callable[..., Any]:
        function = self._library[f"rd_kafka_{name}"]  # anew each time: what it returns is its own
        function.restype = result
        return function
