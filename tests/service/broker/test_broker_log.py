"""The embedded broker's log, without a network: offsets, sequences, stability, retention, compaction."""

import asyncio
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kafka import errors as kp
from kafka.record.default_records import DefaultRecordBatchBuilder

from service.broker.batch import StoredBatch, assembled, marker, parse, received
from service.broker.compaction import records_of
from service.broker.log import PartitionLog

KEEP = 10**9


def batch(
    *values: Any,
    keys: Any = None,
    producer: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    codec: int = 0,
) -> Any:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=transactional, producer_id=producer,
        producer_epoch=epoch, base_sequence=sequence, batch_size=10**9,
    )  # fmt: skip
    for number, value in enumerate(values):
        builder.append(number, 1000 + number, keys[number] if keys else None, value, [])
    return parse(bytes(builder.build()))


def records(log: Any, *, committed: Any) -> Any:
    """What a client would make of the log: it skips markers, and aborted records if it reads committed ones."""
    data, reached = log.read(log.start, KEEP, committed=committed, whole_batch=True)
    aborted = log.aborted(log.start, reached) if committed else []
    found = []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        each, data = parse(data[:size]), data[size:]
        skipped = any(
            txn.producer_id == each.producer_id and txn.first_offset <= each.base_offset < txn.last_offset
            for txn in aborted
        )
        if not each.is_control and not skipped:
            found += [(record.offset, record.key, record.value) for record in records_of(each)]
    return found


# --- batches


def test_a_sound_batch_is_taken_and_any_flipped_bit_behind_the_length_is_noticed() -> None:
    data = bytes(batch(b"one", b"two").data)
    assert [each.record_count for each in received(data + data, KEEP)] == [2, 2]
    for position in [16, *range(21, len(data))]:
        broken = bytearray(data)
        broken[position] ^= 1
        with pytest.raises((kp.CorruptRecordError, kp.UnsupportedForMessageFormatError)):
            list(received(bytes(broken), KEEP))


@given(st.integers(0, 60))
def test_a_batch_that_is_cut_off_is_refused(length: int) -> None:
    with pytest.raises(kp.CorruptRecordError):
        list(received(bytes(batch(b"one").data)[:length], KEEP))


def test_a_batch_that_is_too_large_or_a_marker_or_has_gaps_is_refused() -> None:
    data = batch(b"x" * 100).data
    with pytest.raises(kp.MessageSizeTooLargeError):
        list(received(data, len(data) - 1))
    with pytest.raises(kp.InvalidRecordError):
        list(received(marker(1, 0, commit=True).data, KEEP))  # type: ignore[arg-type]
    with pytest.raises(kp.InvalidRecordError):
        list(received(assembled((0, 5, 0, 0, -1, -1, -1, 1), b"").data, KEEP))  # type: ignore[arg-type]


# --- offsets and sequences


def test_batches_get_consecutive_offsets_and_keep_their_bytes() -> None:
    log = PartitionLog(KEEP)
    first, second = batch(b"a", b"b", codec=1), batch(b"c")
    assert [log.append(first), log.append(second)] == [0, 2]
    data, reached = log.read(1, KEEP, committed=False, whole_batch=True)
    assert reached == 3
    assert data[21 : len(first.data)] == first.data[21:], "what the checksum covers is untouched"
    assert records(log, committed=True) == [(0, None, b"a"), (1, None, b"b"), (2, None, b"c")]


def test_reading_stops_at_the_size_but_always_moves_on() -> None:
    log = PartitionLog(KEEP)
    for _ in range(3):
        log.append(batch(b"x" * 100))
    size = len(batch(b"x" * 100).data)
    assert log.read(0, size * 2, committed=False, whole_batch=True)[1] == 2
    assert log.read(0, 1, committed=False, whole_batch=True)[1] == 1
    assert log.read(0, 1, committed=False, whole_batch=False) == (b"", 0)
    assert log.read(3, KEEP, committed=False, whole_batch=True) == (b"", 3)
    for wrong in (-1, 4):
        with pytest.raises(kp.OffsetOutOfRangeError):
            log.read(wrong, KEEP, committed=False, whole_batch=True)


def test_what_is_sent_twice_is_written_once_and_what_is_missing_is_noticed() -> None:
    log = PartitionLog(KEEP)
    sent = [batch(b"x", b"y", producer=7, epoch=0, sequence=2 * number) for number in range(4)]
    assert [log.append(each) for each in sent] == [0, 2, 4, 6]
    assert [log.append(each) for each in sent] == [0, 2, 4, 6]
    assert log.end == 8
    with pytest.raises(kp.OutOfOrderSequenceNumberError):
        log.append(batch(b"z", producer=7, epoch=0, sequence=9))
    with pytest.raises(kp.OutOfOrderSequenceNumberError):
        log.append(batch(b"z", producer=7, epoch=1, sequence=3))
    assert log.append(batch(b"z", producer=7, epoch=1, sequence=0)) == 8
    with pytest.raises(kp.InvalidProducerEpochError):
        log.append(batch(b"z", producer=7, epoch=0, sequence=8))


def test_sequences_wrap_around() -> None:
    log = PartitionLog(KEEP)
    log.append(batch(b"a", b"b", producer=7, epoch=0, sequence=2**31 - 2))
    assert log.append(batch(b"c", producer=7, epoch=0, sequence=0)) == 2


# --- transactions


@st.composite
def transactions(draw: Any) -> Any:
    """Interleaved transactions of up to three producers: writes, and ends that commit or abort."""
    return draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.sampled_from(["write", "write", "commit", "abort", "plain"])), max_size=40
        )
    )


@given(transactions())
def test_committed_readers_see_committed_records_in_front_of_the_first_open_one(steps: Any) -> None:
    log = PartitionLog(KEEP)
    fate: dict[int, list[int]] = {}
    decided: dict[int, bool] = {}
    sequences = [0, 0, 0]
    for producer, step in steps:
        if step == "plain":
            decided[log.append(batch(b"p"))] = True
        elif step == "write":
            offset = log.append(
                batch(b"t", producer=producer, epoch=0, sequence=sequences[producer], transactional=True)
            )
            sequences[producer] += 1
            fate.setdefault(producer, []).append(offset)
        else:
            log.end_transaction(producer, 0, commit=step == "commit")
            decided |= dict.fromkeys(fate.pop(producer, []), step == "commit")
    undecided = sorted(offset for offsets in fate.values() for offset in offsets)
    assert log.stable_end == (undecided[0] if undecided else log.end)
    expected = [offset for offset, kept in sorted(decided.items()) if kept and offset < log.stable_end]
    assert [offset for offset, _, _ in records(log, committed=True)] == expected
    assert [offset for offset, _, _ in records(log, committed=False)] == sorted([*decided, *undecided])


def test_a_marker_of_a_newer_epoch_shuts_the_older_one_out() -> None:
    log = PartitionLog(KEEP)
    log.append(batch(b"a", producer=7, epoch=0, sequence=0, transactional=True))
    log.end_transaction(7, 1, commit=False)
    with pytest.raises(kp.InvalidProducerEpochError):
        log.append(batch(b"b", producer=7, epoch=0, sequence=1, transactional=True))
    assert log.append(batch(b"c", producer=7, epoch=1, sequence=0, transactional=True)) == 2


def test_a_waiting_reader_is_woken_by_records_and_by_markers() -> None:
    async def wait() -> None:
        log = PartitionLog(KEEP)
        log.append(batch(b"a", producer=7, epoch=0, sequence=0, transactional=True))
        turn = log.readers_turn()
        assert not turn.done()
        log.end_transaction(7, 0, commit=True)
        await asyncio.wait_for(turn, 1)

    asyncio.run(wait())


# --- retention


@given(st.lists(st.integers(1, 300), min_size=1, max_size=30), st.integers(100, 2000))
def test_retention_by_size_keeps_the_newest(sizes: Any, limit: int) -> None:
    log = PartitionLog(limit)
    for size in sizes:
        log.append(batch(b"x" * size))
    kept = records(log, committed=False)
    assert [offset for offset, _, _ in kept] == list(range(log.start, log.end))
    assert kept[-1][2] == b"x" * sizes[-1], "the newest batch stays, however large"
    if log.start > 0:
        held = sum(len(batch(b"x" * size).data) for size in sizes[log.start :])
        assert held <= limit or log.end - log.start == 1
        assert held + len(batch(b"x" * sizes[log.start - 1]).data) > limit, "no more is deleted than necessary"
        with pytest.raises(kp.OffsetOutOfRangeError):
            log.read(log.start - 1, KEEP, committed=False, whole_batch=True)


def test_retention_waits_for_open_transactions() -> None:
    log = PartitionLog(300)
    log.append(batch(b"x" * 200))
    log.append(batch(b"open", producer=7, epoch=0, sequence=0, transactional=True))
    for _ in range(20):
        log.append(batch(b"x" * 200))
    assert log.start == 1, "what lies in front of the transaction may go, the transaction may not"
    log.end_transaction(7, 0, commit=False)
    assert log.start > 2
    assert log.aborted(log.start, log.end) == [(7, 1, 22)], "its marker is still here"
    for _ in range(3):
        log.append(batch(b"x" * 200))
    assert log.aborted(0, log.end) == []


# --- compaction


KEYS = st.sampled_from([b"a", b"b", b"c"])
WRITES = st.lists(
    st.tuples(
        st.lists(st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=3))), min_size=1, max_size=4),
        st.sampled_from(["plain", "commit", "abort"]),
        st.sampled_from([0, 1]),
    ),
    max_size=15,
)


@given(WRITES, WRITES)
def test_compaction_keeps_the_last_committed_record_of_each_key_at_its_offset(before: Any, after: Any) -> None:
    log = PartitionLog(KEEP, compact=True)
    model: dict[bytes, tuple[int, bytes | None]] = {}
    history: dict[int, tuple[bytes, bytes | None]] = {}
    sequence = 0

    def write(writes: Any) -> None:
        nonlocal sequence
        for pairs, kind, codec in writes:
            keys, values = zip(*pairs, strict=True)
            if kind == "plain":
                offset = log.append(batch(*values, keys=keys, codec=codec))
            else:
                offset = log.append(
                    batch(*values, keys=keys, codec=codec, producer=7, epoch=0, sequence=sequence, transactional=True)
                )
                sequence += len(pairs)
                log.end_transaction(7, 0, commit=kind == "commit")
            if kind != "abort":
                for number, (key, value) in enumerate(pairs):
                    model[key] = (offset + number, value)
                    history[offset + number] = (key, value)

    write(before)
    log.compact_now()
    assert {key: (offset, value) for offset, key, value in records(log, committed=True)} == model
    assert len(records(log, committed=True)) == len(model), "one record per key"
    end = log.end
    write(after)
    assert log.end >= end
    found = records(log, committed=True)
    assert {key: (offset, value) for offset, key, value in found} == model
    assert all(history[offset] == (key, value) for offset, key, value in found)


def test_compaction_leaves_alone_what_is_not_settled() -> None:
    log = PartitionLog(KEEP, compact=True)
    log.append(batch(b"1", keys=[b"a"]))
    log.append(batch(b"2", keys=[b"a"], producer=7, epoch=0, sequence=0, transactional=True))
    log.append(batch(b"3", keys=[b"a"]))
    log.compact_now()
    assert [offset for offset, _, _ in records(log, committed=False)] == [0, 1, 2]
    log.end_transaction(7, 0, commit=False)
    log.compact_now()
    assert [offset for offset, _, _ in records(log, committed=False)] == [2]


def test_the_last_marker_of_each_producer_leaves_an_empty_batch_behind() -> None:
    log = PartitionLog(KEEP, compact=True)
    for sequence, producer in enumerate([7, 7, 8]):
        own = sequence if producer == 7 else 0
        log.append(batch(b"x", keys=[b"a"], producer=producer, epoch=0, sequence=own, transactional=True))
        log.end_transaction(producer, 0, commit=True)
    log.compact_now()
    log.compact_now()
    data, _ = log.read(log.start, KEEP, committed=True, whole_batch=True)
    found = []
    while data:
        one = parse(data)
        size = 12 + one.length
        found.append((one.base_offset, one.producer_id, one.is_control, one.record_count))
        assert crc32c(data[21:size]) == one.checksum
        data = data[size:]
    assert found == [(3, 7, True, 0), (4, 8, False, 1), (5, 8, True, 0)]


def test_a_compacted_log_does_not_grow_without_bound() -> None:
    log = PartitionLog(KEEP, compact=True)
    for number in range(2000):
        log.append(batch(b"x" * 1000, keys=[b"%d" % (number % 3)]))
    data, _ = log.read(log.start, KEEP, committed=True, whole_batch=True)
    assert len(data) < 300_000
    assert isinstance(parse(data), StoredBatch)
