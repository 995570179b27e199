"""The last value per key: what a compacted topic keeps."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from kafka import errors as kp
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from service.broker.batch import HEADER, StoredBatch, assembled, emptied, parse


class _Range(Protocol):
    """A producer's aborted records."""

    @property
    def producer_id(self) -> int: ...
    @property
    def first_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...


def records_of(batch: StoredBatch) -> Iterator[Any]:
    """The records of a batch: the only place where a broker looks inside."""
    yield from DefaultRecordBatch(batch.data)


def compacted(batches: list[StoredBatch], aborted: Iterable[_Range]) -> list[StoredBatch] | None:
    """Settled batches without superseded and aborted records and without markers.

    As in Kafka the last marker of each producer leaves an empty batch behind. None when a batch is compressed with
    something that this Python cannot read: then everything stays.
    """
    skipped = list(aborted)
    data = [each for each in batches if not each.is_control and not _is_aborted(each, skipped)]
    last = {each.producer_id: each for each in batches if each.is_control}
    try:
        latest = {record.key: record.offset for batch in data for record in records_of(batch)}
        thinned = [_thinned(batch, latest) for batch in data]
    except (kp.UnsupportedCodecError, AssertionError):
        return None
    kept = [batch for batch in thinned if batch is not None]
    return sorted([*kept, *map(emptied, last.values())], key=lambda batch: batch.base_offset)


def _is_aborted(batch: StoredBatch, skipped: list[_Range]) -> bool:
    return batch.is_transactional and any(
        each.producer_id == batch.producer_id and each.first_offset <= batch.base_offset < each.last_offset
        for each in skipped
    )


def _thinned(batch: StoredBatch, latest: dict[bytes, int]) -> StoredBatch | None:
    """The batch with the latest records only, at their old offsets; None when none is left."""
    records = list(records_of(batch))
    kept = [record for record in records if latest[record.key] == record.offset]
    if len(kept) == len(records):
        return batch
    if not kept:
        return None
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=batch.attributes & 0x07,
        is_transactional=batch.is_transactional,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        batch_size=2**31 - 1,
    )
    for record in kept:
        delta = record.offset - batch.base_offset
        builder.append(delta, record.timestamp, record.key, record.value, record.headers)
    built = bytes(builder.build())
    rebuilt = parse(built)
    fields = (
        rebuilt.attributes, batch.last_offset_delta, rebuilt.base_timestamp, rebuilt.max_timestamp,
        batch.producer_id, batch.producer_epoch, batch.base_sequence, len(kept),
    )  # fmt: skip
    return assembled(fields, built[HEADER.size :]).stamped(batch.base_offset)
