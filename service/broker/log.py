"""The log of one partition: batches in offset order, who wrote them, and what of it may be read."""

import asyncio
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka import errors as kp

from service.broker.batch import StoredBatch, marker
from service.broker.compaction import compacted

_REMEMBERED_BATCHES = 5  # a producer has at most this many requests under way
_COMPACT_FROM_BYTES = 65_536


class AbortedTransaction(NamedTuple):
    """From where to where a producer's records are to be skipped."""

    producer_id: int
    first_offset: int
    last_offset: int  # of the marker


@dataclass(slots=True)
class _Producer:
    """What a partition knows of a producer: its epoch and its latest batches, to drop what is sent twice."""

    epoch: int
    recent: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_BATCHES))


class PartitionLog:
    """Append, read, forget."""

    def __init__(self, retention_bytes: int, *, compact: bool = False) -> None:
        self.start = 0
        self.end = 0
        self.retention_bytes = retention_bytes
        self.compact = compact
        self._size = 0
        self._size_when_compacted = 0
        self._batches: list[StoredBatch] = []
        self._bases: list[int] = []
        self._producers: dict[int, _Producer] = {}
        self._open: dict[int, int] = {}  # by producer: where its open transaction begins
        self._aborted: list[AbortedTransaction] = []
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def stable_end(self) -> int:
        """Behind the last record whose fate is known: where a reader of committed records stops."""
        return min(self._open.values(), default=self.end)

    def append(self, batch: StoredBatch) -> int:
        """Write a producer's batch; its offset, also when the very same batch is here already."""
        if batch.producer_id >= 0:
            duplicate = self._check_sequence(batch)
            if duplicate is not None:
                return duplicate
        offset = self._write(batch)
        if batch.producer_id >= 0:
            recent = self._producers[batch.producer_id].recent
            recent.append((batch.base_sequence, batch.last_sequence, offset))
            if batch.is_transactional:
                self._open.setdefault(batch.producer_id, offset)
        self._forget()
        return offset

    def _check_sequence(self, batch: StoredBatch) -> int | None:
        """Refuse what comes from a fenced producer or out of order; the offset of what is here already."""
        producer = self._producers.get(batch.producer_id)
        if producer is None:
            self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
            return None
        if batch.producer_epoch < producer.epoch:
            raise kp.InvalidProducerEpochError(f"epoch {producer.epoch} is known, given {batch.producer_epoch}")
        if batch.producer_epoch > producer.epoch:
            if batch.base_sequence != 0:
                raise kp.OutOfOrderSequenceNumberError("a new epoch starts at sequence 0")
            self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
            return None
        for first, last, offset in producer.recent:
            if (first, last) == (batch.base_sequence, batch.last_sequence):
                return offset
        expected = (producer.recent[-1][1] + 1) & 0x7FFFFFFF if producer.recent else batch.base_sequence
        if batch.base_sequence != expected:
            raise kp.OutOfOrderSequenceNumberError(f"sequence {expected} is next, given {batch.base_sequence}")
        return None

    def end_transaction(self, producer_id: int, epoch: int, *, commit: bool) -> None:
        """Write the marker that makes a producer's open records count, or not."""
        producer = self._producers.setdefault(producer_id, _Producer(epoch))
        offset = self._write(marker(producer_id, epoch, commit=commit))
        opened = self._open.pop(producer_id, None)
        if opened is not None and not commit:
            self._aborted.append(AbortedTransaction(producer_id, opened, offset))
        if epoch > producer.epoch:
            producer.epoch = epoch
            producer.recent.clear()
        self._forget()

    def _write(self, batch: StoredBatch) -> int:
        stored = batch.stamped(self.end)
        self._batches.append(stored)
        self._bases.append(stored.base_offset)
        self._size += len(stored.data)
        self.end = stored.last_offset + 1
        self.wake_readers()
        return stored.base_offset

    def read(self, offset: int, max_bytes: int, *, committed: bool, whole_batch: bool) -> tuple[bytes, int]:
        """Batches from the one that holds `offset`, up to `max_bytes`; and the offset behind them.

        With `whole_batch` at least one batch comes, however large, so that a reader always moves on.
        """
        if not self.start <= offset <= self.end:
            raise kp.OffsetOutOfRangeError(f"offsets {self.start} to {self.end} are here, given {offset}")
        limit = self.stable_end if committed else self.end
        found: list[bytes | memoryview] = []
        size, reached = 0, offset
        for index in range(self._index(offset), len(self._batches)):
            batch = self._batches[index]
            if batch.base_offset >= limit:
                break
            size += len(batch.data)
            if size > max_bytes and (found or not whole_batch):
                break
            found.append(batch.data)
            reached = batch.last_offset + 1
        return b"".join(found), reached

    def _index(self, offset: int) -> int:
        """The place of the first batch that reaches `offset`."""
        index = max(bisect_right(self._bases, offset) - 1, 0)
        if index < len(self._batches) and self._batches[index].last_offset < offset:
            index += 1
        return index

    def aborted(self, start: int, stop: int) -> list[AbortedTransaction]:
        """The aborted transactions that touch a range of offsets."""
        return [each for each in self._aborted if each.last_offset >= start and each.first_offset < stop]

    def batches_since(self, timestamp: int) -> list[StoredBatch]:
        """The batches, markers included, with a record of this time or later."""
        return [each for each in self._batches if each.max_timestamp >= timestamp]

    def delete_before(self, offset: int) -> None:
        """Forget everything below an offset."""
        if not 0 <= offset <= self.end:
            raise kp.OffsetOutOfRangeError(f"offsets up to {self.end} are here, given {offset}")
        self._drop_first(next((i for i, each in enumerate(self._batches) if each.last_offset >= offset), None))
        self.start = max(self.start, offset)

    def _forget(self) -> None:
        """Keep the log within its bounds, but never touch what a transaction still holds open."""
        if self.compact:
            if self._size > 2 * max(self._size_when_compacted, _COMPACT_FROM_BYTES):
                self.compact_now()
            return
        surplus, stable, dropped = self._size - self.retention_bytes, self.stable_end, 0
        while surplus > 0 and self._batches[dropped].last_offset < min(stable, self.end - 1):
            surplus -= len(self._batches[dropped].data)
            dropped += 1
        if dropped:
            self._drop_first(dropped)
            self.start = self._batches[0].base_offset

    def _drop_first(self, count: int | None) -> None:
        count = len(self._batches) if count is None else count
        self._size -= sum(len(each.data) for each in self._batches[:count])
        del self._batches[:count]
        del self._bases[:count]
        first = self._bases[0] if self._bases else self.end
        self._aborted = [each for each in self._aborted if each.last_offset >= first]

    def compact_now(self) -> None:
        """Keep the last record of each key among what is stable."""
        stable = self.stable_end
        settled = [each for each in self._batches if each.last_offset < stable]
        kept = compacted(settled, self._aborted)
        if kept is not None:
            self._batches = kept + self._batches[len(settled) :]
            self._bases = [each.base_offset for each in self._batches]
            self._size = sum(len(each.data) for each in self._batches)
            self._aborted = [each for each in self._aborted if each.last_offset >= stable]
        self._size_when_compacted = self._size

    def readers_turn(self) -> asyncio.Future[None]:
        """Done when something has been written or the partition goes away."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(turn)
        turn.add_done_callback(self._waiting.discard)
        return turn

    def wake_readers(self) -> None:
        """Let waiting readers look again."""
        for turn in list(self._waiting):
            if not turn.done():
                turn.set_result(None)
