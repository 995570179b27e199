"""The embedded broker, taught to answer chosen requests with an error code."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kafka.record.default_records import DefaultRecordBatchBuilder

from service.broker import Broker
from service.broker.apis import Api
from service.broker.batch import parse
from service.broker.compaction import records_of
from service.broker.groups import Groups
from service.broker.node import Call, Node
from service.broker.topics import BrokerTopics
from service.broker.transactions import Transactions
from service.kafka import Partition

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@dataclass(eq=False)
class Fault:
    """What the next request of a kind is answered with."""

    request: str
    code: int | None
    when: Callable[[Call], bool]
    done: bool
    whole: bool


class FaultyBroker(Broker):
    """Refuses requests on demand, once each; and hands records in and out without a client."""

    def __init__(self) -> None:
        super().__init__()
        self._faults: list[Fault] = []

    def spoil(
        self,
        request: str,
        code: int | None,
        when: Callable[[Call], bool] = lambda _: True,
        *,
        done: bool = False,
        whole: bool = False,
    ) -> Fault:
        """Answer the next such request with a code: instead of doing what it asks for, or (`done`) after doing it.

        The code stands where the answer is about single partitions, groups or topics; with `whole` at its top. Without
        a code there is no answer, neither to what comes behind it on the same connection.
        """
        fault = Fault(request, code, when, done, whole)
        self._faults.append(fault)
        return fault

    def is_due(self, fault: Fault) -> bool:
        """Whether it has not happened yet."""
        return fault in self._faults

    def forget(self) -> None:
        """Let everything be answered as it should be."""
        self._faults.clear()

    async def _response(self, api: Api, call: Call) -> Any:
        name = api.request.__name__.removesuffix("Request")
        fault = next((each for each in self._faults if each.request == name and each.when(call)), None)
        if fault is None:
            return await super()._response(api, call)
        self._faults.remove(fault)
        if fault.code is None:
            await asyncio.Event().wait()
        # A broker that knows nothing gives an answer of the right shape, and nothing comes of it.
        response = await api.answer(call if fault.done else call._replace(node=_blank(call.node)))
        if response is not None:
            _set_codes(response, fault.code, whole=fault.whole)  # type: ignore[arg-type]
        return response

    def put(self, place: Partition, values: list[bytes], codec: str = "none") -> None:
        """Append a batch as a producer without transactions would have sent it."""
        builder = DefaultRecordBatchBuilder(2, CODECS[codec], 0, -1, -1, -1, 2**31 - 1)
        for index, value in enumerate(values):
            builder.append(index, 1_700_000_000_000, None, value, [])
        self._within(lambda: self._node.topics.log(*place).append(parse(bytes(builder.build()))))

    def committed(self, place: Partition) -> list[bytes]:
        """The values that a reader of committed records sees."""
        return self._within(lambda: list(self._values(place)))

    def _values(self, place: Partition) -> Iterator[bytes]:
        log = self._node.topics.log(*place)
        for batch in log.batches_since(-1):
            aborted = any(
                each.producer_id == batch.producer_id and each.first_offset <= batch.base_offset <= each.last_offset
                for each in log.aborted(0, log.end)
            )
            if not batch.is_control and not aborted and batch.base_offset < log.stable_end:
                yield from (record.value for record in records_of(batch))

    def _within(self, action: Callable[[], Any]) -> Any:
        """Do it in the broker's own thread."""

        async def act() -> Any:
            return action()

        return asyncio.run_coroutine_threadsafe(act(), self._loop).result(60)  # type: ignore[arg-type]


def _blank(node: Node) -> Node:
    topics, groups = BrokerTopics(0), Groups()
    return Node(node.host, node.port, topics, groups, Transactions(topics, groups), auto_create_topics=False)


def _set_codes(part: Any, code: int, *, whole: bool) -> bool:
    """Put the code into the innermost fields for one (or the outermost); whether there was one."""
    field = next((name for name in part.fields if name.endswith("error_code")), None)
    if whole and field is not None:
        setattr(part, field, code)
        return True
    below = [each for name in part.fields for each in _list(getattr(part, name)) if hasattr(each, "fields")]
    inside = [_set_codes(each, code, whole=whole) for each in below]
    if any(inside):
        return True
    if field is not None:
        setattr(part, field, code)
    return field is not None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
