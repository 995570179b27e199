"""Records whose key belongs to another partition are refused: whoever is told how producers partition can check it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from microdata import Reason
from service.codec import Decoder, Events, Records
from service.codec.events import RECORD_KEY, Refused
from service.kafka import Partition
from service.kafka.partitioners import Partitioner, partitions_of


class PlacedRecords(Records, Protocol):
    """Records of which it is known where they are."""

    @property
    def partition(self) -> Partition:
        """All of them are there."""


@dataclass(frozen=True)
class KeyedDecoder:
    """Decodes records of a topic of so many partitions, chosen by key."""

    decoder: Decoder
    partitioner: Partitioner | None
    """None where nobody has said how producers do it: then nothing is checked."""
    partitions: int

    def decode(self, batch: PlacedRecords) -> Events:
        """Rows and refusals of one batch."""
        events = self.decoder.decode(batch)
        if self.partitioner is None:
            return events
        places = partitions_of(self.partitioner, batch.keys, self.partitions)
        elsewhere = places != batch.partition.number
        if not elsewhere.any():
            return events
        offsets = batch.offsets[elsewhere]
        reasons = np.where(places[elsewhere] < 0, Reason.MISSING, Reason.OTHER_PARTITION)
        refused = [
            Refused(offset, RECORD_KEY, Reason(reason))
            for offset, reason in zip(offsets.tolist(), reasons.tolist(), strict=True)
        ]
        strange = set(offsets.tolist())
        refused += [one for one in events.refused if one.offset not in strange]
        kept = events.at(~np.isin(events.positions, offsets))
        # A person of another partition is never company here: their next events would not be seen.
        rejected = events.rejected and events.rejected.take(~np.isin(events.rejected.rows, offsets))
        return replace(kept, refused=sorted(refused, key=lambda one: one.offset), rejected=rejected)
