"""Taking over a partition, with every disagreement of offset, state, topic and policy made on purpose."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from service.kafka import Committed, GoneError, Partition
from service.worker.state import State
from stream_algos import Castle
from tests.service.worker.test_cycle import RAW, STATE, Hall, event

STATES = Partition(STATE, 0)


def stopped(hall: Any) -> Any:
    hall.cycle()
    (reason,) = hall.worker.metrics.status()["stopped"].values()
    assert hall.worker._owned.running == {}
    assert "begin" not in hall.names()
    return reason


@pytest.fixture
def hall() -> Iterator[Any]:
    """A worker that has published a cluster of the events 0 and 1 and holds event 2, and is about to take over anew."""
    hall = Hall()
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1), event(2, 2))
    hall.cycle(2)
    assert len(hall.output()) == 1
    hall.worker._owned.discard()
    yield hall
    hall.worker.close()


def noted(hall: Any, offset: Any = None, **changes: Any) -> None:
    """Change what is committed with the input's offset."""
    committed = hall.paper.committed_offsets[RAW]
    metadata = json.dumps(json.loads(committed.metadata) | changes)
    hall.paper.committed_offsets[RAW] = Committed(committed.offset if offset is None else offset, metadata)


def rewritten(hall: Any, **changes: Any) -> None:
    """Change whose the last state is."""
    states = hall.paper.logs[STATES]
    state = State.decode(states[-1][1])
    states[-1] = (b"0", replace(state, origin=replace(state.origin, **changes)).encode())


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda hall: noted(hall, state=99), "names state record 99 of portcullis.safe.state, which is gone"),
        (lambda hall: hall.paper.gone.add((STATES, 2)), "names state record 2 of portcullis.safe.state, which is gone"),
        (lambda hall: noted(hall, sequence=7), "(sequence 7) and its state record (offset 3, sequence 3) disagree"),
        (lambda hall: noted(hall, state=1), "(sequence 3) and its state record (offset 3, sequence 2) disagree"),
        (lambda hall: noted(hall, offset=2), "committed offset 2 (sequence 3) and its state record (offset 3"),
        (lambda hall: noted(hall, topic_id="another"), "disagree"),
        (lambda hall: hall.paper.committed_offsets.update({RAW: Committed(3, "mine")}), "that no worker wrote"),
        (lambda hall: rewritten(hall, topic="other"), "the state record is about other/0"),
        (lambda hall: rewritten(hall, partition=1), "the state record is about raw/1"),
        (lambda hall: rewritten(hall, stream="other"), "is fed by stream 'other'"),
        (lambda hall: rewritten(hall, fingerprint="other"), "run `portcullis drain` with the old policy"),
        (lambda hall: hall.paper.logs[STATES].__setitem__(2, (b"0", b"PCS0")), "not a state record of this version"),
        (lambda hall: hall.paper.gone.add((RAW, 2)), "1 undecided or unpublished events are gone"),
    ],
)
def test_every_disagreement_stops_the_partition_with_its_reason(hall: Any, spoil: Any, reason: str) -> None:
    spoil(hall)
    assert reason in stopped(hall)


def test_a_topic_that_was_created_anew_stops_the_partition(hall: Any) -> None:
    rewritten(hall, topic_id=State.decode(hall.paper.logs[STATES][0][1]).origin.topic_id.__class__(int=8))
    noted(hall, topic_id="00000000-0000-0000-0000-000000000008")
    assert "its id changed" in stopped(hall)


def test_what_is_settled_is_not_read_again_and_gaps_are_no_loss(hall: Any) -> None:
    hall.paper.gone |= {(RAW, 0), (RAW, 1)}
    hall.cycle()
    (partition,) = hall.worker._owned.running.values()
    assert partition.rows.positions.tolist() == [2]
    hall.feed((None, b""), event(4, 4))
    hall.paper.gone.add((RAW, 3))
    hall.cycle(2)
    assert [sorted(row["trace"] for row in cluster["rows"]) for cluster in hall.output()] == [[0, 1], [2, 4]]


def test_what_was_refused_is_not_refused_again_when_it_is_read_again() -> None:
    hall = Hall(k=3)
    hall.cycle()
    hall.feed(event(0, 0), (None, b"poison"), event(2, 1))
    hall.cycle()
    hall.worker._owned.discard()
    hall.cycle()
    assert hall.worker.metrics.status()["counts"]["refused.not_json"] == 1
    assert len(hall.paper.logs[Partition("dead", 0)]) == 1
    hall.worker.close()


def test_without_an_offset_the_last_state_decides(hall: Any) -> None:
    hall.paper.committed_offsets.clear()
    hall.feed(event(3, 3))
    hall.cycle(3)
    assert [sorted(row["trace"] for row in cluster["rows"]) for cluster in hall.output()] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(("start", "position"), [("earliest", 0), ("latest", 2)])
def test_without_offset_and_state_the_policy_says_where_to_begin(start: str, position: int) -> None:
    hall = Hall(start=start)
    hall.feed(event(0, 0), event(1, 1))
    hall.cycle()
    assert json.loads(hall.paper.committed_offsets[RAW].metadata)["sequence"] >= 1
    assert State.decode(hall.paper.logs[STATES][0][1]).position == position
    hall.worker.close()


def test_an_accepted_loss_counts_what_was_pending_and_suppresses_a_decision_whole() -> None:
    hall = Hall(settings={"accept_loss": True})
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1), event(2, 2))
    hall.cycle()
    hall.worker._owned.discard()
    hall.paper.gone |= {(RAW, 1), (RAW, 2)}
    hall.feed(event(3, 3), event(4, 4))
    hall.cycle(3)
    assert [sorted(row["trace"] for row in cluster["rows"]) for cluster in hall.output()] == [[3, 4]]
    assert hall.worker.metrics.status()["partitions"]["0"]["totals"] == {
        "taken": 5,
        "released": 2,
        "suppressed": 3,
        "clusters": 1,
        "reused": 0,
    }
    hall.worker.close()


def test_events_that_are_gone_before_they_are_taken_stop_the_partition(hall: Any) -> None:
    hall.cycle()
    hall.paper.low[RAW] = 7
    hall.paper.errors["poll"] = GoneError(*RAW, 3)
    assert "offset 3 is gone from the input, which begins at 7 now" in stopped(hall)


def test_events_that_are_gone_before_they_are_taken_count_as_suppressed_where_that_is_accepted() -> None:
    hall = Hall(settings={"accept_loss": True})
    hall.cycle()
    hall.feed(*[event(number, number) for number in range(9)])
    hall.paper.low[RAW] = 7
    hall.paper.errors["poll"] = GoneError(*RAW, 0)
    hall.cycle(3)
    assert [sorted(row["trace"] for row in cluster["rows"]) for cluster in hall.output()] == [[7, 8]]
    counts = hall.worker.metrics.status()["counts"]
    assert (counts["taken"], counts["released"], counts["suppressed"]) == (9, 2, 7)
    hall.worker.close()


def test_a_drain_publishes_what_is_owed_and_what_it_flushes_and_records_the_end() -> None:
    first = Hall(kind=Castle, delta=4)
    first.cycle()
    first.feed(*[event(number, number % 4) for number in range(8)])
    first.cycle()
    first.worker._owned.discard()
    assert first.output() == [], "decided or pending, and then its owner is gone"
    drain = Hall(kind=Castle, delta=4, paper=first.paper)
    assert drain.worker.drain() == {0: 8}
    end = State.decode(first.paper.logs[STATES][-1][1])
    assert end.engine is None
    assert (len(end.pending), len(end.decisions), end.needed_from) == (0, 0, None)
    traces = [row["trace"] for cluster in first.output() for row in cluster["rows"]]
    assert len(traces) == len(set(traces)) == end.totals["released"] > 0
    assert end.totals["released"] + end.totals["suppressed"] == end.totals["taken"] == 8
    after = Hall(paper=first.paper)
    after.feed(event(8, 1), event(9, 2))
    after.cycle(3)
    assert [row["trace"] for row in after.output()[-1]["rows"]] in ([8, 9], [9, 8])
    after.worker.close()
    first.worker.close()
