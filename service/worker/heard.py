"""A reader that is heard: what takes long to read again is no loop that has stopped turning."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from service.kafka import Partition, Reader, RecordBatch, Watermarks


class HeardReader:
    """Tells of every batch that it reads, and which share of what was asked for is read then."""

    def __init__(self, reader: Reader, tell: Callable[[Partition, float], None]) -> None:
        self._reader = reader
        self._tell = tell

    def watermarks(self, partition: Partition) -> Watermarks:
        """See the port."""
        return self._reader.watermarks(partition)

    def read(self, partition: Partition, start: int, stop: int, timeout: float) -> Iterator[RecordBatch]:
        """See the port."""
        for batch in self._reader.read(partition, start, stop, timeout):
            done = int(batch.offsets[-1]) + 1 - start if len(batch) else 0
            self._tell(partition, done / max(1, stop - start))
            yield batch

    def close(self) -> None:
        """See the port."""
        self._reader.close()
