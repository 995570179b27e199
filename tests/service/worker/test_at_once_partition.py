"""Engines without delay in a partition that dies at any moment: the gate agrees, and a successor knows the window."""

import json
from typing import Any

import numpy as np
import pytest

from stream_algos import Quantile, Z
from tests.service.worker import test_crashes
from tests.service.worker.test_crashes import Simulation


def z_of(schema: Any, *, k: int, **given: Any) -> Any:
    return Z(schema, z=k, window={"tuples": 60}, height=3, **given)


def quantile_of(schema: Any, *, k: int, **given: Any) -> Any:
    return Quantile(schema, k=k, universe=2000, window=32, **given)


@pytest.mark.parametrize("engine", [z_of, quantile_of])
def test_every_row_leaves_at_most_once_and_with_the_next_transaction(
    monkeypatch: pytest.MonkeyPatch, engine: Any
) -> None:
    monkeypatch.setitem(test_crashes.ENGINES, "at once", (engine, {}))
    people = np.random.default_rng(3).integers(0, 33, 160).tolist()
    run = Simulation(people, 3, 1, "at once")
    for turn in range(25):
        run.cycle(8, ("", "die after", "abort", "die before")[turn % 4])
        assert not len(run.partition.engine.pending())
    while run.partition.position < len(people) or run.partition.dirty:
        run.cycle(8, "")
    traces = [row["trace"] for message in run.committed_output for row in json.loads(message)["rows"]]
    assert len(traces) == len(set(traces))
    assert len(traces) > 120
    assert run.partition.totals["released"] + run.partition.totals["suppressed"] == 160
