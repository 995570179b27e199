"""Record batches (message format 2) as they travel: opaque but for their header.

A broker numbers batches and checks them; it has no business with the records inside. Offset and leader epoch
lie outside of the checksum, so stamping them leaves the rest of the bytes as the producer made them.
"""

import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c
from kafka import errors as kp

HEADER = struct.Struct(">qiibIhiqqqhii")
CHECKSUM_FROM = 21  # the checksum covers everything behind itself
LENGTH_FROM = 12  # the length counts everything behind itself
MAGIC = 2

_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_OFFSET = struct.Struct(">q")
_LEADER_EPOCH_ZERO = bytes(4)


class StoredBatch(NamedTuple):
    """The bytes of a batch, and its header."""

    data: bytes | memoryview
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    checksum: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        """The offset of the last record, also when compaction has removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; sequences wrap within 31 bits."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether it is a marker rather than data."""
        return bool(self.attributes & _CONTROL)

    def stamped(self, offset: int) -> "StoredBatch":
        """The same batch at its place in the log, in bytes of its own."""
        data = b"".join((_OFFSET.pack(offset), self.data[8:LENGTH_FROM], _LEADER_EPOCH_ZERO, self.data[16:]))
        return self._replace(base_offset=offset, leader_epoch=0, data=data)


def parse(data: bytes | memoryview) -> StoredBatch:
    """One batch, as it stands."""
    header: tuple[int, ...] = HEADER.unpack_from(data)
    return StoredBatch(data, *header)


def received(records: bytes | None, max_bytes: int) -> Iterator[StoredBatch]:
    """The batches that a producer sent, checked: complete, of format 2, sound, data, not too large."""
    view = memoryview(records or b"")
    if len(view) < HEADER.size:
        raise kp.CorruptRecordError("no complete record batch")
    while view:
        if len(view) < HEADER.size:
            raise kp.CorruptRecordError("a record batch is cut off")
        size = LENGTH_FROM + _length(view)
        batch = parse(view[:size])
        if batch.magic != MAGIC:
            raise kp.UnsupportedForMessageFormatError(f"magic must be {MAGIC}, given {batch.magic}")
        if size > max_bytes:
            raise kp.MessageSizeTooLargeError(f"a batch may have {max_bytes} bytes, given {size}")
        if size > len(view) or crc32c(view[CHECKSUM_FROM:size]) != batch.checksum:
            raise kp.CorruptRecordError("a record batch does not match its checksum")
        if batch.is_control or batch.record_count < 1 or batch.last_offset_delta != batch.record_count - 1:
            raise kp.InvalidRecordError("producers send data, numbered without gaps")
        yield batch
        view = view[size:]


def _length(view: memoryview) -> int:
    (length,) = struct.unpack_from(">i", view, 8)
    if length < HEADER.size - LENGTH_FROM:
        raise kp.CorruptRecordError("a record batch is shorter than its header")
    return int(length)


def marker(producer_id: int, producer_epoch: int, *, commit: bool) -> StoredBatch:
    """A control batch that ends a transaction in one partition."""
    key = struct.pack(">hh", 0, 1 if commit else 0)
    value = struct.pack(">hi", 0, 0)
    # Lengths are zigzag varints; none of these needs more than one byte.
    record = bytes((0, 0, 0, len(key) * 2)) + key + bytes((len(value) * 2,)) + value + bytes((0,))
    now = int(time.time() * 1000)
    fields = (_TRANSACTIONAL | _CONTROL, 0, now, now, producer_id, producer_epoch, -1, 1)
    return assembled(fields, bytes((len(record) * 2,)) + record)


def emptied(batch: StoredBatch) -> StoredBatch:
    """What is left at its place of a batch whose records are gone."""
    fields = (
        batch.attributes, batch.last_offset_delta, batch.base_timestamp, batch.max_timestamp,
        batch.producer_id, batch.producer_epoch, batch.base_sequence, 0,
    )  # fmt: skip
    return assembled(fields, b"").stamped(batch.base_offset)


def assembled(fields: tuple[int, ...], records: bytes) -> StoredBatch:
    """A batch of the header fields behind the checksum and of encoded records."""
    body = struct.pack(">hiqqqhii", *fields) + records
    length = CHECKSUM_FROM - LENGTH_FROM + len(body)
    return parse(struct.pack(">qiibI", 0, length, 0, MAGIC, crc32c(body)) + body)
