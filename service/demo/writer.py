"""A producer that tries again, and doubles nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from typing import TypeAlias

from service.kafka import Client, FinalError, KafkaError, Partition

_READ_SECONDS = 30.0

Records: TypeAlias = Mapping[Partition, Sequence[tuple[bytes | None, bytes]]]
"""Key and value of each record, by the partition that it belongs into."""


class Writer:
    """Writes batches of records, each once and whole, whatever a broker says meanwhile."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._opened = ExitStack()
        self._is_open = False
        self._begun: dict[Partition, int] = {}
        """Where its partitions ended before the batch was tried for the first time."""

    def write(self, records: Records) -> bool:
        """Whether they are there now, all of them; if not, none is: try the same ones again."""
        try:
            self._open()
            if not self._arrived(records):
                self._transact(records)
        except FinalError:
            raise
        except KafkaError:
            self.close()
            return False
        self._begun.clear()
        return True

    def _open(self) -> None:
        """A producer that opens ends what the one before has left open."""
        if not self._is_open:
            self._reader = self._opened.enter_context(closing(self._client.reader()))
            self._producer = self._opened.enter_context(closing(self._client.producer(self._name)))
            self._producer.init_transactions()
            self._is_open = True

    def _arrived(self, records: Records) -> bool:
        """Whether an earlier try has worked, though nobody said so: one partition has what all of them have."""
        ends = {partition: self._reader.watermarks(partition).high for partition in records}
        if not self._begun:
            self._begun = ends
        return any(self._holds_more(partition, end) for partition, end in ends.items())

    def _holds_more(self, partition: Partition, end: int) -> bool:
        """Whether records were committed since the batch was tried for the first time."""
        return any(len(batch) > 0 for batch in self._reader.read(partition, self._begun[partition], end, _READ_SECONDS))

    def _transact(self, records: Records) -> None:
        self._producer.begin()
        for partition, own in records.items():
            self._producer.produce(partition, [value for _, value in own], [key for key, _ in own])
        self._producer.flush()
        self._producer.commit()

    def close(self) -> None:
        """Let go of the connections."""
        self._opened.close()
        self._is_open = False
