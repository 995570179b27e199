"""One cycle of the worker, call by call, where a broker cannot be asked for the moment."""

import json
import logging
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from prometheus_client import generate_latest

from microdata import GuaranteeError
from service.kafka import AbortableError, FatalError, Partition, RetriableError, UnclearError
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.state import State
from service.worker.stream import Stream
from stream_algos import Castle
from tests.service.worker.chunks import Chunks
from tests.service.worker.paper_kafka import Paper
from tests.service.worker.test_crashes import SCHEMA

RAW, RAW_1 = Partition("raw", 0), Partition("raw", 1)
STATE = "portcullis.safe.state"


def event(trace: Any, person: Any, **other: Any) -> Any:
    fields = {"who": person, "age": 7, "city": "a", "item": "x", "trace": trace}
    return None, json.dumps(fields | other).encode()


class Hall:
    """A worker on paper, turned by hand."""

    def __init__(
        self,
        partitions: int = 1,
        paper: Any = None,
        start: Any = "earliest",
        kind: Any = Chunks,
        settings: Any = None,
        **engine: Any,
    ) -> None:
        self.paper, self.now = paper or Paper(partitions), 1000.0
        make = partial(kind, SCHEMA, **{"k": 2, **engine})
        self.stream = Stream(
            "s",
            "raw",
            "safe",
            SCHEMA,
            make().models(),
            make,
            "f",
            start,
            dead_letters="dead",
            remembers=make().remembers,
        )
        self.worker = Worker(
            self.stream, self.paper, WorkerSettings(**settings or {}), Metrics(self.stream), clock=lambda: self.now
        )
        assert self.worker.open(threading.Event())
        self.worker._owned.join()
        self.paper.assign(*range(partitions))

    def feed(self, *events: Any, place: Any = RAW) -> None:
        self.paper.logs[place].extend(events)

    def cycle(self, count: int = 1) -> None:
        """Cycles of one poll each."""
        once = threading.Event()
        once.set()
        for _ in range(count):
            self.paper.calls.clear()
            self.worker._cycle(once)

    def names(self) -> Any:
        return [call[0] for call in self.paper.calls]

    def output(self) -> Any:
        return [json.loads(value) for n in range(2) for _, value in self.paper.logs[Partition("safe", n)]]


@pytest.fixture
def hall() -> Iterator[Any]:
    hall = Hall()
    yield hall
    hall.worker.close()


def test_a_claim_comes_before_anything_is_taken(hall: Any) -> None:
    hall.feed(event(0, 0))
    hall.cycle()
    names = hall.names()
    claim = names[: names.index("commit") + 1]
    assert claim == ["poll", "token", "init", "init", "begin", "wait", "flush", "offsets", "commit"]
    assert hall.paper.calls[claim.index("offsets")][1][RAW].offset == 0
    assert len(hall.paper.logs[Partition(STATE, 0)]) == 1


def test_a_transaction_waits_once_for_the_states_of_all_partitions() -> None:
    hall = Hall(2)
    hall.cycle()
    for place in (RAW, RAW_1):
        hall.feed(event(0, 0), event(1, 1), place=place)
    hall.cycle()
    assert hall.names().count("wait") == 1
    assert {place: offset.offset for place, offset in hall.paper.committed_offsets.items()} == {RAW: 2, RAW_1: 2}
    for place in (RAW, RAW_1):
        note = json.loads(hall.paper.committed_offsets[place].metadata)
        key, value = hall.paper.logs[Partition(STATE, place.number)][note["state"]]
        assert (key, State.decode(value).sequence) == (str(place.number).encode(), note["sequence"])
    hall.worker.close()


def test_a_transaction_opens_after_the_poll_and_its_token_and_waits_for_the_state_before_the_offsets(
    hall: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1), (None, b"poison"))
    encode = State.encode
    monkeypatch.setattr(State, "encode", lambda *given: hall.paper.calls.append(("encode",)) or encode(*given))
    hall.cycle()
    assert hall.names() == [
        "poll",
        "token",
        "encode",
        "begin",
        "produce",
        "wait",
        "flush",
        "offsets",
        "commit",
        "committed",
    ]
    assert hall.paper.calls[-3][2].handle == hall.paper.polls, "the token of the poll that returned the records"
    assert hall.output() == [], "decided, not published"
    hall.cycle()
    assert [call[:2] for call in hall.paper.calls[4:6]] == [("produce", "safe"), ("wait", STATE)]
    assert [row["trace"] for row in hall.output()[0]["rows"]] != []
    offset = hall.paper.committed_offsets[RAW]
    note = json.loads(offset.metadata)
    assert note == {"state": 2, "sequence": 3, "topic_id": "00000000-0000-0000-0000-000000000007"}
    assert offset.offset == 3
    hall.cycle()
    assert "begin" not in hall.names(), "there is nothing to say"


@pytest.mark.parametrize(("generation", "member"), [(-1, "me"), (-1, ""), (3, "")])
def test_a_token_that_proves_nothing_opens_no_transaction_and_everything_is_forgotten(
    hall: Any, generation: int, member: str
) -> None:
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1))
    hall.paper.generation, hall.paper.member = generation, member
    hall.cycle()
    assert "begin" not in hall.names()
    assert hall.worker._owned.running == {}
    hall.paper.generation, hall.paper.member = 4, "me"
    hall.cycle(3)
    assert len(hall.output()) == 1


def test_a_partition_revoked_in_the_middle_of_a_cycle_is_dropped_with_what_it_took() -> None:
    hall = Hall(2)
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1))
    hall.feed(event(10, 0), event(11, 1), place=RAW_1)
    hall.worker._take_some(0)
    hall.paper.assign(1)
    hall.worker._take_some(0)
    assert set(hall.worker._owned.running) == {RAW_1}
    hall.cycle(2)
    assert hall.paper.committed_offsets[RAW].offset == 0
    assert hall.paper.committed_offsets[RAW_1].offset == 2
    assert {row["trace"] for cluster in hall.output() for row in cluster["rows"]} == {10, 11}
    hall.worker.close()


def test_what_the_member_does_not_own_is_not_committed_even_if_nobody_said_so(hall: Any) -> None:
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1))
    hall.worker._take_some(0)
    hall.paper.owned = frozenset()
    hall.cycle()
    assert "begin" not in hall.names()


def test_a_partition_that_comes_back_starts_from_what_is_durable(hall: Any) -> None:
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1))
    hall.worker._take_some(0)
    hall.paper.assign()
    hall.paper.assign(0)
    hall.cycle(4)
    traces = [row["trace"] for cluster in hall.output() for row in cluster["rows"]]
    assert sorted(traces) == [0, 1]
    assert hall.worker.metrics.status()["counts"]["taken"] == 2


FAILURES = {
    "poll": RetriableError("away"),
    "init": RetriableError("away"),
    "begin": FatalError("broke"),
    "produce": AbortableError("no room"),
    "wait": AbortableError("not acknowledged"),
    "flush": AbortableError("not acknowledged"),
    "offsets": UnclearError("no answer"),
    "commit": UnclearError("no answer"),
    "committed": UnclearError("no answer"),
}


@pytest.mark.parametrize("when", ["it is decided", "it is published"])
@pytest.mark.parametrize("call", FAILURES)
def test_no_failure_says_a_value_anywhere_or_costs_or_doubles_an_event(
    call: Any, when: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every value that comes in is marked; logs, metrics, status, dead letters and state hold no mark."""
    hall, marked = Hall(k=3), "s3cr3t"
    caplog.set_level(logging.DEBUG)
    hall.cycle()
    good = [event(f"{marked}-{n}", f"{marked}{n}", age=n, note=marked) for n in range(3)]
    bad = [
        (marked.encode(), marked.encode()),
        (marked.encode(), None),
        event(marked, marked, age=marked),
        event(marked, marked, age=1e9),
        event(marked, marked, city=marked),
        event(marked, {marked: marked}),
        (None, event(marked, 1)[1][:-1] + f',"age":1,"{marked}":NaN}}'.encode()),
    ]
    hall.feed(*good[:2], *bad)
    hall.cycle()
    hall.feed(good[2], bad[0])
    if when == "it is published":
        hall.cycle()
    hall.paper.errors[call] = FAILURES[call]
    if call == "init":
        hall.worker._owned.discard()
    hall.cycle(5)
    assert not hall.paper.errors, "it has happened"
    (cluster,) = hall.output()
    assert sorted(row["trace"] for row in cluster["rows"]) == [f"{marked}-{n}" for n in range(3)]
    letters = [value for _, value in hall.paper.logs[Partition("dead", 0)]]
    assert len(letters) == len(bad) + 1
    states = [value for _, value in hall.paper.logs[Partition(STATE, 0)]]
    told = [*letters, *states, generate_latest(hall.worker.metrics.registry)]
    told += [json.dumps(hall.worker.metrics.status()).encode(), caplog.text.encode()]
    told += [committed.metadata.encode() for committed in hall.paper.committed_offsets.values()]
    assert not any(marked.encode() in text for text in told)
    hall.worker.close()


def test_a_state_that_outgrows_its_limit_stops_its_partition_before_anything_is_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hall, encode = Hall(2), State.encode
    hall.cycle()
    limit = hall.worker._settings.max_state_bytes
    monkeypatch.setattr(
        State, "encode", lambda own, packed: encode(own, packed) + bytes(0 if own.origin.partition else limit)
    )
    hall.feed(event(0, 0), event(1, 1))
    hall.feed(event(10, 0), event(11, 1), place=RAW_1)
    hall.cycle(3)
    assert hall.paper.committed_offsets[RAW].offset == 0
    assert {row["trace"] for cluster in hall.output() for row in cluster["rows"]} == {10, 11}
    assert f"max_state_bytes allows {limit}" in hall.worker.metrics.status()["stopped"]["0"]
    hall.worker.close()


def test_an_engine_that_refuses_its_own_release_stops_its_partition_only(monkeypatch: pytest.MonkeyPatch) -> None:
    hall = Hall(2)
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1))
    hall.feed(event(10, 0), event(11, 1), place=RAW_1)

    def broken(batch: Any) -> None:
        raise GuaranteeError("1 class")

    monkeypatch.setattr(hall.worker._owned.running[RAW].engine, "push", broken)
    hall.cycle(3)
    assert {row["trace"] for cluster in hall.output() for row in cluster["rows"]} == {10, 11}
    assert hall.paper.committed_offsets[RAW].offset == 0
    status = hall.worker.metrics.status()
    assert status["stopped"] == {"0": "the engine refused its own release: 1 class"}
    assert status["counts"]["refused_releases"] == 1
    hall.worker.close()


def test_what_would_be_due_before_the_next_cycle_is_decided_in_this_one_and_a_thin_partition_draws_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hall = Hall(k=5, seconds=10.0)
    hall.cycle()
    for number in range(3):
        hall.feed(event(number, number))
        hall.cycle()
        hall.now += 9.4
        hall.cycle()
        assert hall.worker.metrics.status()["counts"].get("suppressed", 0) == number
        hall.now += 0.2  # with the half second of a cycle, more than ten
        hall.cycle()
        assert hall.worker.metrics.status()["counts"]["suppressed"] == number + 1
    assert caplog.text.count("raw/0: too few persons within the delay") == 1
    assert hall.worker.metrics.status()["gauges"]["thin"] == 1
    hall.worker.close()


@pytest.mark.parametrize(("on_stop", "left", "kept"), [("keep", 0, 4), ("flush", 4, 0)])
def test_a_stop_keeps_what_is_pending_or_publishes_what_it_flushes(on_stop: str, left: int, kept: int) -> None:
    hall = Hall(kind=Castle, delta=100, settings={"on_stop": on_stop})
    hall.cycle()
    hall.feed(*[event(number, number) for number in range(4)])
    hall.cycle()
    hall.worker._finish()
    assert sum(len(cluster["rows"]) for cluster in hall.output()) == left
    assert len(State.decode(hall.paper.logs[Partition(STATE, 0)][-1][1]).pending) == kept
    hall.worker.close()


def test_a_stop_publishes_what_is_decided(hall: Any) -> None:
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1), event(2, 2))
    hall.cycle()
    assert hall.output() == []
    hall.worker._finish()
    assert len(hall.output()) == 1
    assert State.decode(hall.paper.logs[Partition(STATE, 0)][-1][1]).pending.tolist() == [2]


@pytest.mark.parametrize("restart", [False, True])
def test_rows_leave_in_the_shuffled_order_of_their_decision_whoever_publishes_it(restart: bool) -> None:
    hall = Hall(k=9)
    hall.cycle()
    hall.feed(*[event(number, number) for number in range(9)])
    hall.cycle()
    decided = State.decode(hall.paper.logs[Partition(STATE, 0)][-1][1]).decisions
    if restart:
        hall.worker._owned.discard()
    hall.cycle(2)
    (cluster,) = hall.output()
    assert [row["trace"] for row in cluster["rows"]] == decided.members.tolist()
    assert cluster["cluster"] == f"{decided.ids[0]:016x}"
    hall.worker.close()


@pytest.mark.parametrize("limit", [50_000, 99_000_000])
def test_messages_are_as_large_as_both_topic_and_client_take(limit: int) -> None:
    hall = Hall(paper=Paper(1, **{"max.message.bytes": str(limit)}))
    assert hall.worker._connections.topics.message_bytes == min(limit, Paper.largest_request) - 1024
    hall.worker.close()


def test_records_leave_without_a_key_and_with_the_rounded_time_of_their_commit(hall: Any) -> None:
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1))
    hall.now = 1234.567
    hall.cycle(2)
    stamps = {call[2] for call in hall.paper.calls if call[0] in {"produce", "wait"}}
    assert stamps == {1_234_000}
    assert [key for key, _ in hall.paper.logs[Partition("safe", 0)]] == [None]


def test_a_take_time_survives_its_owner() -> None:
    """The delay counts from when an event was first taken, whoever decides it."""
    hall = Hall(k=5, seconds=10.0)
    hall.cycle()
    hall.feed(event(0, 0))
    hall.cycle()
    hall.now += 6
    hall.worker._owned.discard()
    hall.cycle()
    assert hall.worker.metrics.status()["counts"].get("suppressed", 0) == 0
    hall.now += 5
    hall.cycle()
    assert hall.worker.metrics.status()["counts"]["suppressed"] == 1
    hall.worker.close()
