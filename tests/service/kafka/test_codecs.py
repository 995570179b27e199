"""Every codec that a producer may choose: read by both clients, kept by both brokers, and missed at the start."""

import json
from typing import Any

import pytest
from kafka import codec as library
from kafka.record import default_records

from service.kafka import FinalError, KafkaSettings, Partition, RetriableError, connect
from tests.service.kafka.worker_world import Town, event
from tests.service.kafka.world import World

CLIENTS = ["kafka-python", "confluent-kafka"]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def write(world: World, writer: str, codec: str, partition: Partition, values: list[bytes], **more: Any) -> None:
    settings = KafkaSettings(bootstrap_servers=world.bootstrap, client=writer, compression=codec)
    producer = connect(settings).producer(f"{writer}-{codec}-of-{world.name}")
    try:
        producer.init_transactions()
        producer.begin()
        producer.produce(partition, values, **more)
        producer.commit()
    finally:
        producer.close()


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read_whoever_wrote_it(world: Any, codec: Any) -> None:
    partition = world.topic()
    values = [b"%d " % number + b"word " * 100 for number in range(500)]  # more than one block of snappy's
    for writer in CLIENTS:
        write(world, writer, codec, partition, values)
    assert world.read(partition) == values * 2
    member = world.member(partition.topic)
    member.until_owns(1)
    member.begin()
    assert member.values(1000) == {partition: values * 2}


def test_a_worker_takes_batches_of_every_codec(world: Any) -> None:
    town = Town(world)
    for number, codec in enumerate(CODECS * 2):
        events = [event(6 * number + each, each) for each in range(6)]
        write(world, CLIENTS[number // len(CODECS)], codec, Partition(town.stream.input, 0), events)
    try:
        worker = town.start()
        town.until_all_left(worker, 60)
    finally:
        town.stop()
    assert sorted(town.released()) == list(range(60))
    assert json.dumps(worker.metrics.status()["kafka_errors"]).count("CORRUPT") == 0


@pytest.mark.parametrize("codec", CODECS)
def test_a_compacted_topic_takes_every_codec(world: Any, codec: Any) -> None:
    partition = world.topic(cleanup_policy="compact")
    for writer in CLIENTS:
        write(world, writer, codec, partition, [b"old", writer.encode()], keys=[b"key", b"key"])
    assert world.read(partition)[-1] == CLIENTS[-1].encode()


@pytest.mark.parametrize(("codec", "package"), [("snappy", "python-snappy"), ("lz4", "lz4"), ("zstd", "zstandard")])
def test_a_codec_that_is_missing_is_said_at_the_start(
    monkeypatch: pytest.MonkeyPatch, codec: str, package: str
) -> None:
    monkeypatch.setattr(library, f"has_{codec}", lambda: False)
    with pytest.raises(FinalError, match=f"cannot read batches compressed with {codec}: install {package}, or use"):
        connect(KafkaSettings(client="kafka-python"))


def test_a_librdkafka_without_a_codec_does_not_open() -> None:
    settings = KafkaSettings(client="confluent-kafka", extra={"builtin.features": "gzip,snappy,lz4,zstd,none-such"})
    with pytest.raises(FinalError, match=r"none-such.*builtin\.features"):
        connect(settings).admin()


@pytest.mark.parametrize("world", ["kafka-python"], indirect=True)
def test_a_batch_that_is_unpacked_at_the_second_try_costs_no_record_of_any_partition(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    zero = world.topic(2)  # type: ignore[attr-defined]
    one = Partition(zero.topic, 1)
    write(world, "kafka-python", "none", zero, [b"a", b"b"])  # type: ignore[arg-type]
    write(world, "confluent-kafka", "zstd", one, [b"c" * 100, b"d" * 100])  # type: ignore[arg-type]
    member = world.member(zero.topic)  # type: ignore[attr-defined]
    member.until_owns(2)
    unpack, failures = default_records.zstd_decode, [RuntimeError("s3cr3t")] * 3

    def broken(payload: Any) -> Any:
        if failures:
            raise failures.pop()
        return unpack(payload)

    monkeypatch.setattr(default_records, "zstd_decode", broken)
    member.begin()
    said = []

    def poll(timeout: Any, most: Any, poll: Any = member.consumer.poll) -> Any:
        try:
            return poll(timeout, most)
        except RetriableError as error:
            said.append((error.code, str(error)))
            return []

    member.consumer.poll = poll
    assert member.values(4) == {zero: [b"a", b"b"], one: [b"c" * 100, b"d" * 100]}
    assert said == [("CORRUPT_MESSAGE", "a batch cannot be unpacked (RuntimeError)")] * 3
