"""Topics and groups on kafka-python."""

import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kafka import KafkaAdminClient
from kafka import errors as kp
from kafka.admin import ConfigResource, ConfigResourceType

from service.kafka.errors import RetriableError
from service.kafka.kafka_python.connection import config_of, opened, translated
from service.kafka.port import Committed, Partition, TopicDescription
from service.kafka.settings import KafkaSettings


class _Admin(KafkaAdminClient):  # type: ignore[misc]  # the library ships no types
    """Looks at the error codes of settings: the library takes a refusal for a topic without any."""

    @classmethod
    def _describe_configs_process_responses(cls, responses: list[Any], *options: Any) -> Any:
        for result in (result for response in responses for result in response.results):
            if result.error_code:
                raise kp.for_code(result.error_code)(result.resource_name)
        return super()._describe_configs_process_responses(responses, *options)


class KafkaPythonAdmin:
    """Topics and groups."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._timeout_ms = settings.request_timeout_ms
        self._admin = opened(_Admin, config_of(KafkaAdminClient, settings))

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        """Create a topic and wait until it can be used."""
        topic = {"num_partitions": partitions, "configs": dict(config or {})}
        with translated():
            self._admin.create_topics({name: topic})
        self._wait_for_partitions(name, partitions)

    def describe_topic(self, name: str) -> TopicDescription:
        """Partitions, id and configuration."""
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        with translated():
            (topic,) = self._admin.describe_topics([name])
            if topic["error_code"]:
                raise kp.for_code(topic["error_code"])(name)
            entries = self._admin.describe_configs([resource], config_filter="all")["topic"][name]
        config = {key: entry["value"] for key, entry in entries.items() if entry["value"] is not None}
        return TopicDescription(name, UUID(topic["topic_id"]), len(topic["partitions"]), config)

    def grow_partitions(self, name: str, partitions: int) -> None:
        """Raise the number of partitions and wait until they can be used."""
        with translated():
            self._admin.create_partitions({name: partitions})
        self._wait_for_partitions(name, partitions)

    def list_topics(self) -> list[str]:
        """The names of all topics but Kafka's own."""
        with translated():
            return sorted(name for name in self._admin.list_topics() if not name.startswith("__"))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until it is gone."""
        with translated():
            self._admin.delete_topics([name])
        self._wait_for_partitions(name, 0)

    def list_groups(self) -> list[str]:
        """The ids of all consumer groups."""
        with translated():
            return sorted(group["group_id"] for group in self._admin.list_groups())

    def group_members(self, group: str) -> int:
        """How many members a group has."""
        with translated():
            found = self._admin.describe_groups([group])[group]
        if found["error"] and found["group_state"] != "Dead":  # newer brokers call it an error to ask for an empty one
            raise RetriableError(f"group {group!r}: {found['error']}")
        return len(found["members"])

    def group_offsets(self, group: str) -> dict[Partition, Committed]:
        """Everything that a group has committed."""
        with translated():
            found = self._admin.list_group_offsets({group: None}).get(group, {})
        return {
            Partition(*place): Committed(each.offset, each.metadata or "")
            for place, each in found.items()
            if each.offset >= 0
        }

    def close(self) -> None:
        """Let go of the connections."""
        self._admin.close()

    def _wait_for_partitions(self, name: str, partitions: int) -> None:
        """A broker answers before it leads new partitions or has let go of old ones."""
        deadline = time.monotonic() + self._timeout_ms / 1000
        while time.monotonic() < deadline:
            with translated():
                (topic,) = self._admin.describe_topics([name])
            led = [each for each in topic["partitions"] if each["leader_id"] >= 0]
            if len(led) >= partitions > 0 or len(led) == partitions == 0:
                return
            time.sleep(0.02)
        raise RetriableError(f"topic {name!r} does not show {partitions} partitions yet")
