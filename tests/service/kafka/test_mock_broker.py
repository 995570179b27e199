"""Every code in every call of the confluent adapter, on the mock cluster of librdkafka itself."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka as ck
import pytest

from service.kafka import (
    AbortableError,
    Committed,
    DeniedError,
    FinalError,
    KafkaError,
    KafkaSettings,
    Partition,
    RetriableError,
    TransactionalProducer,
    UnknownTopicError,
    connect,
)
from service.kafka.codes import NAMES, kind_of, name_of
from tests.service.kafka.mock_broker import MockBroker, Request
from tests.service.kafka.world import eventually

INPUT = Partition("raw", 0)
HUNG_UP = ck.KafkaError._TRANSPORT
NEVER_SENT_TO_US = 9999
USUAL = [-1, 3, 7, 14, 16, 51, 120, NEVER_SENT_TO_US, HUNG_UP]
KILLERS = {
    Request.LIST_OFFSETS: [8, 9, 13, 15, 51, 78, 89],
    Request.OFFSET_FETCH: [8, 9, 13, 15, 16, 51, 74, 75, 78, 89, 100, 103],
    Request.FETCH: [2, 13, 14, 15, 16, 19, 20, 51, 70, 71, 89, 103, 106],
    Request.PRODUCE: [13, 51, 74, 75, 78, 89, 100, 103],
    Request.METADATA: [5, 6, 41, 72, 80],
}
"""What has ended workers."""

EVERY = [*NAMES, NEVER_SENT_TO_US, HUNG_UP]


class Desk:
    """The calls of a worker, each on a broker that answers one request of it with a code."""

    def __init__(self, broker: MockBroker) -> None:
        self._broker = broker
        broker.create(INPUT.topic)
        self._client = connect(
            KafkaSettings(
                bootstrap_servers=broker.bootstrap,
                client="confluent-kafka",
                request_timeout_ms=10_000,
                transaction_timeout_ms=10_000,
            )
        )
        self._closed = False
        self._producer: TransactionalProducer | None = None
        self._consumer = self._client.group_consumer("group")
        self._consumer.subscribe([INPUT.topic], *[lambda _: None] * 3)
        eventually(self._joined)
        self.transact()
        self._begin, self._end = self._consumer.watermarks(INPUT)

    def _joined(self) -> bool:
        self._consumer.poll(0.1, 1)
        return bool(self._consumer.assignment())

    def close(self) -> None:
        if not self._closed:
            self._consumer.close()
            self._give_up()
        self._closed = True

    def _give_up(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def watermarks(self) -> None:
        low, high = self._consumer.watermarks(INPUT)
        assert low == self._begin
        assert high >= self._end

    def committed(self) -> None:
        self._consumer.committed([INPUT])

    def read(self) -> None:
        with contextlib.closing(self._client.reader()) as reader:
            assert [value for batch in reader.read(INPUT, 0, 1, 10) for value in batch.values] == [b"event"]

    def topics(self) -> None:
        with contextlib.closing(self._client.admin()) as admin:
            assert admin.list_topics() == [INPUT.topic]

    def open(self) -> None:
        with contextlib.closing(self._client.producer("another")) as producer:
            producer.init_transactions()

    def transact(self) -> None:
        if self._producer is None:
            self._producer = self._client.producer("writer")
            self._producer.init_transactions()
        self._producer.begin()
        self._producer.produce_and_wait({INPUT: (None, b"event")})
        self._producer.flush()
        self._producer.send_offsets({INPUT: Committed(1, "note")}, self._consumer.group_token())
        self._producer.commit()

    def works(self, request: Request) -> bool:
        with contextlib.suppress(UnknownTopicError):  # it may have to learn anew who leads the partition
            CALLS[request](self)
            return True
        return False

    def outcome(self, request: Request, code: int) -> KafkaError | None:
        """What became of a call that met a code; a worker then gives up its producer and goes on."""
        self._broker.spoil(request, code)
        call = CALLS[request]
        try:
            call(self)
        except KafkaError as error:
            if call is Desk.transact:
                self._give_up()
            return error
        finally:
            assert self._broker.due(request) == 0, "nobody has asked"
        return None


CALLS: dict[Request, Callable[[Desk], None]] = {
    Request.LIST_OFFSETS: Desk.watermarks,
    Request.OFFSET_FETCH: Desk.committed,
    Request.FETCH: Desk.read,
    Request.METADATA: Desk.topics,
    Request.FIND_COORDINATOR: Desk.open,
    Request.INIT_PRODUCER_ID: Desk.open,
    Request.PRODUCE: Desk.transact,
    Request.ADD_PARTITIONS_TO_TXN: Desk.transact,
    Request.ADD_OFFSETS_TO_TXN: Desk.transact,
    Request.TXN_OFFSET_COMMIT: Desk.transact,
    Request.END_TXN: Desk.transact,
}

DENIALS = {
    Request.LIST_OFFSETS: [29],
    Request.OFFSET_FETCH: [30],
    Request.FETCH: [29],
    Request.METADATA: [],
    Request.FIND_COORDINATOR: [53],
    Request.INIT_PRODUCER_ID: [53],
    Request.PRODUCE: [29],
    Request.ADD_PARTITIONS_TO_TXN: [29, 53],
    Request.ADD_OFFSETS_TO_TXN: [30, 53],
    Request.TXN_OFFSET_COMMIT: [30, 53],
    Request.END_TXN: [53],
}
"""With which a broker says to a request that a right is missing. Other final codes librdkafka may take for a blip."""


@pytest.fixture
def desk() -> Iterator[Desk]:
    with MockBroker() as broker, contextlib.closing(Desk(broker)) as desk:
        yield desk


def sweep(desk: Desk, request: Request, codes: list[int]) -> None:
    wrong = {}
    if request is Request.FIND_COORDINATOR:
        desk.close()  # a consumer looks for its own coordinator now and then: it must not meet the code instead
    for code in codes:
        error = desk.outcome(request, code)
        if not fits(error, code, must_tell=code in DENIALS[request]):
            wrong[name_of(code)] = error
        eventually(lambda: desk.works(request))  # it was a blip
    assert wrong == {}


def fits(error: KafkaError | None, code: int, *, must_tell: bool) -> bool:
    """Whether an error is what the table says of a code."""
    kind = kind_of(name_of(code))
    if error is None:
        return not must_tell
    if issubclass(kind, FinalError):
        return isinstance(error, kind) and error.code == name_of(code)
    return not isinstance(error, FinalError)


REQUESTS = pytest.mark.parametrize("request_kind", CALLS, ids=lambda request: request.name)


@REQUESTS
def test_a_code_is_absorbed_or_becomes_what_the_table_says(desk: Any, request_kind: Any) -> None:
    sweep(desk, request_kind, [*KILLERS.get(request_kind, []), *DENIALS[request_kind], *USUAL])


@pytest.mark.soak
@REQUESTS
def test_every_code_is_absorbed_or_becomes_what_the_table_says(desk: Any, request_kind: Any) -> None:
    sweep(desk, request_kind, EVERY)


def test_the_end_is_never_given_for_the_first_offset(desk: Any) -> None:
    """librdkafka's own call for both did so about every fourth time."""
    for _ in range(50):
        assert isinstance(desk.outcome(Request.LIST_OFFSETS, 8), RetriableError)
        desk.watermarks()


def test_a_record_that_the_broker_has_already_without_saying_where_aborts(desk: Any) -> None:
    error = desk.outcome(Request.PRODUCE, 46)
    assert isinstance(error, AbortableError)
    assert error.code == "UNKNOWN_OFFSET"


def test_a_topic_that_may_not_be_written_is_named(desk: Any) -> None:
    """librdkafka says only that it has thrown the record away."""
    error = desk.outcome(Request.ADD_PARTITIONS_TO_TXN, 29)
    assert isinstance(error, DeniedError)
    assert "topic 'raw'" in str(error)
