"""Streams that remember people, ended: persons are forgotten, kept for the policy that follows, or erased by name."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import numpy as np
import pytest

from microdata import Number, PersonSource
from service.kafka import Partition
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.packing import unpack
from service.worker.restoring import PartitionError
from service.worker.sealing import load_keys
from service.worker.settings import WorkerSettings
from stream_algos import Castle, Cohorts
from tests.service.worker.quarter import ASKED, MEMORY, STATES, K, Quarter, kept
from tests.service.worker.test_crashes import SCHEMA
from tests.service.worker.test_cycle import RAW_1, STATE


def test_a_drained_stream_forgets_everybody(quarter: Quarter, key_file: Path) -> None:
    quarter.hall.worker.close()
    worker = Worker(quarter.hall.stream, quarter.paper, WorkerSettings(key_file=key_file), Metrics(quarter.hall.stream))
    quarter.paper.assign(0)
    worker.drain()
    quarter.compact()
    assert len(quarter.paper.logs[MEMORY]) == sum(place == MEMORY for place, _ in quarter.paper.gone)
    anew = Quarter(key_file, paper=quarter.paper)
    anew.paper.assign(0)
    anew.hall.cycle()
    assert anew.known()["persons"] == 0


def test_whoever_begins_anew_leaves_nothing_of_the_run_before(quarter: Quarter, key_file: Path) -> None:
    """Whoever deletes the state and the offsets, and not the memory, has no key that covers its records any more."""
    quarter.hall.worker.close()
    before = len(quarter.paper.logs[MEMORY])
    keys = [key for key, _ in quarter.paper.logs[MEMORY]]
    quarter.paper.logs[STATES].clear()
    quarter.paper.committed_offsets.clear()
    anew = Quarter(key_file, paper=quarter.paper)
    anew.hall.cycle()
    assert anew.known()["persons"] == 0
    assert [key for key, value in quarter.paper.logs[MEMORY][before:] if value is None] == keys
    quarter.compact()
    assert all((MEMORY, number) in quarter.paper.gone for number in range(before))
    anew.hall.cycle(2)
    assert anew.known()["persons"] > 50
    anew.restart()
    anew.hall.cycle()
    assert anew.known()["persons"] > 50


@pytest.mark.parametrize("topic", ["raw", STATE])
def test_who_is_told_to_begin_anew_is_told_to_delete_what_is_remembered_too(quarter: Quarter, topic: str) -> None:
    quarter.paper.ids[topic] = UUID(int=9)
    quarter.come(40)
    quarter.hall.cycle()
    assert f"delete topics '{STATE}' and '{MEMORY.topic}' and the offsets of group" in quarter.stopped()


def test_a_policy_after_a_drain_that_keeps_cohorts_goes_on_with_them(quarter: Quarter, key_file: Path) -> None:
    quarter.hall.cycle(2)
    before = quarter.known()
    assert kept(quarter, key_file) == {0: 240}
    after = Quarter(key_file, paper=quarter.paper, k=2, delay={"tuples": 30}, founders=4)
    after.hall.cycle()
    assert {name: after.known()[name] for name in ("since", "persons", "dismissed")} == {
        name: before[name] for name in ("since", "persons", "dismissed")
    }
    assert after.known()["cohorts"] >= before["cohorts"] > 0, "those whom the end let found some, too"
    after.values, after.random, after.seen = quarter.values, quarter.random, quarter.seen
    for _ in range(6):
        after.come(40)
        after.hall.cycle()
    after.hall.cycle(3)
    assert after.hall.worker.metrics.status()["counts"]["refused_releases"] == 0
    assert after.least() >= 2
    # Whoever ends it without keeping them forgets them after all.
    worker = Worker(after.hall.stream, after.paper, WorkerSettings(key_file=key_file), Metrics(after.hall.stream))
    after.paper.assign(0)
    worker.drain()
    anew = Quarter(key_file, paper=quarter.paper, k=9, founders=18)
    anew.hall.cycle()
    assert anew.known()["persons"] == 0


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"k": K + 1}, f"asks for k={K + 1}, and k={K} was promised: at most that"),
        ({"l": 2}, "another l and another list of sensitive attributes"),
        ({"company": "present"}, "another company"),
        ({"memory": 60.0}, "another memory"),
    ],
)
def test_cohorts_are_not_kept_for_a_policy_that_asks_for_more(
    quarter: Quarter, key_file: Path, asked: Any, reason: str
) -> None:
    kept(quarter, key_file)
    other = Quarter(key_file, paper=quarter.paper, **asked)
    assert reason in other.stopped()
    anew = Quarter(key_file, paper=quarter.paper)
    anew.hall.cycle()
    assert anew.known()["persons"] > 50, "nothing was lost by trying"


def test_cohorts_are_kept_for_the_same_quasi_identifiers_and_persons_only(quarter: Quarter, key_file: Path) -> None:
    kept(quarter, key_file)
    stream = quarter.hall.stream
    wider = replace(stream.schema, quasi=(Number("age", 0, 200), *stream.schema.quasi[1:]))
    for other, reason in [
        (replace(stream, schema=wider, engine=lambda: Cohorts(wider, **ASKED)), "another list of quasi-identifiers"),
        (replace(stream, schema=replace(stream.schema, person="whom")), "another person"),
        (replace(stream, keyed="crc32"), "another keyed"),
        (replace(stream, engine=lambda: Castle(SCHEMA, k=K, delta=40), remembers=False), "remembers nobody"),
    ]:
        worker = Worker(other, quarter.paper, WorkerSettings(key_file=key_file), Metrics(other))
        quarter.paper.assign(0)
        with pytest.raises(PartitionError, match=reason):
            worker.drain()


def test_cohorts_cannot_be_kept_where_keys_have_moved(quarter: Quarter, key_file: Path) -> None:
    quarter.hall.stream = replace(quarter.hall.stream, schema=replace(SCHEMA, person=PersonSource.KEY), keyed="murmur2")
    quarter.paper.grown = dict.fromkeys(("raw", STATE, MEMORY.topic), 2)
    with pytest.raises(PartitionError, match="keys have moved"):
        kept(quarter, key_file, 2)


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_partition_that_came_after_a_drain_begins_with_the_present_number(
    key_file: Path, start: Literal["earliest", "latest"]
) -> None:
    """It is begun first, while all states that there are speak of the number before."""
    quarter = Quarter(key_file)
    stream = replace(quarter.hall.stream, schema=replace(SCHEMA, person=PersonSource.KEY), keyed="murmur2", start=start)
    quarter.hall.cycle()
    quarter.hall.worker.close()
    settings = WorkerSettings(key_file=key_file)
    quarter.paper.assign(0)
    Worker(stream, quarter.paper, settings, Metrics(stream)).drain()
    quarter.paper.grown = dict.fromkeys(("raw", STATE, MEMORY.topic), 2)
    quarter.hall.feed((b"p1", b"{}"), place=RAW_1)
    for assigned in ([1], [0, 1], [0, 1]):
        worker = Worker(stream, quarter.paper, settings, Metrics(stream))
        assert worker.open(threading.Event())
        worker._owned.join()
        quarter.paper.assign(*assigned)
        worker._poll(0.0, 1)
        assert worker._owned.stopped == {}
        assert [worker._owned.running[Partition("raw", number)]._state.first_partitions for number in assigned] == [
            2
        ] * len(assigned)
        assert worker._owned.running[RAW_1].position == 0, "what came before it was begun is not passed over"
        worker.close()


def test_a_forgotten_person_is_gone_from_the_bytes_once_they_are_compacted(quarter: Quarter, key_file: Path) -> None:
    quarter.hall.cycle(3)
    known = quarter.known()
    codes = quarter.hall.worker._connections.tags_of(["p7", "p8", "stranger"])[:, 0]
    assert {*codes.tolist()} & remembered(quarter, key_file) == set(codes[:2].tolist())
    quarter.hall.worker.close()
    stream = quarter.hall.stream
    worker = Worker(stream, quarter.paper, WorkerSettings(key_file=key_file), Metrics(stream))
    quarter.paper.assign(0)
    assert worker.forget(["p7", "p8", "stranger"]) == {0: 2}
    quarter.compact()
    assert {*codes.tolist()} & remembered(quarter, key_file) == set()
    anew = Quarter(key_file, paper=quarter.paper)
    anew.values = quarter.values
    anew.hall.cycle()
    assert anew.known()["persons"] == known["persons"] - 2
    assert anew.known()["members"] + anew.known()["dismissed"] + anew.known()["pool"] == anew.known()["persons"]
    anew.bring(7)
    anew.hall.cycle()
    assert anew.known()["persons"] == known["persons"] - 1, "who comes again is known anew"
    anew.restart()
    anew.hall.cycle()
    assert anew.known()["persons"] == known["persons"] - 1, "and after a restart"


def remembered(quarter: Quarter, key_file: Path) -> set[int]:
    """The codes of all persons in any record that compaction has not removed."""
    keys, codes = load_keys(key_file), set[int]()
    for number, (key, value) in enumerate(quarter.paper.logs[MEMORY]):
        if value is not None and (MEMORY, number) not in quarter.paper.gone:
            arrays = unpack(keys.open(value, MEMORY, key)[0])[1]
            codes |= set(arrays.get("persons.tag", np.empty((0, 2)))[:, 0].tolist())
    return codes
