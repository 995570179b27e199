"""Requests that move records: produce, fetch, and where the log begins and ends."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from kafka import errors as kp
from kafka.protocol.admin import DeleteRecordsResponse
from kafka.protocol.consumer import FetchResponse, ListOffsetsResponse, OffsetForLeaderEpochResponse
from kafka.protocol.producer import ProduceResponse

from service.broker.batch import received
from service.broker.compaction import records_of
from service.broker.log import PartitionLog
from service.broker.node import Call, Node, by_topic, outcome

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
READ_COMMITTED = 1


async def produce(call: Call) -> Any:
    """Append what was sent; no answer where none is wanted."""
    body = call.body
    topics = []
    for topic in body.topic_data:
        answers = [
            _append(call.node, topic.name, each.index, each.records, body.transactional_id)
            for each in topic.partition_data
        ]
        topics.append(ProduceResponse.TopicProduceResponse(name=topic.name, partition_responses=answers))
    return ProduceResponse(responses=topics) if body.acks else None


def _append(node: Node, name: str, partition: int, records: bytes | None, transactional_id: str | None) -> Any:
    def append() -> tuple[int, int]:
        log = node.topics.log(name, partition)
        topic = node.topics.named(name)
        batches = list(received(records, topic.max_message_bytes))
        for batch in batches:
            if batch.is_transactional:
                place = (name, partition)
                node.transactions.check_write(transactional_id, batch.producer_id, batch.producer_epoch, place)
            if topic.is_compacted and any(record.key is None for record in records_of(batch)):
                raise kp.InvalidRecordError("records of a compacted topic need a key")
        offsets = [log.append(batch) for batch in batches]
        return offsets[0], log.start

    code, (offset, start) = outcome(append, (-1, -1))
    response = ProduceResponse.TopicProduceResponse.PartitionProduceResponse
    return response(index=partition, error_code=code, base_offset=offset, log_start_offset=start)


class _Wanted(NamedTuple):
    """One partition of a fetch request."""

    topic: str
    partition: int
    offset: int
    max_bytes: int


async def fetch(call: Call) -> Any:
    """Records from given offsets on; waits until there is enough or the time is over.

    Sessions are declined: every answer says session 0, and clients then send full requests.
    """
    body = call.body
    wanted = [
        _Wanted(topic.topic, each.partition, each.fetch_offset, each.partition_max_bytes)
        for topic in body.topics
        for each in topic.partitions
    ]
    committed = body.isolation_level == READ_COMMITTED
    deadline = time.monotonic() + body.max_wait_ms / 1000
    while True:
        answers, size, urgent = _collect(call.node, wanted, body.max_bytes, committed=committed)
        patience = deadline - time.monotonic()
        if size >= body.min_bytes or urgent or patience <= 0:
            return FetchResponse(error_code=0, session_id=0, responses=answers)
        turns = [log.readers_turn() for log in _logs(call.node, wanted)]
        await asyncio.wait(turns, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        for turn in turns:
            turn.cancel()


def _logs(node: Node, wanted: list[_Wanted]) -> Iterator[PartitionLog]:
    for each in wanted:
        yield node.topics.log(each.topic, each.partition)


def _collect(node: Node, wanted: list[_Wanted], max_bytes: int, *, committed: bool) -> tuple[list[Any], int, bool]:
    """The answer as of now, its size, and whether an error makes it urgent."""
    topics: dict[str, list[Any]] = {}
    size, urgent = 0, not wanted
    for each in wanted:
        room = min(each.max_bytes, max_bytes - size)
        answer = _read(node, each, room, committed=committed, whole_batch=size == 0)
        size += len(answer.records)
        urgent = urgent or answer.error_code != 0
        topics.setdefault(each.topic, []).append(answer)
    response = FetchResponse.FetchableTopicResponse
    return [response(topic=name, partitions=answers) for name, answers in topics.items()], size, urgent


def _read(node: Node, wanted: _Wanted, room: int, *, committed: bool, whole_batch: bool) -> Any:
    answer = FetchResponse.FetchableTopicResponse.PartitionData
    try:
        log = node.topics.log(wanted.topic, wanted.partition)
        records, reached = log.read(wanted.offset, room, committed=committed, whole_batch=whole_batch)
    except kp.BrokerResponseError as refusal:
        return answer(
            partition_index=wanted.partition, error_code=refusal.errno, high_watermark=-1, records=b"",
            aborted_transactions=None,
        )  # fmt: skip
    aborted = [
        answer.AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in log.aborted(wanted.offset, reached)
    ]
    return answer(
        partition_index=wanted.partition,
        error_code=0,
        high_watermark=log.end,
        last_stable_offset=log.stable_end,
        log_start_offset=log.start,
        aborted_transactions=aborted if committed else None,
        preferred_read_replica=-1,
        records=records,
    )


async def list_offsets(call: Call) -> Any:
    """The first or last offset, or the first one of a time."""
    committed = call.body.isolation_level == READ_COMMITTED
    answer = ListOffsetsResponse.ListOffsetsTopicResponse

    def find(name: str, asked: Any) -> Any:
        number = asked.partition_index
        code, (stamp, offset) = outcome(
            lambda: _offset(call.node.topics.log(name, number), asked.timestamp, committed=committed), (-1, -1)
        )
        return answer.ListOffsetsPartitionResponse(
            partition_index=number,
            error_code=code,
            timestamp=stamp,
            offset=offset,
            leader_epoch=-1 if code else 0,
        )

    return ListOffsetsResponse(topics=by_topic(call, answer, find))


def _offset(log: PartitionLog, timestamp: int, *, committed: bool) -> tuple[int, int]:
    """A timestamp and an offset, each -1 where there is none to tell."""
    if timestamp == LATEST:
        return -1, log.stable_end if committed else log.end
    if timestamp == EARLIEST:
        return -1, log.start
    records = [
        (record.timestamp, record.offset)
        for batch in log.batches_since(max(timestamp, 0))
        for record in records_of(batch)
        if record.offset >= log.start and record.timestamp >= timestamp
    ]
    if timestamp == MAX_TIMESTAMP:
        return max(records, key=lambda each: each[0], default=(-1, -1))
    return min(records, key=lambda each: each[1], default=(-1, -1))


async def offset_for_leader_epoch(call: Call) -> Any:
    """Where an epoch of leadership ended; here the first one never does."""
    answer = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult

    def find(name: str, number: int) -> Any:
        code, end = outcome(lambda: call.node.topics.log(name, number).end, -1)
        return answer.EpochEndOffset(error_code=code, partition=number, leader_epoch=-1 if code else 0, end_offset=end)

    topics = [
        answer(topic=topic.topic, partitions=[find(topic.topic, each.partition) for each in topic.partitions])
        for topic in call.body.topics
    ]
    return OffsetForLeaderEpochResponse(topics=topics)


async def delete_records(call: Call) -> Any:
    """Forget everything below given offsets."""
    answer = DeleteRecordsResponse.DeleteRecordsTopicResult

    def delete(name: str, asked: Any) -> Any:
        code, low = outcome(lambda: _delete_before(call.node.topics.log(name, asked.partition_index), asked.offset), -1)
        return answer.DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=low, error_code=code
        )

    return DeleteRecordsResponse(topics=by_topic(call, answer, delete))


def _delete_before(log: PartitionLog, offset: int) -> int:
    """Where the log begins afterwards."""
    log.delete_before(log.end if offset == LATEST else offset)
    return log.start
