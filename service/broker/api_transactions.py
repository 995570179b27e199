"""Requests of transactional and idempotent producers."""

from typing import Any

from kafka import errors as kp
from kafka.protocol.producer import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    InitProducerIdResponse,
    TxnOffsetCommitResponse,
)

from service.broker.api_groups import as_commit, commit_refusal, instance_of
from service.broker.groups import Group
from service.broker.node import Call, by_topic, outcome

_FIRST_VERSION_THAT_KNOWS_FENCED = {"InitProducerId": 4, "AddPartitionsToTxn": 2, "AddOffsetsToTxn": 2, "EndTxn": 2}


def _code(call: Call, api: str, code: int) -> int:
    """Older clients know a fenced producer by another code."""
    if code == kp.ProducerFencedError.errno and call.version < _FIRST_VERSION_THAT_KNOWS_FENCED[api]:
        return int(kp.InvalidProducerEpochError.errno)
    return code


async def init_producer_id(call: Call) -> Any:
    """A producer id and epoch."""
    body = call.body
    known = (body.producer_id, body.producer_epoch) if call.version >= 3 else (-1, -1)
    code, (producer_id, epoch) = outcome(
        lambda: call.node.transactions.init_producer(body.transactional_id, body.transaction_timeout_ms, known),
        (-1, -1),
    )
    code = _code(call, "InitProducerId", code)
    return InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch)


async def add_partitions_to_txn(call: Call) -> Any:
    """Announce where a transaction is going to write: to all of it or to nothing."""
    body, node = call.body, call.node
    topics = body.v3_and_below_topics
    places = [(topic.name, number) for topic in topics for number in topic.partitions]
    codes = {place: outcome(lambda place=place: node.topics.log(*place), None)[0] for place in places}  # type: ignore[misc]
    if any(codes.values()):
        codes = {place: code or int(kp.OperationNotAttemptedError.errno) for place, code in codes.items()}
    else:
        code, _ = outcome(
            lambda: node.transactions.add_partitions(
                node.transactions.current(
                    body.v3_and_below_transactional_id,
                    body.v3_and_below_producer_id,
                    body.v3_and_below_producer_epoch,
                ),
                places,
            ),
            None,
        )
        codes = dict.fromkeys(places, _code(call, "AddPartitionsToTxn", code))
    answer = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    results = [
        answer(
            name=topic.name,
            results_by_partition=[
                answer.AddPartitionsToTxnPartitionResult(
                    partition_index=number, partition_error_code=codes[topic.name, number]
                )
                for number in topic.partitions
            ],
        )
        for topic in topics
    ]
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


async def add_offsets_to_txn(call: Call) -> Any:
    """Announce that a transaction is going to commit a group's offsets."""
    body, transactions = call.body, call.node.transactions
    code, _ = outcome(
        lambda: transactions.add_group(
            transactions.current(body.transactional_id, body.producer_id, body.producer_epoch), body.group_id
        ),
        None,
    )
    return AddOffsetsToTxnResponse(error_code=_code(call, "AddOffsetsToTxn", code))


async def txn_offset_commit(call: Call) -> Any:
    """Offsets that count when the transaction commits; refused to who is not in the group's generation."""
    body, node = call.body, call.node

    def check() -> Group:
        try:
            transaction = node.transactions.current(body.transactional_id, body.producer_id, body.producer_epoch)
        except kp.ProducerFencedError as error:
            raise kp.InvalidProducerEpochError(str(error)) from error
        if body.group_id not in transaction.groups:
            raise kp.InvalidTxnStateError("the group was not announced to the transaction")
        generation, member_id = (body.generation_id, body.member_id) if call.version >= 3 else (-1, "")
        group = node.groups.get(body.group_id)
        if group is None and generation >= 0:
            raise kp.IllegalGenerationError("there is no such group")
        group = node.groups.ensure(body.group_id)
        group.check_commit(member_id, generation, transactional=True, instance=instance_of(call))
        return group

    refused, group = outcome(check, None)
    answer = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic

    def hold(name: str, asked: Any) -> Any:
        code = refused or commit_refusal(node, name, asked)
        if group is not None and not code:
            group.hold(body.producer_id, {(name, asked.partition_index): as_commit(asked)})
        return answer.TxnOffsetCommitResponsePartition(partition_index=asked.partition_index, error_code=code)

    return TxnOffsetCommitResponse(topics=by_topic(call, answer, hold))


async def end_txn(call: Call) -> Any:
    """Commit or abort."""
    body, transactions = call.body, call.node.transactions
    code, _ = outcome(
        lambda: transactions.end(
            transactions.current(body.transactional_id, body.producer_id, body.producer_epoch), commit=body.committed
        ),
        None,
    )
    return EndTxnResponse(error_code=_code(call, "EndTxn", code))
