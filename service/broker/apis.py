"""The requests that the broker answers, and in which versions."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from kafka.protocol import admin, consumer, metadata, producer

from service.broker import api_data, api_groups, api_topics, api_transactions
from service.broker.node import Call

API_VERSIONS = 18


class Api(NamedTuple):
    """How to read a request and who answers it."""

    request: Any
    oldest: int
    newest: int
    answer: Callable[[Call], Awaitable[Any]]


# The newest versions stop short of topic ids in place of names, and of transactions without announcement
# (KIP-890): both are optional, and clients fall back.
APIS: dict[int, Api] = {
    api.request.API_KEY: api
    for api in (
        Api(producer.ProduceRequest, 3, 11, api_data.produce),
        Api(consumer.FetchRequest, 4, 12, api_data.fetch),
        Api(consumer.ListOffsetsRequest, 1, 7, api_data.list_offsets),
        Api(consumer.OffsetForLeaderEpochRequest, 2, 4, api_data.offset_for_leader_epoch),
        Api(admin.DeleteRecordsRequest, 0, 2, api_data.delete_records),
        Api(metadata.MetadataRequest, 0, 12, api_topics.metadata),
        Api(admin.CreateTopicsRequest, 2, 7, api_topics.create_topics),
        Api(admin.DeleteTopicsRequest, 1, 6, api_topics.delete_topics),
        Api(admin.CreatePartitionsRequest, 0, 3, api_topics.create_partitions),
        Api(admin.DescribeConfigsRequest, 1, 4, api_topics.describe_configs),
        Api(admin.IncrementalAlterConfigsRequest, 0, 1, api_topics.alter_configs),
        Api(admin.DescribeClusterRequest, 0, 1, api_topics.describe_cluster),
        Api(metadata.FindCoordinatorRequest, 0, 4, api_groups.find_coordinator),
        Api(consumer.JoinGroupRequest, 0, 9, api_groups.join_group),
        Api(consumer.SyncGroupRequest, 0, 5, api_groups.sync_group),
        Api(consumer.HeartbeatRequest, 0, 4, api_groups.heartbeat),
        Api(consumer.LeaveGroupRequest, 0, 5, api_groups.leave_group),
        Api(consumer.OffsetCommitRequest, 2, 9, api_groups.offset_commit),
        Api(consumer.OffsetFetchRequest, 1, 8, api_groups.offset_fetch),
        Api(admin.ListGroupsRequest, 0, 5, api_groups.list_groups),
        Api(admin.DescribeGroupsRequest, 0, 5, api_groups.describe_groups),
        Api(producer.InitProducerIdRequest, 0, 5, api_transactions.init_producer_id),
        Api(producer.AddPartitionsToTxnRequest, 0, 3, api_transactions.add_partitions_to_txn),
        Api(producer.AddOffsetsToTxnRequest, 0, 3, api_transactions.add_offsets_to_txn),
        Api(producer.TxnOffsetCommitRequest, 0, 3, api_transactions.txn_offset_commit),
        Api(producer.EndTxnRequest, 0, 3, api_transactions.end_txn),
    )
}
NEWEST_API_VERSIONS = 4


def supported() -> Any:
    """The list of requests and versions, for clients that ask first."""
    entry = metadata.ApiVersionsResponse.ApiVersion
    keys = [entry(api_key=key, min_version=api.oldest, max_version=api.newest) for key, api in sorted(APIS.items())]
    return [*keys, entry(api_key=API_VERSIONS, min_version=0, max_version=NEWEST_API_VERSIONS)]
