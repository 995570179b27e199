"""The topics of a stream, looked at before anything starts."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from uuid import UUID

from microdata import PersonSource, UnavailableError
from service.codec import RAW
from service.kafka import Admin, RetriableError, TopicDescription, TopicExistsError, UnknownTopicError
from service.settings import SettingsError
from service.worker.memory import RECORD_BYTES
from service.worker.sealing import HOW
from service.worker.settings import WorkerSettings
from service.worker.stream import Stream

log = logging.getLogger(__name__)

_STATE_CONFIG = {
    "cleanup.policy": "compact",
    # Old states name positions: small segments and an eager cleaner keep few of them around.
    "segment.bytes": "16777216",
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.1",
}
_MEMORY_CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": "67108864",
    "segment.ms": "3600000",
    "min.cleanable.dirty.ratio": "0.1",
    # What was deleted, or written anew, is gone from the disks within this time.
    "max.compaction.lag.ms": "86400000",
}
_LONGEST_LAG_MS = 7 * 24 * 3600 * 1000
"""How long a memory topic may keep what was deleted."""
_APPEAR_SECONDS = 30.0
"""How long brokers may take to hear of a topic that was created."""
_COMFORTABLE_MS = 24 * 3600 * 1000
_MESSAGE_OVERHEAD = 1024
"""Bytes that a record batch needs beside the value."""


class TopicError(UnavailableError):
    """A topic that a stream cannot run with as it is; whoever mends it lets the stream go on."""

    code = "UNFIT_TOPIC"


class MissingTopicError(TopicError):
    """A topic that does not exist, or that its brokers do not show at the moment."""

    code = UnknownTopicError.own_code


@dataclass(frozen=True)
class StreamTopics:
    """What a running stream needs to know of its topics."""

    input_id: UUID
    input_partitions: int
    state_id: UUID
    output_partitions: int
    memory_id: UUID | None
    """Of the memory topic, where the stream has one."""
    message_bytes: int
    """Largest value that the output topic and our client take."""


def check_settings(stream: Stream, settings: WorkerSettings, largest_request: int) -> None:
    """Refuse what cannot work with any topic."""
    names = [stream.input, stream.output, stream.state_topic, *filter(None, [stream.dead_letters])]
    names += [stream.memory_topic] if stream.remembers else []
    if len(set(names)) < len(names):
        raise SettingsError(f"stream {stream.name!r}: input, output, state and dead letters must be different topics")
    if stream.remembers and settings.key_file is None:
        raise SettingsError(
            f"stream {stream.name!r} remembers persons, and that is sealed: set key_file "
            f"(PORTCULLIS_WORKER_KEY_FILE). {HOW}"
        )
    if settings.max_state_bytes + _MESSAGE_OVERHEAD > largest_request:
        raise SettingsError(
            f"max_state_bytes={settings.max_state_bytes} needs max_request_bytes of at least "
            f"{settings.max_state_bytes + _MESSAGE_OVERHEAD}, given {largest_request}"
        )


def prepare(admin: Admin, stream: Stream, settings: WorkerSettings, largest_request: int) -> StreamTopics:
    """Check (and where asked, create) the topics of a stream; `TopicError` says what is wrong with which."""
    source = _existing(admin, stream.input, settings)
    _check_input(source, stream)
    _check_keyed(source, stream)
    output = _existing(admin, stream.output, settings)
    if stream.dead_letters is not None:
        _existing(admin, stream.dead_letters, settings)
    state = _prepare_state(admin, stream.state_topic, source.partitions, settings)
    memory = _prepare_memory(admin, stream.memory_topic, source.partitions) if stream.remembers else None
    largest = min(_limit(output), largest_request) - _MESSAGE_OVERHEAD
    memory_id = None if memory is None else memory.topic_id
    return StreamTopics(source.topic_id, source.partitions, state.topic_id, output.partitions, memory_id, largest)


def _existing(admin: Admin, name: str, settings: WorkerSettings) -> TopicDescription:
    try:
        return admin.describe_topic(name)
    except UnknownTopicError:
        if not settings.create_topics:
            raise MissingTopicError(f"topic {name!r} does not exist; create it, or set create_topics") from None
    try:
        admin.create_topic(name, settings.partitions)
        log.info("created topic %s with %d partitions", name, settings.partitions)
    except TopicExistsError:
        log.info("topic %s was created by somebody else just now", name)
    return _appearing(admin, name)


def _appearing(admin: Admin, name: str) -> TopicDescription:
    """A topic that exists, though the broker that is asked may not have heard of it yet."""
    end = time.monotonic() + _APPEAR_SECONDS
    while True:
        try:
            return admin.describe_topic(name)
        except UnknownTopicError:
            if time.monotonic() > end:
                raise RetriableError(f"topic {name!r} was created, but its brokers do not show it yet") from None
            time.sleep(0.1)


def _check_input(source: TopicDescription, stream: Stream) -> None:
    """An event must not vanish from the input before it is decided and published."""
    policy = source.config.get("cleanup.policy", "delete")
    if "compact" in policy and not stream.allow_compacted:
        raise TopicError(
            f"input topic {source.name!r} has cleanup.policy={policy}: compaction may remove events before they are "
            "released; say `allow_compacted: true` in the policy's stream section to accept that"
        )
    retention = int(source.config.get("retention.ms", "-1"))
    if stream.history_seconds is None:
        if "delete" in policy and 0 <= retention < _COMFORTABLE_MS:
            log.warning(
                "input topic %s keeps records for %d s and the policy bounds the delay only in tuples: "
                "a slow partition could lose events before they are decided",
                source.name,
                retention // 1000,
            )
    elif 0 <= retention < 2000 * stream.history_seconds:
        raise TopicError(
            f"input topic {source.name!r} keeps records for {retention / 1000:g} s, which must be at least twice the "
            f"{stream.history_seconds:g} s for which an event is needed: a new owner reads it again"
        )
    if "delete" in policy and int(source.config.get("retention.bytes", "-1")) >= 0:
        log.warning("input topic %s is bounded by size: make sure it holds what arrives within the delay", source.name)


def _check_keyed(source: TopicDescription, stream: Stream) -> None:
    """Whoever is remembered in one partition must not appear in another."""
    if not stream.remembers or source.partitions == 1:
        return
    if stream.keyed is None or stream.schema.person is not PersonSource.KEY:
        raise TopicError(
            f"input topic {source.name!r} has {source.partitions} partitions, and this stream remembers persons, each "
            "in one of them: the policy must take the person from the record's key (`person: {key: true}`) and say how "
            "producers choose a partition by it (`keyed` in its stream section)"
        )
    if stream.format.key_type != RAW:
        raise TopicError(
            f"input topic {source.name!r} has {source.partitions} partitions, and this stream remembers persons, each "
            f"in one of them: keys of format {stream.format.key_type} have other bytes, and so another partition, "
            "after a new version of their schema. Use one partition, or keys that are raw names of persons"
        )


def _prepare_memory(admin: Admin, name: str, partitions: int) -> TopicDescription:
    """The memory topic has one partition per input partition, only compacts, and does so in time."""
    try:
        admin.create_topic(name, partitions, _MEMORY_CONFIG)
        log.info("created memory topic %s with %d partitions", name, partitions)
    except TopicExistsError:
        log.debug("memory topic %s is there", name)
    memory = _appearing(admin, name)
    if memory.config.get("cleanup.policy") != "compact":
        raise TopicError(
            f"memory topic {name!r} has cleanup.policy={memory.config.get('cleanup.policy')}, it must be compact "
            "alone: persons that are forgotten would be published under other boxes"
        )
    if int(memory.config.get("max.compaction.lag.ms", _LONGEST_LAG_MS + 1)) > _LONGEST_LAG_MS:
        raise TopicError(
            f"memory topic {name!r} must have max.compaction.lag.ms of at most {_LONGEST_LAG_MS} (seven days): else "
            "nobody can say when what is known of a person is gone from the disks"
        )
    if _limit(memory) < RECORD_BYTES + _MESSAGE_OVERHEAD:
        raise TopicError(
            f"memory topic {name!r} takes records up to {_limit(memory)} bytes, it must take {RECORD_BYTES}"
        )
    if memory.partitions < partitions:
        admin.grow_partitions(name, partitions)
        log.info("grew memory topic %s to %d partitions", name, partitions)
    return memory


def _prepare_state(admin: Admin, name: str, partitions: int, settings: WorkerSettings) -> TopicDescription:
    """The state topic has one partition per input partition and keeps the last record of each, and only compacts."""
    config = _STATE_CONFIG | {"max.message.bytes": str(settings.max_state_bytes + _MESSAGE_OVERHEAD)}
    try:
        admin.create_topic(name, partitions, config)
        log.info("created state topic %s with %d partitions", name, partitions)
    except TopicExistsError:
        log.debug("state topic %s is there", name)
    state = _appearing(admin, name)
    if state.config.get("cleanup.policy") != "compact":
        raise TopicError(
            f"state topic {name!r} has cleanup.policy={state.config.get('cleanup.policy')}, it must be compact alone: "
            "a state that expires would let events be released twice"
        )
    if _limit(state) < settings.max_state_bytes:
        raise TopicError(
            f"state topic {name!r} takes records up to {_limit(state)} bytes, max_state_bytes asks for "
            f"{settings.max_state_bytes}"
        )
    if state.partitions < partitions:
        admin.grow_partitions(name, partitions)
        log.info("grew state topic %s to %d partitions", name, partitions)
    return state


def _limit(topic: TopicDescription) -> int:
    return int(topic.config.get("max.message.bytes", "1048588"))
