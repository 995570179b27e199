"""Any algorithm for tables behind Kafka: blocks of a topic, across a restart and a block that was too poor."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from stream_algos import Blocks
from tests.service.kafka.worker_world import SCHEMA, Town, event, people, renamed


@pytest.fixture
def town(world: Any) -> Iterator[Any]:
    town = Town(world)
    engine = partial(Blocks, SCHEMA, size=40, table={"algorithm": "top_down", "k": 3, "l": 2})
    town.stream = renamed(town.stream, engine=engine, models=engine().models())
    yield town
    town.stop()


def test_a_successor_goes_on_in_the_middle_of_a_block(town: Any) -> None:
    poor = [event(f"poor{number}", 1) for number in range(40)]
    events = [*poor, *people(150, 12)]
    town.feed(*events[:75])
    first = town.start()
    town.until(lambda: first.metrics.status()["gauges"]["pending"] == 75)
    town.stop()
    assert not town.released()
    town.feed(*events[75:])
    second = town.start()
    town.until_all_left(second, 190)
    town.stop()
    released = town.released()
    assert len(released) == len(set(released)) > 150
    assert {f"poor{number}" for number in range(40)} <= set(released)
    assert second.metrics.status()["counts"]["refused_releases"] == 0
    person = {json.loads(e)["trace"]: json.loads(e)["who"] for e in events}
    town.assert_each_cluster_has(3, person.__getitem__)
    town.assert_never_under_two_boxes()
