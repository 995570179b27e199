"""Dead letters: JSON for whoever looks after a stream, whatever the format of its records."""

from __future__ import annotations

import msgspec

from service.codec.events import Refused
from service.kafka import Partition


def dead_letter(partition: Partition, refused: Refused) -> bytes:
    """Where a refused record is and why it was refused; never what it holds."""
    return msgspec.json.encode(
        {
            "topic": partition.topic,
            "partition": partition.number,
            "offset": refused.offset,
            "field": refused.field,
            "reason": refused.reason.code,
        }
    )
