"""A window engine in the worker: released rows still count, so a successor reads them again."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from stream_algos import SabreW
from tests.service.kafka.worker_world import SCHEMA, Town, people, renamed

GIVEN = {"t": 0.5, "k": 3, "window": {"size": 40, "advance": 10}}


@pytest.fixture
def town(world: Any) -> Iterator[Any]:
    town = Town(world)
    engine = partial(SabreW, SCHEMA, **GIVEN)  # type: ignore[arg-type]
    town.stream = renamed(town.stream, engine=engine, models=engine().models())
    yield town
    town.stop()


def test_a_successor_goes_on_in_the_middle_of_a_window(town: Any) -> None:
    events = people(200, 12)
    town.feed(*events[:95])
    first = town.start()
    town.until(lambda: len(town.released()) + first.metrics.status()["gauges"]["pending"] == 95)
    town.stop()
    assert 0 < len(town.released()) < 95
    town.feed(*events[95:])
    second = town.start()
    town.until(lambda: second.metrics.unready() is None)
    town.until_all_left(second, 200)
    town.stop()
    released = town.released()
    assert len(released) == len(set(released)) > 150
    assert second.metrics.status()["counts"]["refused_releases"] == 0
    person = {json.loads(e)["trace"]: json.loads(e)["who"] for e in events}
    town.assert_each_cluster_has(3, person.__getitem__)
    town.assert_never_under_two_boxes()
