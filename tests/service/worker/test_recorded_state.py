"""A state that version 0.1 wrote, after 900 of the example's orders: it is taken over as if nothing had changed."""

from pathlib import Path
from typing import Any

import numpy as np

from service.codec import JsonCodec
from service.kafka import Partition, RecordBatch
from service.policy import load_policy
from service.publishing.gate import Gate
from service.worker.partition import InputPartition
from service.worker.state import State

ROOT = Path(__file__).parents[3]
RECORDED = Path(__file__).parent / "recorded" / "state-0.1.bin"
TAKEN = 900


def test_a_state_of_version_0_1_goes_on() -> None:
    policy = load_policy(ROOT / "examples" / "orders" / "policy.yaml")
    state = State.decode(RECORDED.read_bytes())
    assert state.origin.fingerprint == policy.fingerprint(), "a running stream would be stopped"
    assert (state.position, len(state.decisions) > 0) == (TAKEN, True)
    lines = (ROOT / "examples" / "orders" / "orders.jsonl").read_bytes().splitlines()
    codec = JsonCodec(policy.schema)

    def events(first: Any, last: Any) -> Any:
        offsets, nothing = np.arange(first, last), [None] * (last - first)
        return codec.decode(RecordBatch(Partition("orders", 0), offsets, offsets, nothing, lines[first:last]))  # type: ignore[arg-type]

    partition = InputPartition(policy.schema, Gate(policy.schema, policy.models()), policy.engine(), state)
    partition.put_back(events(state.needed_from, TAKEN))
    assert not len(partition.missing())
    partition.resume()
    partition.take(events(TAKEN, len(lines)), len(lines), 1001.0)
    partition.flush()
    published = []
    for _ in range(2):
        publication = partition.publish()
        assert publication.refused == 0
        published += publication.clusters.members.tolist()
        partition.committed(partition.settle(publication))
    waiting = np.concatenate([state.pending, state.decisions.members, np.arange(TAKEN, len(lines))])
    assert len(set(published)) == len(published)
    assert set(published) <= set(waiting.tolist())
    assert len(published) > 0.9 * len(waiting)
    totals = partition.totals
    assert totals["taken"] == len(lines) == totals["released"] + totals["suppressed"] + refused(totals)


def refused(totals: Any) -> Any:
    return sum(count for name, count in totals.items() if name.startswith("refused."))
