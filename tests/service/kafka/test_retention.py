"""What brokers forget: the oldest by size, or all but the last value per key."""

from typing import Any

from tests.service.kafka.world import eventually

CHUNK = b"x" * 10_000


def test_retention_by_size_moves_the_beginning_of_the_log(world: Any) -> None:
    partition = world.topic(retention_bytes="1000000", segment_bytes="1048576")
    for _ in range(5):
        world.write(partition, *[CHUNK] * 100)
    reader = world.reader()
    eventually(lambda: reader.watermarks(partition).low > 0 and reader.watermarks(partition).high == 505)
    low, high = reader.watermarks(partition)
    offsets = [int(offset) for batch in reader.read(partition, 0, high, 60) for offset in batch.offsets]
    assert offsets
    assert min(offsets) >= low
    assert max(offsets) == 503


def test_a_compacted_topic_keeps_the_last_value_per_key(world: Any) -> None:
    settings = {"segment_bytes": "1048576", "min_cleanable_dirty_ratio": "0.01", "max_compaction_lag_ms": "100"}
    partition = world.topic(cleanup_policy="compact", **settings)
    for round_ in range(5):
        values = [b"%d-%d " % (round_, key) + CHUNK for key in range(50)] * 2
        world.write(partition, *values, keys=[b"%d" % (number % 50) for number in range(100)])
    reader = world.reader()

    def kept() -> Any:
        high = reader.watermarks(partition).high
        return [
            (key, value)
            for batch in reader.read(partition, 0, high, 60)
            for key, value in zip(batch.keys, batch.values, strict=True)
        ]

    eventually(lambda: len(kept()) < 500)
    latest = dict(kept())
    assert latest == {b"%d" % key: b"4-%d " % key + CHUNK for key in range(50)}
