"""Transactions: all or nothing, sizes, times, and who is shut out."""

import time
from typing import Any

import pytest
from kafka import errors as kp

from service.kafka import (
    AbortableError,
    Committed,
    FencedError,
    FinalError,
    KafkaError,
    Partition,
    RetriableError,
    TooLargeError,
)
from service.kafka.kafka_python.connection import translate
from tests.service.kafka.world import eventually

RECENTLY = time.time_ns() // 1_000_000 - 12_345  # a real broker soon deletes what is old


def test_records_state_and_offset_become_visible_together(world: Any) -> None:
    source, target, state = world.topic(), world.topic(suffix="-out"), world.topic(suffix="-state")
    member = world.member(source.topic)
    member.until_owns(1)
    producer = world.producer()
    producer.begin()
    producer.produce(target, [b"a", b"b"])
    offset = producer.produce_and_wait({state: (b"0", b"the state")}, RECENTLY)[state]
    producer.send_offsets({source: Committed(3, f"state={offset}")}, member.consumer.group_token())
    assert world.reader().watermarks(target).high == 0
    assert world.reader().watermarks(state).high == 0
    producer.commit()
    committed = member.consumer.committed([source])[source]
    assert committed == Committed(3, f"state={offset}")
    (batch,) = world.reader().read(state, offset, offset + 1, 60)
    assert (batch.keys, batch.values, batch.timestamps.tolist()) == ([b"0"], [b"the state"], [RECENTLY])
    assert world.read(target) == [b"a", b"b"]


def test_an_abort_takes_records_and_offset_back(world: Any) -> None:
    source, target = world.topic(), world.topic(suffix="-out")
    member = world.member(source.topic)
    member.until_owns(1)
    producer = world.producer()
    producer.begin()
    producer.produce(target, [b"a", b"b"])
    producer.flush()
    producer.send_offsets({source: Committed(3)}, member.consumer.group_token())
    producer.abort()
    assert member.consumer.committed([source]) == {source: None}
    assert world.read(target) == []
    assert world.read(target, dirty=True) == [b"a", b"b"]


def test_offsets_of_state_records_are_known_before_the_commit_and_are_right(world: Any) -> None:
    topic = world.topic(2).topic
    producer = world.producer()
    producer.begin()
    left, right = Partition(topic, 0), Partition(topic, 1)
    assert producer.produce_and_wait({left: (b"k", b"first")}) == {left: 0}
    producer.produce(left, [b"x"] * 10, [b"k"] * 10)
    both = {right: (b"k", b"other"), left: (b"k", b"second")}
    assert producer.produce_and_wait(both) == {left: 11, right: 0}
    producer.commit()
    for partition, offset, value in ((left, 11, b"second"), (right, 0, b"other")):
        (batch,) = world.reader().read(partition, offset, offset + 1, 60)
        assert (batch.keys, batch.values) == ([b"k"], [value])


def test_many_records_keep_their_order(world: Any) -> None:
    partition = world.topic()
    values = [b"%d" % number for number in range(20_000)]
    producer = world.producer()
    producer.begin()
    producer.produce(partition, values[:10_000])
    producer.produce(partition, values[10_000:])
    producer.commit()
    assert world.read(partition) == values


def test_a_producer_can_run_one_transaction_after_another(world: Any) -> None:
    partition = world.topic()
    producer = world.producer()
    for number in range(5):
        producer.begin()
        producer.produce(partition, [b"%d" % number])
        producer.commit()
    assert world.read(partition) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_record_that_the_topic_does_not_take_fails_the_transaction(world: Any) -> None:
    partition = world.topic(max_message_bytes="2000")
    producer = world.producer()
    producer.begin()
    producer.produce(partition, [b"x" * 1000])
    producer.flush()
    with pytest.raises(TooLargeError):
        producer.produce_and_wait({partition: (None, b"x" * 5000)})
    with pytest.raises(KafkaError):
        producer.commit()
    producer.abort()
    assert world.read(partition) == []


def test_a_record_that_the_client_does_not_take_is_refused(world: Any) -> None:
    partition = world.topic()
    producer = world.producer(max_request_bytes=10_000)
    producer.begin()
    with pytest.raises(TooLargeError):
        producer.produce(partition, [b"x" * 50_000])


def test_a_record_without_key_does_not_get_into_a_compacted_topic(world: Any) -> None:
    partition = world.topic(cleanup_policy="compact")
    producer = world.producer()
    producer.begin()
    with pytest.raises(KafkaError):
        producer.produce_and_wait({partition: (None, b"no key")})
    producer.abort()
    assert world.read(partition, dirty=True) == []


def test_a_topic_that_does_not_exist_fails_the_transaction(world: Any) -> None:
    producer = world.producer(transaction_timeout_ms=2_000)
    producer.begin()
    with pytest.raises(KafkaError):
        producer.produce_and_wait({Partition("no-" + world.name, 0): (None, b"x")})


def test_who_takes_over_a_transactional_id_shuts_out_the_zombie_and_aborts_what_it_left(world: Any) -> None:
    partition = world.topic()
    zombie = world.producer("worker")
    zombie.begin()
    zombie.produce_and_wait({partition: (None, b"from the zombie")})
    owner = world.producer("worker")
    eventually(lambda: world.reader().watermarks(partition).high == 2)
    with pytest.raises(FencedError):
        zombie.produce_and_wait({partition: (None, b"again")})
    with pytest.raises(FencedError):
        zombie.commit()
    owner.begin()
    owner.produce(partition, [b"from the owner"])
    owner.commit()
    assert world.read(partition) == [b"from the owner"]


def test_a_zombie_that_only_commits_is_shut_out_too(world: Any) -> None:
    partition = world.topic()
    zombie = world.producer("worker")
    zombie.begin()
    zombie.produce_and_wait({partition: (None, b"from the zombie")})
    world.producer("worker")
    with pytest.raises(FencedError):
        zombie.commit()
    assert world.read(partition) == []


def test_a_transaction_that_is_open_for_too_long_is_aborted_by_the_broker(world: Any) -> None:
    partition = world.topic()
    producer = world.producer(transaction_timeout_ms=3_000)
    producer.begin()
    producer.produce_and_wait({partition: (None, b"too late")})
    assert world.reader().watermarks(partition).high == 0
    eventually(lambda: world.reader().watermarks(partition).high == 2)
    with pytest.raises((FencedError, AbortableError)):
        producer.produce_and_wait({partition: (None, b"even later")})
    with pytest.raises((FencedError, AbortableError)):
        producer.commit()
    assert world.read(partition) == []
    world.write(partition, b"life goes on")
    assert world.read(partition) == [b"life goes on"]


def test_a_producer_that_lets_go_leaves_its_transaction_to_the_next_owner(world: Any) -> None:
    partition = world.topic()
    gone = world.client().producer("worker-of-" + world.name)
    gone.init_transactions()
    gone.begin()
    gone.produce_and_wait({partition: (None, b"left behind")})
    gone.close()
    time.sleep(0.3)
    assert world.reader().watermarks(partition).high == 0, "nobody has aborted it yet"
    world.producer("worker")
    eventually(lambda: world.reader().watermarks(partition).high == 2)
    assert world.read(partition) == []


def test_a_note_longer_than_the_broker_takes_fails_the_transaction(world: Any) -> None:
    partition = world.topic()
    member = world.member(partition.topic)
    member.until_owns(1)
    producer = world.producer()
    producer.begin()
    with pytest.raises(KafkaError):
        producer.send_offsets({partition: Committed(1, "x" * 5000)}, member.consumer.group_token())
    assert member.consumer.committed([partition]) == {partition: None}


def test_a_transaction_whose_request_got_no_answer_is_no_reason_to_give_up() -> None:
    """kafka-python calls it fatal, and wraps it into the most general of its errors."""
    assert isinstance(translate(kp.KafkaError("for unknown reasons: RequestTimedOutError")), RetriableError)
    assert isinstance(translate(kp.UnsupportedVersionError("too old")), FinalError)


@pytest.mark.parametrize("world", ["confluent-kafka"], indirect=True)
def test_a_flush_that_confluent_kafka_ends_without_a_reason_is_repeated(world: str) -> None:
    class Unreasonable:
        def __init__(self, producer: Any) -> None:
            self._producer, self.failures = producer, [SystemError("returned NULL without setting an exception")]

        def __getattr__(self, name: Any) -> Any:
            return getattr(self._producer, name)

        def flush(self, seconds: Any) -> Any:
            if self.failures:
                raise self.failures.pop()
            return self._producer.flush(seconds)

    partition, producer = world.topic(), world.producer()  # type: ignore[attr-defined]
    producer._producer = Unreasonable(producer._producer)
    producer.begin()
    assert producer.produce_and_wait({partition: (None, b"one")}) == {partition: 0}
    producer.commit()
    assert world.read(partition) == [b"one"]  # type: ignore[attr-defined]
    assert producer._producer.failures == []
