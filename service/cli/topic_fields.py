"""The fields of a topic, of which nobody said yet what they are: its newest records, as keys without values."""

from __future__ import annotations

from contextlib import closing

from microdata import DataError, FieldKeys, Progress
from microdata.field_keys import FieldGatherer
from microdata.sampling import json_object, json_table
from service.kafka import Client, Partition, reach

_REACH_SECONDS = 10.0
_SECONDS = 30.0
"""How long a broker may take for the next records."""


def topic_fields(client: Client, topic: str, sample: int, progress: Progress) -> FieldKeys:
    """Up to so many of the newest records, the same number of each partition; they must be JSON objects."""
    reach(client.servers, _REACH_SECONDS)
    gathered, other, whole = FieldGatherer(), 0, True
    with closing(client.admin()) as admin:
        partitions = admin.describe_topic(topic).partitions
    with closing(client.reader()) as reader:
        for number in range(partitions):
            partition = Partition(topic, number)
            low, high = reader.watermarks(partition)
            start = max(low, high - -(-sample // partitions))
            whole = whole and start == low
            for batch in reader.read(partition, start, high, _SECONDS):
                events = [json_object(value) for value in batch.values if value is not None]
                given = [event for event in events if event is not None]
                other += len(events) - len(given)
                gathered.add(json_table(given))
                progress("reading", gathered.rows, sample)
    if not gathered.rows:
        raise DataError(f"topic {topic!r}: no record among the newest {sample} is a JSON object")
    return gathered.fields(whole=whole, misshapen=other)
