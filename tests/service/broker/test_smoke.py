"""A stream from end to end on the embedded broker, in seconds: the first thing to break where something is wrong."""

import contextlib
from typing import Any

import pytest

from tests.service.kafka.worker_world import Town, event
from tests.service.kafka.world import World


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_a_worker_anonymizes_what_it_is_fed(embedded_kafka: Any, client: str) -> None:
    with contextlib.ExitStack() as stack:
        town = Town(World(client, embedded_kafka, stack))
        town.feed(*(event(number, number % 9) for number in range(30)))
        worker = town.start()
        try:
            town.until_all_left(worker, 30)
        finally:
            town.stop()
        released = town.released()
        assert len(set(released)) == len(released) > 20
        town.assert_each_cluster_has(3, lambda trace: trace % 9)
        town.assert_never_under_two_boxes()
