"""Topics, their partitions and their configuration."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from kafka import errors as kp

from service.broker.log import PartitionLog

DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "index.interval.bytes": "4096",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
_POLICIES = {"delete", "compact", "compact,delete", "delete,compact"}
_NUMBERS = {"max.message.bytes", "retention.bytes", "retention.ms", "segment.bytes", "segment.ms"}
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(slots=True)
class Topic:
    """A named list of logs."""

    name: str
    config: dict[str, str]
    retention_bytes: int  # where the configuration sets no limit
    topic_id: UUID = field(default_factory=uuid4)
    partitions: list[PartitionLog] = field(default_factory=list)

    def setting(self, key: str) -> str:
        """A configured value, or its default."""
        return self.config.get(key, DEFAULTS[key])

    @property
    def max_message_bytes(self) -> int:
        """The largest batch that is accepted."""
        return int(self.setting("max.message.bytes"))

    @property
    def is_compacted(self) -> bool:
        """Whether the last record of each key stays."""
        return "compact" in self.setting("cleanup.policy")

    def grow(self, count: int) -> None:
        """Add partitions until there are `count`."""
        while len(self.partitions) < count:
            self.partitions.append(PartitionLog(self._limit(), compact=self.is_compacted))

    def configure(self, config: Mapping[str, str]) -> None:
        """Take over a new configuration."""
        self.config = dict(config)
        for log in self.partitions:
            log.retention_bytes = self._limit()
            log.compact = self.is_compacted

    def _limit(self) -> int:
        configured = int(self.setting("retention.bytes"))
        return configured if configured >= 0 else self.retention_bytes


class BrokerTopics:
    """All topics of the broker."""

    def __init__(self, retention_bytes: int) -> None:
        self._retention_bytes = retention_bytes
        self._by_name: dict[str, Topic] = {}

    def __iter__(self) -> Iterator[Topic]:
        return iter(list(self._by_name.values()))

    def create(self, name: str, partitions: int, config: Mapping[str, str], *, dry_run: bool = False) -> Topic:
        """A new topic; with `dry_run` only the checks."""
        if not _NAME.fullmatch(name) or name in {".", ".."}:
            raise kp.InvalidTopicError("a topic's name has 1 to 249 letters, digits, dots, hyphens, underscores")
        if name in self._by_name:
            raise kp.TopicAlreadyExistsError(f"topic {name!r} already exists")
        if partitions < 1:
            raise kp.InvalidPartitionsError(f"partitions must be at least 1, given {partitions}")
        check_config(config)
        topic = Topic(name, dict(config), self._retention_bytes)
        if not dry_run:
            topic.grow(partitions)
            self._by_name[name] = topic
        return topic

    def named(self, name: str) -> Topic:
        """The topic of that name."""
        if name not in self._by_name:
            raise kp.UnknownTopicOrPartitionError(f"there is no topic {name!r}")
        return self._by_name[name]

    def with_id(self, topic_id: UUID) -> Topic:
        """The topic of that id."""
        for topic in self:
            if topic.topic_id == topic_id:
                return topic
        raise kp.UnknownTopicIdError(f"there is no topic with id {topic_id}")

    def log(self, name: str, partition: int) -> PartitionLog:
        """One partition's log."""
        partitions = self.named(name).partitions
        if not 0 <= partition < len(partitions):
            raise kp.UnknownTopicOrPartitionError(f"topic {name!r} has no partition {partition}")
        return partitions[partition]

    def delete(self, name: str) -> None:
        """Remove a topic; who waits for its records finds out."""
        for log in self.named(name).partitions:
            log.wake_readers()
        del self._by_name[name]


def check_config(config: Mapping[str, str]) -> None:
    """Refuse settings that Kafka does not know."""
    for key, value in config.items():
        if key not in DEFAULTS:
            raise kp.InvalidConfigurationError(f"unknown topic setting {key!r}")
        if key == "cleanup.policy" and value.replace(" ", "") not in _POLICIES:
            raise kp.InvalidConfigurationError("cleanup.policy is made of: delete, compact")
        if key in _NUMBERS and not re.fullmatch(r"-?\d+", value):
            raise kp.InvalidConfigurationError(f"{key} must be a whole number")
