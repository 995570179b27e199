"""Random small streams, and an observer that also asks the service's gate."""

from __future__ import annotations

from typing import Any

from service.codec.events import Events
from service.publishing.boxes import PublishedBoxes
from service.publishing.gate import Gate
from service.publishing.rows import Rows
from stream_algos import observing
from stream_algos.observing import cut
from stream_algos.observing import example_stream as stream

__all__ = ["Observer", "cut", "stream"]


class Observer(observing.Observer):
    """Holds every release against the gate too, with all rows that ever came."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._gate = Gate(self.schema, self.engine.models())
        self._boxes = PublishedBoxes(len(self.schema.quasi))

    def judge(self, release: Any) -> None:
        super().judge(release)
        rows, batch = Rows.empty(self.schema), self.rows
        rows.append(Events(batch.positions, batch.persons, batch.quasi, batch.sensitive, (), []), batch.times)
        assert self._gate.passes(release, rows, self._boxes).all(), "the gate refuses a release"
        self._boxes.add(release.ids, release.lo, release.hi)
