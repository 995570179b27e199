"""What leaves, as bytes: nothing but what is declared, and a large cluster whole in one place."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from service.codec import JsonCodec
from service.publishing.departure import Departure
from service.publishing.messages import MessageEncoder
from service.publishing.rows import Rows
from stream_algos import Release
from tests.service.worker.test_crashes import SCHEMA, stream_of

COUNT = 12


def cluster(number: Any, members: Any) -> Any:
    return Release(
        np.array([number], np.uint64),
        np.array([[10.0, 0.0]]),
        np.array([[20.0, 0.0]]),
        np.array([0, len(members)]),
        np.asarray(members, np.int64),
        np.zeros(1, bool),
        np.full((1, 2), -1),
        np.empty(0, np.int64),
    )


def encoded(partitions: Any, limit: Any, *clusters: Any) -> Any:
    public = pa.array([f"{n} {'x' * 50}" for n in range(COUNT)])
    numbers = np.arange(COUNT)
    rows = Rows(
        numbers,
        np.full(COUNT, 777.0),
        1000 + numbers,
        np.column_stack([np.full(COUNT, 15.0), np.zeros(COUNT)]),
        np.zeros((COUNT, 1), np.int32),
        (public,),
    )
    release = Release.concat(clusters)
    stream = stream_of(2, 0)
    encoder = MessageEncoder(SCHEMA, JsonCodec(SCHEMA, message_bytes=limit), stream.emit, partitions)
    return encoder.encode(Departure(release, release.members), rows)


@pytest.mark.parametrize("limit", [450, 600, 800])
def test_the_parts_of_a_cluster_are_small_enough_and_all_in_the_partition_of_its_id(limit: int) -> None:
    order = np.random.default_rng(0).permutation(COUNT)
    ((place, messages),) = encoded(5, limit, cluster(2**63 + 3, order)).items()
    assert place == (2**63 + 3) % 5
    parts = [json.loads(message) for message in messages]
    assert len(parts) > 1
    assert max(map(len, messages)) <= limit
    assert [(part["part"], part["parts"]) for part in parts] == [(n + 1, len(parts)) for n in range(len(parts))]
    assert {part["cluster"] for part in parts} == {"8000000000000003"}
    assert [int(row["trace"].split()[0]) for part in parts for row in part["rows"]] == order.tolist()


def test_a_message_holds_what_is_declared_and_its_place_says_only_the_random_id() -> None:
    found = encoded(3, 10_000, cluster(4, [3, 1]), cluster(5, [0, 2]), cluster(6, [5, 4]))
    assert {place: [json.loads(m)["cluster"] for m in messages] for place, messages in found.items()} == {
        1: ["0000000000000004"],
        2: ["0000000000000005"],
        0: ["0000000000000006"],
    }
    (message,) = found[1]
    label = SCHEMA.quasi[1].hierarchy.leaves[0]  # type: ignore[union-attr]
    assert json.loads(message) == {
        "cluster": "0000000000000004",
        "generalization": {"age": [10, 20], "city": label},
        "rows": [{"item": "x", "trace": f"{n} {'x' * 50}"} for n in (3, 1)],
    }
