"""A reader that is heard: what takes long to read again is no loop that has stopped turning."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from service.kafka import Partition, Reader, RecordBatch, Watermarks


class HeardReader:
    """Tells of every batch that it reads."""

    def __init__(self, reader: Reader, tell: Callable[[Partition], None]) -> None:
        self._reader = reader
        self._tell = tell

    def watermarks(self, partition: Partition) -> Watermarks:
        """See the port."""
        return self._reader.watermarks(partition)

    def read(self, partition: Partition, start: int, stop: int, timeout: float) -> Iterator[RecordBatch]:
        """See the port."""
        for batch in self._reader.read(partition, start, stop, timeout):
            self._tell(partition)
            yield batch

    def close(self) -> None:
        """See the port."""
        self._reader.close()
