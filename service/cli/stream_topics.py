"""The two topics of a finished stream, read as a whole: for rehearsals, which have few records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from microdata import DataError, PersonKey, Progress, RejectedRows
from service.codec import LARGEST_MESSAGE, MAX_EVENT_BYTES, Events, LeftRecords, decoder_of, registry_of
from service.evidence import output_of
from service.kafka import Client, Partition, RecordBatch, reach
from service.policy import Policy

MOST_RECORDS = 1_000_000
_SECONDS = 30.0
"""How long a broker may take for the next records."""
_REACH_SECONDS = 10.0


def read_output(client: Client, policy: Policy, lines: Path, progress: Progress) -> list[int]:
    """Write what left as lines, and tell the second in which each of them did."""
    topic = output_of(policy)
    left, ticks = LeftRecords(policy.route(registry_of(policy.route()))), list[int]()
    with lines.open("wb") as out:
        for batch in _batches(client, topic, progress):
            out.writelines(left.line(value or b"") + b"\n" for value in batch.values)
            ticks += (batch.timestamps // 1000).tolist()
    if not ticks:
        raise DataError(f"topic {topic!r}: there are no records")
    return ticks


def read_input(client: Client, policy: Policy, progress: Progress) -> Events:
    """The events in the order of their time; those that the policy refuses are left out."""
    stream = policy.stream
    assert stream is not None, "its output was read"
    codec = decoder_of(policy.route(registry_of(policy.route())), MAX_EVENT_BYTES, LARGEST_MESSAGE, PersonKey.random())
    parts, times = [], []
    for batch in _batches(client, stream.input, progress):
        events = codec.decode(batch)
        parts.append(events)
        offsets = np.concatenate([events.positions, _rejected(events).rows])
        times.append(batch.timestamps[np.searchsorted(batch.offsets, offsets)])
    if not sum(map(len, parts)):
        raise DataError(f"topic {stream.input!r}: there is no event that the policy takes")
    # Offsets of two partitions say nothing about each other; positions are told anew, in the order of time.
    order = np.argsort(np.concatenate(times), kind="stable")
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order))
    placed, start = [], 0
    for part in parts:
        rejected = _rejected(part)
        own, start = positions[start : start + len(part)], start + len(part)
        other, start = positions[start : start + len(rejected)], start + len(rejected)
        moved = replace(rejected, rows=other)
        placed.append(replace(part, positions=own, refused=[], rejected=moved))
    return Events.merged(placed, [])


def _rejected(events: Events) -> RejectedRows:
    return events.rejected or RejectedRows.concat(events.quasi.shape[1], [])


def _batches(client: Client, topic: str, progress: Progress) -> Iterator[RecordBatch]:
    reach(client.servers, _REACH_SECONDS)
    with closing(client.admin()) as admin:
        partitions = admin.describe_topic(topic).partitions
    done = 0
    with closing(client.reader()) as reader:
        for number in range(partitions):
            low, high = reader.watermarks(Partition(topic, number))
            for batch in reader.read(Partition(topic, number), low, high, _SECONDS):
                done += len(batch)
                if done > MOST_RECORDS:
                    raise DataError(f"topic {topic!r}: has more than {MOST_RECORDS:,} records; rehearse with fewer")
                progress("reading", done, done)
                yield batch
