"""Topics and groups on librdkafka."""

import functools
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

from service.kafka.confluent.connection import Connection
from service.kafka.confluent.records import note_of
from service.kafka.errors import UnknownTopicError
from service.kafka.everywhere import ANSWER_SECONDS, wait_for_all
from service.kafka.naming import naming
from service.kafka.port import Committed, Partition, TopicDescription, TopicShape


class ConfluentAdmin:
    """Topics and groups."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._admin = connection.open(AdminClient)
        connection.serve = functools.partial(self._admin.poll, 0)

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        """Create a topic and wait until it can be used."""
        topic = NewTopic(name, partitions, -1, config=dict(config or {}))
        self._result(self._admin.create_topics([topic], request_timeout=self._connection.timeout)[name])
        self._wait_for_partitions(name, partitions)

    def describe_topic(self, name: str) -> TopicDescription:
        """Partitions, id and configuration."""
        topic = self._metadata(name)
        resource = ConfigResource(ResourceType.TOPIC, name)
        answer = self._admin.describe_configs([resource], request_timeout=self._connection.timeout)
        entries = self._result(answer[resource])
        config = {key: entry.value for key, entry in entries.items() if entry.value is not None}
        return TopicDescription(name, _uuid(topic.topic_id), len(topic.partitions), config)

    def topic_shapes(self, names: Collection[str]) -> dict[str, TopicShape]:
        """Id and partitions of those topics that exist."""
        asked = ck.TopicCollection(list(names))
        shapes = {}
        for name, answer in self._admin.describe_topics(asked, request_timeout=self._connection.timeout).items():
            with suppress(UnknownTopicError):
                topic = self._result(answer)
                shapes[name] = TopicShape(_uuid(topic.topic_id), len(topic.partitions))
        return shapes

    def grow_partitions(self, name: str, partitions: int) -> None:
        """Raise the number of partitions and wait until they can be used."""
        wanted = [NewPartitions(name, partitions)]
        self._result(self._admin.create_partitions(wanted, request_timeout=self._connection.timeout)[name])
        self._wait_for_partitions(name, partitions)

    def list_topics(self) -> list[str]:
        """The names of all topics but Kafka's own."""
        with self._connection.translated():
            topics = self._admin.list_topics(timeout=self._connection.timeout).topics
        return sorted(name for name in topics if not name.startswith("__"))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until it is gone."""
        self._result(self._admin.delete_topics([name], request_timeout=self._connection.timeout)[name])
        self._wait_for_partitions(name, 0)

    def list_groups(self) -> list[str]:
        """The ids of all consumer groups."""
        answer = self._result(self._admin.list_consumer_groups(request_timeout=self._connection.timeout))
        return sorted(group.group_id for group in answer.valid)

    def group_members(self, group: str) -> int:
        """How many members a group has."""
        found = self._admin.describe_consumer_groups([group], request_timeout=self._connection.timeout)[group]
        with self._connection.translated():
            try:
                return len(found.result(self._connection.timeout + 1).members)
            except ck.KafkaException as exception:
                if exception.args[0].code() == ck.KafkaError.GROUP_ID_NOT_FOUND:  # newer brokers say so of an empty one
                    return 0
                raise

    def group_offsets(self, group: str) -> dict[Partition, Committed]:
        """Everything that a group has committed."""
        asked = [ck.ConsumerGroupTopicPartitions(group)]
        answer = self._admin.list_consumer_group_offsets(asked, request_timeout=self._connection.timeout)
        return {
            Partition(each.topic, each.partition): Committed(each.offset, note_of(each))
            for each in self._result(answer[group]).topic_partitions
            if each.offset >= 0
        }

    def close(self) -> None:
        """Let go of the connections."""
        self._connection.serve = lambda: None
        del self._admin

    def _metadata(self, name: str) -> Any:
        asked = ck.TopicCollection([name])
        with naming(name):
            return self._result(self._admin.describe_topics(asked, request_timeout=self._connection.timeout)[name])

    def _wait_for_partitions(self, name: str, partitions: int) -> None:
        """A broker answers before it leads new partitions or has let go of old ones, and before the others know."""
        with self._connection.translated():
            brokers = self._admin.list_topics(timeout=self._connection.timeout).brokers.values()
        wait_for_all(name, partitions, [_Broker(self._connection, each) for each in brokers], self._connection.timeout)

    def _result(self, future: Any) -> Any:
        with self._connection.translated():
            return future.result(self._connection.timeout + 1)


class _Broker:
    """One broker, asked through a handle that knows no other: librdkafka connects to others only when it must."""

    def __init__(self, connection: Connection, broker: Any) -> None:
        self._connection = connection
        self._admin = connection.open(AdminClient, bootstrap_servers=f"{broker.host}:{broker.port}")

    def partitions_led(self, name: str) -> int:
        """How many partitions of a topic it knows the leader of."""
        with self._connection.translated():
            topic = self._admin.list_topics(name, timeout=ANSWER_SECONDS).topics[name]
        return sum(each.leader >= 0 for each in topic.partitions.values())


def _uuid(topic_id: Any) -> UUID:
    bits = (topic_id.get_most_significant_bits() << 64) | (topic_id.get_least_significant_bits() & (2**64 - 1))
    return UUID(int=bits & (2**128 - 1))
