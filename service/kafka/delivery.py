"""What a broker says about a record that it has taken."""

from service.kafka.errors import AbortableError
from service.kafka.port import Partition


def offset_of(partition: Partition, offset: int | None) -> int:
    """Where a record was written; a broker that has it from an earlier try already may not know where."""
    if offset is None or offset < 0:
        raise AbortableError(
            f"topic {partition.topic!r}: the broker took a record and did not say at which offset", "UNKNOWN_OFFSET"
        )
    return offset
