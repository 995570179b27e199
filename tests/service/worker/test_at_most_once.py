"""What the partition refuses whatever its engine says: a row that left before, a reuse of what never left."""

import json
from typing import Any

import numpy as np
import pytest

from microdata import GuaranteeError
from stream_algos import Release
from tests.service.worker import test_crashes
from tests.service.worker.chunks import Chunks
from tests.service.worker.test_crashes import Simulation


class Reusing(Chunks):
    """Releases whatever comes after its first cluster alone, with the box of that."""

    _box = None

    def push(self, batch: Any) -> Any:
        if self._box is None:
            release = super().push(batch)
            if len(release):
                self._box = release.ids, release.lo, release.hi
            return release
        ids, lo, hi = self._box  # type: ignore[unreachable]
        count, nothing = len(batch), np.empty(0, np.int64)
        starts, windows = np.arange(count + 1), np.full((count, 2), -1)
        boxes = np.repeat(lo, count, axis=0), np.repeat(hi, count, axis=0)
        return Release(np.repeat(ids, count), *boxes, starts, batch.positions, np.ones(count, bool), windows, nothing)

    def reusable(self) -> Any:
        return super().reusable() if self._box is None else self._box

    def snapshot(self) -> Any:
        ids, lo, hi = self.reusable()
        return {**super().snapshot(), "ids": ids, "lo": lo, "hi": hi}

    def restore(self, snapshot: Any, rows: Any) -> None:
        super().restore(snapshot, rows)
        if len(snapshot["ids"]):
            self._box = snapshot["ids"], snapshot["lo"], snapshot["hi"]


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(test_crashes.ENGINES, "reusing", (Reusing, {}))
    return Simulation([0, 3, 0, 3, 0], 2, 0, "reusing")


def settle(simulation: Any) -> Any:
    """One transaction that commits; what the gate has refused in it."""
    publication = simulation.partition.publish()
    settlement = simulation.partition.settle(publication)
    encoded = simulation.encoder.encode(publication, simulation.partition.rows)
    simulation.committed_output += [message for values in encoded.values() for message in values]
    simulation.durable = settlement.record
    simulation.partition.committed(settlement)
    return publication.refused


def released(simulation: Any) -> Any:
    return [row["trace"] for message in simulation.committed_output for row in json.loads(message)["rows"]]


def test_a_reuse_of_a_box_that_has_left_leaves_also_after_a_restart(simulation: Any) -> None:
    simulation.take(2)
    assert [settle(simulation), settle(simulation)] == [0, 0]
    for _ in range(3):
        simulation.restart()
        simulation.take(1)
        assert [settle(simulation), settle(simulation)] == [0, 0]
    assert sorted(released(simulation)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("restarts", [(), ("owed",), ("before",), ("after",), ("owed", "before", "after")])
def test_a_reuse_of_a_cluster_that_never_left_is_refused_also_after_a_restart(simulation: Any, restarts: Any) -> None:
    simulation.take(2)
    settle(simulation)
    if "owed" in restarts:
        simulation.restart()
    simulation.partition.rows.keep(np.array([1]), None)  # a row of the decided cluster is lost: it is refused whole
    assert settle(simulation) == 1
    if "before" in restarts:
        simulation.restart()
    simulation.take(1)
    settle(simulation)
    if "after" in restarts:
        simulation.restart()
    assert settle(simulation) == 1
    assert released(simulation) == []
    assert simulation.partition.totals["suppressed"] == 3


def test_a_row_that_stays_for_its_window_does_not_leave_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(Chunks):
        windowed = True

        def needed_from(self) -> Any:
            return 0

        def flush(self) -> Any:
            self._held = self._seen
            return self._let_go()

        def push(self, batch: Any) -> Any:
            self._seen = batch
            return super().push(batch)

    monkeypatch.setitem(test_crashes.ENGINES, "forgetful", (Forgetful, {}))
    simulation = Simulation([0, 1, 2], 2, 0, "forgetful")
    simulation.take(2)
    settle(simulation)
    settle(simulation)
    assert sorted(released(simulation)) == [0, 1]
    assert len(simulation.partition.rows) == 2
    with pytest.raises(GuaranteeError, match="2 rows were decided before"):
        simulation.partition.flush()
