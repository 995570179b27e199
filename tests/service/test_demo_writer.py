"""The demo's producer on a broker that refuses: every batch arrives, and once."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from service.demo import Writer
from service.kafka import DeniedError, KafkaSettings, Partition, connect
from tests.service.kafka.faulty_broker import FaultyBroker

PLACES = [Partition("orders", number) for number in range(2)]


@pytest.fixture(params=["kafka-python", "confluent-kafka"])
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    with FaultyBroker() as broker:
        settings = KafkaSettings(
            bootstrap_servers=broker.bootstrap,
            client=request.param,
            request_timeout_ms=5_000,
            transaction_timeout_ms=5_000,
        )
        client = connect(settings)
        with contextlib.closing(client.admin()) as admin:
            admin.create_topic("orders", len(PLACES))
        yield broker, client


FAULTS = [("InitProducerId", -1), ("Produce", 13), ("EndTxn", -1), ("ListOffsets", 8)]


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize(("request_name", "code"), FAULTS)
def test_what_passes_costs_and_doubles_nothing(client: Any, request_name: Any, code: Any, done: bool) -> None:
    broker, client = client
    with contextlib.closing(Writer(client, "writer")) as writer:
        for number in range(3):
            if number == 1:
                fault = broker.spoil(request_name, code, done=done)
                writer.close()  # so that it opens anew
            for _ in range(10):
                if writer.write({place: [(b"key", b"%d" % number)] * 2 for place in PLACES}):
                    break
    assert not broker.is_due(fault)
    for place in PLACES:
        assert broker.committed(place) == [b"0", b"0", b"1", b"1", b"2", b"2"]


def test_one_batch_after_the_other_may_go_to_other_partitions(client: Any) -> None:
    broker, client = client
    with contextlib.closing(Writer(client, "writer")) as writer:
        broker.spoil("EndTxn", -1)
        assert not writer.write({PLACES[0]: [(b"key", b"0")]})
        while not writer.write({PLACES[0]: [(b"key", b"0")]}):
            pass
        assert writer.write({PLACES[1]: [(b"key", b"1")]})
        assert writer.write({place: [(b"key", b"2")] for place in PLACES})
    assert [broker.committed(place) for place in PLACES] == [[b"0", b"2"], [b"1", b"2"]]


def test_what_is_final_is_not_tried_again(client: Any) -> None:
    broker, client = client
    broker.spoil("Produce", 29)
    with contextlib.closing(Writer(client, "writer")) as writer, pytest.raises(DeniedError):
        writer.write({PLACES[0]: [(None, b"0")]})
