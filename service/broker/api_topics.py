"""Requests about topics and the cluster."""

from typing import Any
from uuid import UUID

from kafka import errors as kp
from kafka.protocol.admin import (
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    DescribeClusterResponse,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
)
from kafka.protocol.metadata import MetadataResponse

from service.broker.node import NODE_ID, Call, Node, explained, outcome
from service.broker.topics import DEFAULTS, Topic, check_config

NO_ID = UUID(int=0)
TOPIC_RESOURCE = 2
DYNAMIC_TOPIC_CONFIG, DEFAULT_CONFIG = 1, 5
SET, DELETE = 0, 1


async def metadata(call: Call) -> Any:
    """Who leads what: always this broker."""
    node, body = call.node, call.body
    asked_for_all = body.topics is None or (call.version == 0 and not body.topics)
    if asked_for_all:
        topics = [_describe(topic) for topic in node.topics]
    else:
        creating = node.auto_create_topics and (call.version < 4 or body.allow_auto_topic_creation)
        topics = [_find(node, each, creating=creating) for each in body.topics]
    broker = MetadataResponse.MetadataResponseBroker(node_id=NODE_ID, host=node.host, port=node.port, rack=None)
    return MetadataResponse(
        brokers=[broker], cluster_id=node.cluster_id, controller_id=NODE_ID, topics=topics, error_code=0
    )


def _find(node: Node, asked: Any, *, creating: bool) -> Any:
    try:
        if asked.name is None:
            return _describe(node.topics.with_id(asked.topic_id))
        if creating and all(topic.name != asked.name for topic in node.topics):
            node.topics.create(asked.name, 1, {})
        return _describe(node.topics.named(asked.name))
    except kp.BrokerResponseError as refusal:
        return MetadataResponse.MetadataResponseTopic(
            error_code=refusal.errno, name=asked.name, topic_id=asked.topic_id or NO_ID, partitions=[]
        )


def _describe(topic: Topic) -> Any:
    answer = MetadataResponse.MetadataResponseTopic
    partitions = [
        answer.MetadataResponsePartition(
            error_code=0,
            partition_index=number,
            leader_id=NODE_ID,
            leader_epoch=0,
            replica_nodes=[NODE_ID],
            isr_nodes=[NODE_ID],
            offline_replicas=[],
        )
        for number in range(len(topic.partitions))
    ]
    return answer(error_code=0, name=topic.name, topic_id=topic.topic_id, is_internal=False, partitions=partitions)


async def create_topics(call: Call) -> Any:
    """Create topics with partitions and settings; there is one copy of each."""
    answers = [_create(call.node, each, dry_run=call.body.validate_only) for each in call.body.topics]
    return CreateTopicsResponse(topics=answers)


def _create(node: Node, asked: Any, *, dry_run: bool) -> Any:
    made: list[Topic] = []

    def create() -> None:
        if asked.replication_factor not in {-1, 1}:
            raise kp.InvalidReplicationFactorError("there is one broker, so the replication factor is 1")
        partitions = 1 if asked.num_partitions == -1 else asked.num_partitions
        config = {each.name: each.value for each in asked.configs}
        made.append(node.topics.create(asked.name, partitions, config, dry_run=dry_run))

    answer = CreateTopicsResponse.CreatableTopicResult
    said = explained(create)
    if not made:
        return answer(name=asked.name, topic_id=NO_ID, configs=[], **said)
    configs = [
        answer.CreatableTopicConfigs(
            name=key, value=made[0].setting(key), read_only=False, config_source=_source(made[0], key)
        )
        for key in DEFAULTS
    ]
    return answer(
        name=asked.name,
        topic_id=NO_ID if dry_run else made[0].topic_id,
        num_partitions=1 if asked.num_partitions == -1 else asked.num_partitions,
        replication_factor=1,
        configs=configs,
        **said,
    )


async def delete_topics(call: Call) -> Any:
    """Delete topics by name or id."""
    answers = []
    asked = [(each.name, each.topic_id) for each in call.body.topics or []]
    for name, topic_id in asked or [(each, NO_ID) for each in call.body.topic_names or []]:
        code, found = outcome(lambda name=name, topic_id=topic_id: _delete(call.node, name, topic_id), None)  # type: ignore[misc]
        answers.append(
            DeleteTopicsResponse.DeletableTopicResult(
                name=found.name if found else name, topic_id=found.topic_id if found else topic_id, error_code=code
            )
        )
    return DeleteTopicsResponse(responses=answers)


def _delete(node: Node, name: str | None, topic_id: UUID) -> Topic:
    topic = node.topics.with_id(topic_id) if name is None else node.topics.named(name)
    node.topics.delete(topic.name)
    node.groups.forget_topic(topic.name)
    return topic


async def create_partitions(call: Call) -> Any:
    """Let topics grow."""

    def grow(name: str, count: int) -> None:
        topic = call.node.topics.named(name)
        if count <= len(topic.partitions):
            raise kp.InvalidPartitionsError(f"topic {name!r} has {len(topic.partitions)} partitions, given {count}")
        if not call.body.validate_only:
            topic.grow(count)

    return CreatePartitionsResponse(
        results=[
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=each.name,
                **explained(lambda each=each: grow(each.name, each.count)),  # type: ignore[misc]
            )
            for each in call.body.topics
        ]
    )


async def describe_configs(call: Call) -> Any:
    """The settings of topics; the broker itself has none to tell."""
    return DescribeConfigsResponse(results=[_configs(call.node, each) for each in call.body.resources])


def _configs(node: Node, asked: Any) -> Any:
    answer = DescribeConfigsResponse.DescribeConfigsResult
    fields = {"resource_type": asked.resource_type, "resource_name": asked.resource_name}
    if asked.resource_type != TOPIC_RESOURCE:
        return answer(error_code=0, error_message=None, configs=[], **fields)
    said = explained(lambda: node.topics.named(asked.resource_name))
    if said["error_code"]:
        return answer(configs=[], **said, **fields)
    topic = node.topics.named(asked.resource_name)
    configs = [
        answer.DescribeConfigsResourceResult(
            name=key,
            value=topic.setting(key),
            read_only=False,
            config_source=_source(topic, key),
            is_sensitive=False,
            synonyms=[],
            config_type=0,
            documentation=None,
        )
        for key in DEFAULTS
        if asked.configuration_keys is None or key in asked.configuration_keys
    ]
    return answer(configs=configs, **said, **fields)


def _source(topic: Topic, key: str) -> int:
    return DYNAMIC_TOPIC_CONFIG if key in topic.config else DEFAULT_CONFIG


async def alter_configs(call: Call) -> Any:
    """Change single settings of topics."""

    def alter(asked: Any) -> None:
        if asked.resource_type != TOPIC_RESOURCE:
            raise kp.InvalidRequestError("only settings of topics can be changed")
        topic = call.node.topics.named(asked.resource_name)
        config = dict(topic.config)
        for each in asked.configs:
            if each.config_operation == SET:
                config[each.name] = each.value
            elif each.config_operation == DELETE:
                config.pop(each.name, None)
            else:
                raise kp.InvalidRequestError("settings can be set and deleted")
        check_config(config)
        if not call.body.validate_only:
            topic.configure(config)

    answer = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    return IncrementalAlterConfigsResponse(
        responses=[
            answer(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                **explained(lambda each=each: alter(each)),  # type: ignore[misc]
            )
            for each in call.body.resources
        ]
    )


async def describe_cluster(call: Call) -> Any:
    """One broker."""
    node = call.node
    broker = DescribeClusterResponse.DescribeClusterBroker(broker_id=NODE_ID, host=node.host, port=node.port, rack=None)
    return DescribeClusterResponse(
        error_code=0, error_message=None, endpoint_type=1, cluster_id=node.cluster_id, controller_id=NODE_ID,
        brokers=[broker],
    )  # fmt: skip
