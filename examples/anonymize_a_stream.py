"""A stream algorithm without Kafka: events in, clusters out as soon as they may leave."""

from collections import Counter
from pathlib import Path

import numpy as np

from microdata import PersonKey, encode_events
from service.policy import load_policy
from stream_algos import Batch, Release

ORDERS = Path(__file__).parent / "orders"
policy = load_policy(ORDERS / "policy.yaml")
engine = policy.engine()
lines = (ORDERS / "orders.jsonl").read_bytes().splitlines()
events = encode_events(policy.schema, lines, person_key=PersonKey.random())  # batches of one stream share a key
table = events.table
counts = Counter()


def count(release: Release) -> None:
    counts["clusters"] += len(release)
    counts["released"] += len(release.members)
    counts["suppressed"] += len(release.suppressed)


for first in range(0, len(table), 200):
    rows = slice(first, first + 200)
    positions = events.rows[rows]
    count(
        engine.push(
            Batch(positions, np.zeros(len(positions)), table.persons[rows], table.quasi[rows], table.sensitive[rows])
        )
    )
    print(f"after {first + len(positions)} orders: {counts['released']} released, {len(engine.pending())} waiting")
count(engine.flush())
print(f"{counts['clusters']} clusters with {counts['released']} orders; {counts['suppressed']} suppressed")
assert counts["released"] + counts["suppressed"] == len(table)
