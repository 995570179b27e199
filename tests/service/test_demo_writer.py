"""The demo's producer on a broker that refuses: every batch arrives, and once."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from service.demo import Writer
from service.kafka import DeniedError, KafkaSettings, Partition, connect
from tests.service.kafka.faulty_broker import FaultyBroker

PLACE = Partition("orders", 0)


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
            admin.create_topic(PLACE.topic, 1)
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
                if writer.write(PLACE, [b"%d" % number] * 2):
                    break
    assert not broker.is_due(fault)
    assert broker.committed(PLACE) == [b"0", b"0", b"1", b"1", b"2", b"2"]


def test_what_is_final_is_not_tried_again(client: Any) -> None:
    broker, client = client
    broker.spoil("Produce", 29)
    with contextlib.closing(Writer(client, "writer")) as writer, pytest.raises(DeniedError):
        writer.write(PLACE, [b"0"])
