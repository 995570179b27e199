"""How producers choose the partition of a record by its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from service.kafka import _partitioner_kernels as kernels

Partitioner: TypeAlias = Literal["murmur2", "crc32", "fnv1a"]
"""murmur2: Java's client, kafka-python and most others; crc32: librdkafka unless told otherwise; fnv1a: Sarama."""

_HASHES = {"murmur2": kernels.murmur2, "crc32": kernels.crc32, "fnv1a": kernels.fnv1a}


def partitions_of(partitioner: Partitioner, keys: Sequence[bytes | None], partitions: int) -> NDArray[np.int64]:
    """Where a producer puts a record with each key, in a topic of so many partitions; -1 without a key: anywhere.

    >>> partitions_of("murmur2", [b"alice", b"bob", None], 7).tolist()
    [1, 5, -1]
    """
    column = pa.array(keys, pa.large_binary())
    _, starts, data = column.buffers()
    count = len(column)
    offsets = np.frombuffer(starts, np.int64, count + 1) if count else np.zeros(1, np.int64)
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    chosen = _HASHES[partitioner](offsets, content) % partitions
    chosen[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return chosen
