"""Engines without delay behind Kafka: what comes leaves with the next transaction, across a restart too."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from service.worker.warmup import warm_up
from stream_algos import Quantile, Z
from tests.service.kafka.worker_world import SCHEMA, Town, event, renamed

PATIENCE = 60
"""Seconds, on a machine that does much else; the worker of load_tests/worker_delay.py takes about one."""
ENGINES: dict[str, Any] = {
    "z": partial(Z, SCHEMA, z=3, window={"tuples": 120}, height=3),
    "quantile": partial(Quantile, SCHEMA, k=3, universe=2000, window=64),
}


@pytest.fixture(params=ENGINES)
def town(world: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    town = Town(world)
    engine = ENGINES[request.param]
    town.stream = renamed(town.stream, engine=engine, models=engine().models())
    warm_up(town.stream)  # as every worker's process does: whoever compiles does not poll
    yield town
    town.stop()


def test_nothing_waits_and_a_successor_knows_the_window(town: Any) -> None:
    ages = np.random.default_rng(3).integers(0, 100, 240).tolist()
    events = [event(number, age) for number, age in enumerate(ages)]
    town.feed(*events[:130])
    first = town.start()
    town.until_settled(first, 130)
    gauges = first.metrics.status()["gauges"]
    assert gauges["pending"] == 0
    # Decided when it comes, published by the transaction behind the one that commits the decision.
    assert 0 < gauges["delay"] < PATIENCE
    town.stop()
    before = town.released()
    town.feed(*events[130:])
    second = town.start()
    town.until_settled(second, 110)
    town.stop()
    released = town.released()
    assert len(released) == len(set(released)) > 180
    # Who came after the restart found the company of those before it: hardly anybody is suppressed.
    assert len(released) - len(before) > 95
    status = second.metrics.status()["counts"]
    assert status["refused_releases"] == 0
    assert all(len(cluster["rows"]) == 1 for cluster in town.output())
    assert "undeclared" not in json.dumps(town.output())
