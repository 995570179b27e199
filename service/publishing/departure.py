"""What leaves at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stream_algos import Release


@dataclass(frozen=True, eq=False)
class Departure:
    """What one partition publishes in one transaction, or a replay at once: checked clusters and the rows they hold."""

    clusters: Release
    rows: NDArray[np.int64]
    """Index into the rows that are kept of each member."""
    refused: int = 0
    """Clusters that the gate refused: their members are suppressed."""
    suppressed: int = 0
    """Members of refused clusters."""
    held_back: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    """Ids of refused clusters; others of the same id may leave."""
    messages: Mapping[int, Sequence[bytes]] = field(default_factory=dict)
    """The clusters encoded, by output partition."""
