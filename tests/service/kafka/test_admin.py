"""Topics and groups."""

from typing import Any

import pytest

from service.kafka import Committed, FinalError, Partition, TopicExistsError, UnknownTopicError
from tests.service.kafka.world import eventually


def test_a_topic_is_described_as_it_was_created(world: Any) -> None:
    topic = world.topic(3, cleanup_policy="compact", max_message_bytes="2000", retention_ms="1234567").topic
    described = world.admin.describe_topic(topic)
    assert described.name == topic
    assert described.partitions == 3
    assert described.config["cleanup.policy"] == "compact"
    assert described.config["max.message.bytes"] == "2000"
    assert described.config["retention.ms"] == "1234567"
    assert described.config["retention.bytes"] == "-1", "defaults are told, too"


def test_a_topic_that_is_created_anew_has_another_id(world: Any) -> None:
    topic = world.topic().topic
    first = world.admin.describe_topic(topic).topic_id
    assert world.admin.describe_topic(topic).topic_id == first
    world.admin.delete_topic(topic)
    world.topic()
    second = world.admin.describe_topic(topic).topic_id
    assert first.int
    assert second.int
    assert first != second


def test_a_topic_is_created_once_and_deleted_once(world: Any) -> None:
    topic = world.topic().topic
    assert topic in world.admin.list_topics()
    with pytest.raises(TopicExistsError):
        world.admin.create_topic(topic, 1)
    world.admin.delete_topic(topic)
    with pytest.raises(UnknownTopicError):
        world.admin.describe_topic(topic)
    with pytest.raises(UnknownTopicError):
        world.admin.delete_topic(topic)


def test_partitions_only_grow(world: Any) -> None:
    topic = world.topic(1).topic
    world.admin.grow_partitions(topic, 4)
    assert world.admin.describe_topic(topic).partitions == 4
    with pytest.raises(FinalError):
        world.admin.grow_partitions(topic, 2)
    with pytest.raises(UnknownTopicError):
        world.admin.grow_partitions("there-is-no-" + topic, 2)


def test_a_topic_with_an_unknown_setting_is_refused(world: Any) -> None:
    with pytest.raises(FinalError):
        world.admin.create_topic(world.name, 1, {"cleanup.polizei": "delete"})
    assert world.name not in world.admin.list_topics()


def test_groups_and_their_offsets_are_listed(world: Any) -> None:
    topic = world.topic(2).topic
    member = world.member(topic)
    member.until_owns(2)
    world.commit_offset(Partition(topic, 1), Committed(7, "a note"), member)
    assert world.group in world.admin.list_groups()
    eventually(lambda: world.admin.group_offsets(world.group) == {Partition(topic, 1): Committed(7, "a note")})


def test_the_members_of_a_group_are_counted(world: Any) -> None:
    topic = world.topic(1).topic
    assert world.admin.group_members(world.group) == 0
    first, second = world.member(topic), world.member(topic)

    def both_joined() -> Any:
        for member in (first, second):
            member.consumer.poll(0.05, 100)
        return world.admin.group_members(world.group) == 2

    eventually(both_joined)
