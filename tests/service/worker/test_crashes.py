"""A partition that dies at any moment: what every reader of the output can ever see, committed or not."""

import json
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number, Schema, seeded_words
from service.codec import JsonCodec
from service.kafka import Partition, RecordBatch
from service.publishing.gate import Gate
from service.publishing.messages import MessageEncoder
from service.worker.packing import unpack
from service.worker.partition import InputPartition
from service.worker.state import Origin, State
from service.worker.stream import Stream
from stream_algos import Release, SabreW
from tests.service.worker.chunks import Chunks

SCHEMA = Schema(
    "who",
    (Number("age", 0, 99, integer=True), Category("city", Hierarchy.flat(["a", "b", "c"]))),
    (Category("item", Hierarchy.flat(["x", "y"])),),
    ("trace",),
)
PLACE = Partition("raw", 0)


ENGINES = {
    "chunks": (Chunks, {}),
    "windows": (SabreW, {"t": 0.5, "window": {"size": 12, "advance": 4}}),
}


def stream_of(k: Any, seed: Any, engine: str = "chunks") -> Any:
    words = seeded_words(seed)
    kind, given = ENGINES[engine]
    models = kind(SCHEMA, k=k, **given).models()
    return Stream("s", "raw", "safe", SCHEMA, models, lambda: kind(SCHEMA, words=words, k=k, **given), "f", "earliest")


def log_of(people: Any) -> Any:
    return [
        json.dumps({"who": f"p{p}", "age": p * 3, "city": "abc"[p % 3], "item": "xy"[p % 2], "trace": n, "junk": 1})
        for n, p in enumerate(people)
    ]


class Simulation:
    """One partition with a durable log, state and output, and a process that may vanish between any two steps."""

    def __init__(self, people: Any, k: Any, seed: Any, engine: str = "chunks") -> None:
        self.stream = stream_of(k, seed, engine)
        self.log = log_of(people)
        self.decoder = JsonCodec(SCHEMA, 10_000, 100_000)
        self.encoder = MessageEncoder(SCHEMA, self.decoder, self.stream.emit, 1)
        origin = Origin("s", "raw", UUID(int=1), 0, "f")
        empty = np.empty(0, np.int64)
        self.durable = State(origin, 0, 0, 1, None, empty, Release.empty(len(SCHEMA.quasi)), None).encode()
        self.dirty_output, self.committed_output = [], []  # type: ignore[var-annotated]
        self.restart()

    def read(self, start: Any, stop: Any) -> Any:
        values = [text.encode() for text in self.log[start:stop]]
        offsets = np.arange(start, start + len(values))
        return self.decoder.decode(RecordBatch(PLACE, offsets, offsets, [None] * len(values), values))

    def restart(self) -> None:
        state = State.decode(self.durable)
        self.partition = InputPartition(SCHEMA, Gate(SCHEMA, self.stream.models), self.stream.engine(), state)
        if state.needed_from is not None:
            self.partition.put_back(self.read(state.needed_from, state.position))
        self.partition.resume()

    def take(self, count: Any) -> None:
        start = self.partition.position
        stop = min(start + count, len(self.log))
        if stop > start:
            self.partition.take(self.read(start, stop), stop, 0.0)

    def cycle(self, count: Any, fate: Any) -> None:
        """Take `count` events and settle them; `fate` says how the transaction ends.

        As in the worker, events come before and after what is owed has been checked and encoded.
        """
        self.take(count // 2)
        publication = self.partition.publish()
        assert not publication.refused, "the gate refuses what the engine decided"
        messages = [m for values in self.encoder.encode(publication, self.partition.rows).values() for m in values]
        self.take(count - count // 2)
        settlement = self.partition.settle(publication)
        if fate == "die before":
            self.restart()
            return
        self.dirty_output += messages
        if fate == "abort":
            self.restart()
            return
        self.committed_output += messages
        self.durable = settlement.record
        if fate == "die after":
            self.restart()
        else:
            self.partition.committed(settlement)


FATES = st.sampled_from(["commit", "commit", "commit", "abort", "die before", "die after"])


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=60, deadline=None)
@given(
    people=st.lists(st.integers(0, 6), min_size=1, max_size=60),
    k=st.integers(1, 4),
    seed=st.integers(0, 99),
    steps=st.lists(st.tuples(st.integers(0, 15), FATES), max_size=25),
)
def test_no_event_is_ever_seen_under_two_clusters(engine: Any, people: Any, k: int, seed: int, steps: Any) -> None:
    simulation = Simulation(people, k, seed, engine)
    for count, fate in steps:
        simulation.cycle(count, fate)
    for _ in range(3):
        simulation.cycle(len(people), "commit")
    simulation.partition.flush()
    simulation.cycle(0, "commit")
    simulation.cycle(0, "commit")

    seen: dict[int, set[str]] = {}
    for message in simulation.dirty_output:
        cluster = json.loads(message)
        for row in cluster["rows"]:
            seen.setdefault(row["trace"], set()).add(cluster["cluster"] + json.dumps(cluster["generalization"]))
    assert all(len(boxes) == 1 for boxes in seen.values())

    committed = [row["trace"] for message in simulation.committed_output for row in json.loads(message)["rows"]]
    totals = simulation.partition.totals
    assert len(committed) == len(set(committed)) == totals["released"]
    assert totals["released"] + totals["suppressed"] == totals["taken"] == len(people)


def test_resuming_from_memory_after_an_abort_is_what_the_rule_forbids() -> None:
    """The rule broken on purpose: an engine that decides again after an abort shows an event under two clusters."""
    simulation = Simulation([0, 1, 2, 3, 4, 5], 2, 0)
    simulation.cycle(4, "commit")
    simulation.cycle(0, "abort")
    before = {json.loads(m)["cluster"] for m in simulation.dirty_output}
    simulation.durable = State.decode(simulation.durable)  # type: ignore[assignment]
    simulation.durable = State(
        **{**simulation.durable.__dict__, "position": 0, "decisions": Release.empty(len(SCHEMA.quasi)), "engine": None}
    ).encode()
    simulation.restart()
    simulation.cycle(4, "commit")
    simulation.cycle(0, "commit")
    after = {json.loads(m)["cluster"] for m in simulation.dirty_output} - before
    assert after, "the same events left again under new ids, which the committed decision prevents"


def test_state_holds_no_raw_value() -> None:
    simulation = Simulation([0, 1, 2, 3, 3, 3], 2, 0)
    simulation.cycle(6, "commit")
    head, arrays = unpack(simulation.durable)
    rows = simulation.partition.rows
    assert len(rows)
    numbers = {float(n) for name, array in arrays.items() if not name.startswith("decisions.") for n in array.ravel()}
    assert numbers.isdisjoint(rows.persons.tolist())
    assert all(array.dtype.kind in "iufb" for array in arrays.values()), "only numbers are kept, no text"
    assert set(arrays) >= {"pending", "decisions.members", "engine.held"}
    assert "p3" not in json.dumps(head)
