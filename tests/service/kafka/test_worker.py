"""The worker on real clients and brokers: exactly once, fail closed, nothing that links back."""

import contextlib
import dataclasses
import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from microdata import Number
from service.kafka import (
    AbortableError,
    Committed,
    FatalError,
    KafkaError,
    Partition,
    TooLargeError,
    UnclearError,
    Watermarks,
)
from service.publishing.gate import Gate
from service.settings import SettingsError
from service.worker.loop import Worker
from service.worker.ownership import Ownership
from service.worker.settings import WorkerSettings
from service.worker.topics import TopicError
from service.worker.transactions import Transactions
from tests.service.kafka.worker_world import SCHEMA, Town, event, people, renamed
from tests.service.kafka.world import eventually


@pytest.fixture
def town(world: Any) -> Iterator[Any]:
    town = Town(world)
    yield town
    town.stop()


def test_every_event_leaves_once_in_a_cluster_of_k_persons_or_is_accounted_for(town: Any) -> None:
    events = people(200, 12)
    poison = [b"not json", None, b'{"who": "p1", "age": 500, "city": "a", "item": "x"}', b'{"age": 1}', b'{"age": "x"}']
    town.feed(*events[:100], *poison, *events[100:], keys=[b"key"] * 205)
    worker = town.start()
    town.until_all_left(worker, 200)
    town.stop()
    released = town.released()
    assert len(released) == len(set(released))
    counts = worker.metrics.status()["counts"]
    assert counts["taken"] == 205
    assert counts["refused_releases"] == 0
    person = {json.loads(e)["trace"]: json.loads(e)["who"] for e in events}
    town.assert_each_cluster_has(3, person.__getitem__)
    letters = [json.loads(value) for value in town.values(town.stream.dead_letters)]
    assert sorted((letter["offset"], letter["field"], letter["reason"]) for letter in letters) == [
        (100, "(record)", "not_json"),
        (101, "(record)", "tombstone"),
        (102, "age", "out_of_domain"),
        (103, "who", "missing"),
        (104, "age", "wrong_type"),
    ]
    assert b"p1" not in b"".join(town.values(town.stream.dead_letters))


def test_the_status_tells_what_was_asked_and_what_the_least_safe_cluster_achieved(town: Any) -> None:
    worker = town.start()
    before = worker.metrics.status()["guarantee"]
    assert before == [{"model": "k-anonymity", "asked": 3.0, "achieved": None, "more_is_safer": True}]
    town.feed(*people(60, 9))
    town.until(lambda: worker.metrics.status()["guarantee"][0]["achieved"] == 3)
    assert worker.metrics.status()["gauges"]["delay"] > 0


def test_what_leaves_carries_nothing_extra(town: Any) -> None:
    town.feed(*people(30, 12), keys=[b"key-%d" % n for n in range(30)])
    worker = town.start()
    town.until(lambda: worker.metrics.status()["counts"].get("released", 0) >= 27)
    town.stop()
    reader = town.world.reader()
    low, high = reader.watermarks(Partition(town.stream.output, 0))
    for batch in reader.read(Partition(town.stream.output, 0), low, high, 60):
        assert batch.keys == [None] * len(batch)
        assert (batch.timestamps % 1000 == 0).all(), "the commit tick, not a time of the input"
        for value in batch.values:
            cluster = json.loads(value)
            assert set(cluster) == {"cluster", "generalization", "rows"}
            assert set(cluster["generalization"]) == {"age", "city"}
            assert all(set(row) == {"item", "trace"} for row in cluster["rows"])
            assert b"undeclared" not in value


def test_a_successor_goes_on_where_a_killed_worker_left_its_commits(town: Any) -> None:
    town.feed(*people(100, 9))
    first = town.start()
    town.until(lambda: first.metrics.status()["counts"].get("released", 0) > 50)
    first.close = lambda: None  # a killed process says no goodbye
    first._finish = lambda: None
    town.stop()
    first._owned.close()
    first._transactions.discard()
    first._connections.close()
    town.feed(*people(100, 9, start=100))
    second = town.start()
    town.until(lambda: second.metrics.unready() is None)
    town.until_all_left(second, 200)
    town.stop()
    released = town.released()
    assert len(released) == len(set(released))
    totals = second.metrics.status()
    assert totals["counts"]["restores"] >= 1
    town.assert_never_under_two_boxes()


ERRORS = {"no abort": AbortableError("nor can it be aborted"), "fatal": FatalError("the client broke")}


class Accident:
    """Makes a worker's transactions fail on purpose, each of the given times in the given way."""

    def __init__(self, worker: Worker, ways: list[str]) -> None:
        self.worker, self.ways, self.happened = worker, ways, []  # type: ignore[var-annotated]
        open_producer = worker._transactions._client.producer
        accident = self

        class Unlucky:
            def __init__(self, producer: Any) -> None:
                self._producer = producer

            def __getattr__(self, name: Any) -> Any:
                return getattr(self._producer, name)

            def commit(self) -> None:
                way = accident.ways.pop(0) if accident.ways else "commit"
                accident.happened.append(way)
                if way == "abort":
                    self._producer.abort()
                    raise UnclearError("the test aborted it")
                if way in ERRORS:
                    raise ERRORS[way]
                self._producer.commit()
                if way == "unclear":
                    raise UnclearError("the test lost the answer")

            def abort(self) -> None:
                raise FatalError("the test does not let it abort")

        class Client:
            def __getattr__(self, name: Any) -> Any:
                return getattr(worker_client, name)

            def producer(self, transactional_id: Any) -> Any:
                return Unlucky(open_producer(transactional_id))

        worker_client = worker._transactions._client
        worker._transactions._client = Client()


def test_aborts_and_unclear_commits_never_show_an_event_under_two_clusters(town: Any) -> None:
    town.feed(*people(300, 9))
    worker = town.worker(commit_events=20, poll_records=20)
    ways = ["commit", "commit", "abort", "unclear", "commit", "no abort", "commit", "abort", "abort", "commit"]
    ways += ["unclear", "commit", "fatal"]
    accident = Accident(worker, ways.copy())
    town.start(worker)
    town.until_all_left(worker, 300)
    town.stop()
    assert accident.happened[: len(ways)] == ways
    released = town.released()
    assert len(released) == len(set(released))
    town.assert_never_under_two_boxes()


def test_a_worker_that_resumes_from_memory_is_caught(town: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resuming from memory, on purpose: what an unclear commit had published leaves a second time."""
    town.feed(*people(300, 9))
    worker = town.worker(commit_events=20, poll_records=20)
    Accident(worker, ["commit", "commit", "unclear"])

    monkeypatch.setattr(Ownership, "discard", lambda self: self._transactions.discard())
    town.start(worker)
    town.until(lambda: worker.metrics.status()["counts"].get("taken", 0) >= 250)
    town.stop()
    released = town.released()
    assert len(released) > len(set(released))


def test_output_without_its_state_is_caught(town: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction broken on purpose: clusters are published, but state and offset are not committed with them."""
    town.feed(*people(100, 9))

    def without_state(self: Any, producer: Any, token: Any, settlements: Any) -> Any:
        del token
        producer.begin()
        for settlement in settlements.values():
            for number, values in settlement.published.messages.items():
                producer.produce(Partition(self._stream.output, number), values)
        producer.flush()
        producer.commit()
        return settlements

    with monkeypatch.context() as broken:
        broken.setattr(Transactions, "_transact", without_state)
        worker = town.start()
        town.until(lambda: worker.metrics.status()["counts"].get("released", 0) > 50)
        town.stop()
    successor = town.start()
    town.until(lambda: successor.metrics.status()["counts"].get("released", 0) > 50)
    town.stop()
    released = town.released()
    assert len(released) > len(set(released))
    with pytest.raises(AssertionError):
        town.assert_never_under_two_boxes()


def test_the_gate_suppresses_a_cluster_that_fails_and_publishes_nothing_of_it(
    town: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = Gate.passes

    def refuse_first(self: Any, decisions: Any, rows: Any, published: Any) -> Any:
        passed = passes(self, decisions, rows, published)
        passed[:1] = False
        return passed

    monkeypatch.setattr(Gate, "passes", refuse_first)
    town.feed(*people(60, 9))
    worker = town.start()
    town.until(lambda: worker.metrics.status()["counts"].get("refused_releases", 0) > 0)
    town.until_settled(worker, 55)
    town.stop()
    counts = worker.metrics.status()["counts"]
    assert counts["suppressed"] > 0
    assert len(town.released()) == counts["released"]


def test_a_dead_letter_that_cannot_be_written_stops_the_worker_and_loses_nothing(world: Any) -> None:
    town = Town(world)
    narrow = world.topic(1, "-narrow", max_message_bytes="80").topic
    good = town.stream
    town.stream = renamed(good, dead_letters=narrow)
    town.feed(event(1, 1), b"not json", event(2, 2), event(3, 3))
    town.start()
    eventually(lambda: town.errors)
    assert isinstance(town.errors.pop(), TooLargeError)
    town.running.clear()
    town.stream = good
    try:
        town.start()
        town.until(lambda: sorted(town.released()) == [1, 2, 3])
        assert len(town.values(good.dead_letters)) == 1  # type: ignore[arg-type]
    finally:
        town.stop()


def test_an_idle_partition_drains_on_time(world: Any) -> None:
    town = Town(world, k=5, seconds=0.5)
    try:
        town.feed(event(1, 1), event(2, 2))
        worker = town.start()
        town.until(lambda: worker.metrics.status()["counts"].get("suppressed", 0) == 2)
        assert worker.metrics.status()["gauges"]["thin"] == 1
    finally:
        town.stop()
    assert town.output() == []


def test_a_stop_keeps_what_is_pending_and_flush_lets_it_go(town: Any) -> None:
    town.feed(event(1, 1), event(2, 2))
    worker = town.start()
    town.until(lambda: worker.metrics.status()["counts"].get("taken", 0) == 2)
    town.stop()
    assert worker.metrics.status()["counts"].get("suppressed", 0) == 0
    town.feed(event(3, 3))
    town.start()
    town.until(lambda: sorted(town.released()) == [1, 2, 3])
    town.stop()
    town.feed(event(4, 1))
    last = town.start(on_stop="flush")
    town.until(lambda: last.metrics.status()["counts"].get("taken", 0) == 1)
    town.stop()
    assert last.metrics.status()["counts"]["suppressed"] == 1


def stopped_reason(town: Any, worker: Any) -> Any:
    town.until(lambda: worker.metrics.status()["stopped"])
    return worker.metrics.status()["stopped"]["0"]


def run_once(town: Any, *events: Any) -> None:
    town.feed(*events)
    worker = town.start()
    town.until(lambda: worker.metrics.status()["counts"].get("taken", 0) >= len(events))
    town.stop()


def test_another_policy_is_refused_until_the_stream_is_drained(town: Any) -> None:
    run_once(town, event(1, 1), event(2, 2))
    changed = renamed(town.stream, fingerprint="another")
    worker = town.start(town.worker(changed))
    assert "portcullis drain" in stopped_reason(town, worker)
    assert worker.metrics.unready() == "1 partition is stopped"
    town.stop()
    assert town.worker().drain() == {0: 2}
    town.feed(*[event(10 + n, n) for n in range(3)])
    town.start(town.worker(changed))
    town.until(lambda: sorted(town.released()) == [10, 11, 12])


def test_a_second_stream_into_the_same_output_is_refused(town: Any) -> None:
    run_once(town, event(1, 1))
    worker = town.start(town.worker(renamed(town.stream, name=town.stream.name + "-2")))
    assert "is fed by stream" in stopped_reason(town, worker)


def test_of_two_streams_that_begin_with_an_output_at_the_same_moment_one_goes_on(town: Any) -> None:
    """The second one begins and claims the output between the first one's look and its claim."""
    first, second = town.worker(), town.worker(renamed(town.stream, name=town.stream.name + "-2"))
    assert first.open(threading.Event())
    begin = first._connections.restorer.begin

    class Slow:
        def __getattr__(self, name: Any) -> Any:
            return getattr(restorer, name)

        def begin(self, place: Any) -> Any:
            first._connections.restorer = restorer
            looked = begin(place)
            town.start(second)
            town.until(lambda: second.metrics.unready() is None)
            return looked

    restorer, first._connections.restorer = first._connections.restorer, Slow()
    town.feed(*people(60, 9))
    town.start(first)
    assert "is fed by stream" in stopped_reason(town, first)
    town.until_all_left(second, 60)
    town.stop()
    assert first.metrics.status()["counts"].get("taken", 0) == 0
    assert len(town.released()) == len(set(town.released()))


def test_the_stream_before_goes_on_only_where_the_one_after_it_has_ended(town: Any) -> None:
    """Back to an earlier stream of another name: its own offset is older than what has left since."""
    other = renamed(town.stream, name=town.stream.name + "-2")
    run_once(town, *people(20, 9))
    town.worker().drain()
    town.feed(*people(20, 9, start=20))
    worker = town.start(town.worker(other))
    town.until(lambda: worker.metrics.status()["counts"].get("taken", 0) >= 20)
    town.stop()
    assert "is fed by stream" in stopped_reason(town, town.start())
    town.stop()
    end = town.worker(other).drain()[0]
    town.feed(*people(20, 9, start=40))
    back = town.start()
    town.until(lambda: max(town.released()) >= 40)
    town.until_settled(back, 15)
    town.stop()
    released = town.released()
    assert len(released) == len(set(released))
    assert back.metrics.status()["counts"]["taken"] == 20
    assert back.metrics.status()["partitions"] == {}
    assert end > 20


def test_a_second_stream_gets_no_partition_that_the_first_one_has_not_begun_yet(town: Any) -> None:
    run_once(town, event(1, 1))
    town.world.admin.grow_partitions(town.stream.input, 2)
    other = town.worker(renamed(town.stream, name=town.stream.name + "-2"))
    town.start(other)
    town.until(lambda: len(other.metrics.status()["stopped"]) == 2)
    assert all("is fed by stream" in reason for reason in other.metrics.status()["stopped"].values())


def test_a_committed_offset_whose_state_is_gone_stops_the_partition(town: Any) -> None:
    run_once(town, event(1, 1))
    place = Partition(town.stream.input, 0)
    offsets = town.world.admin.group_offsets(town.stream.group)
    note = json.loads(offsets[place].metadata)
    town.world.group = town.stream.group
    member = town.world.member(town.stream.input)
    member.until_owns(1)
    note["state"] += 1000
    town.world.commit_offset(place, Committed(offsets[place].offset, json.dumps(note)), member)
    member.consumer.close()
    worker = town.start()
    assert "is gone" in stopped_reason(town, worker)


def test_a_state_that_is_not_stable_yet_is_waited_for(town: Any) -> None:
    """A real broker writes the markers of one commit at different times, the offset's perhaps first."""
    run_once(town, event(1, 1))
    place = Partition(town.stream.input, 0)

    class BeforeTheMarker:
        def __init__(self, reader: Any) -> None:
            self.read = reader.read

        def watermarks(self, _: Any) -> Any:
            return Watermarks(0, 0)

    other = town.worker()
    assert other.open(threading.Event())
    restorer = dataclasses.replace(other._connections.restorer, reader=BeforeTheMarker(other._connections._reader))
    assert restorer.restore(place, town.world.admin.group_offsets(town.stream.group)[place]).position == 1
    other.close()


def test_expired_group_offsets_are_replaced_by_the_last_state(world: Any) -> None:
    town = Town(world)
    try:
        run_once(town, event(1, 1), event(2, 2))
        other = town.worker()
        assert other.open(threading.Event())
        other._connections.restorer.consumer.committed = None  # type: ignore[assignment, method-assign]
        restored = other._connections.restorer.restore(Partition(town.stream.input, 0), None)
        assert restored.position == 2  # type: ignore[union-attr]
        assert len(restored.rows) == 2  # type: ignore[union-attr]
        other.close()
    finally:
        town.stop()


def test_a_topic_that_was_created_anew_stops_the_partition(town: Any) -> None:
    run_once(town, event(1, 1))
    town.world.admin.delete_topic(town.stream.input)
    town.until(lambda: town.stream.input not in town.world.admin.list_topics())
    town.until(lambda: _created(town))
    town.feed(event(2, 2))
    worker = town.start()
    assert "created again" in stopped_reason(town, worker)


def test_events_that_retention_took_stop_the_partition_until_their_loss_is_accepted(world: Any) -> None:
    town = Town(world)
    small = world.topic(1, "-small", retention_bytes="1000000", segment_bytes="1048576")
    town.stream = renamed(town.stream, input=small.topic)
    try:
        run_once(town, event(1, 1), event(2, 2))
        for _ in range(5):
            town.feed(*[b"x" * 10_000] * 100)
        reader = world.reader()
        eventually(lambda: reader.watermarks(small).low > 2)
        assert "2 undecided or unpublished events are gone" in stopped_reason(town, town.start())
        town.stop()
        worker = town.start(accept_loss=True)
        town.feed(*[event(10 + n, n) for n in range(3)])
        town.until(lambda: sorted(town.released()) == [10, 11, 12])
        town.until_settled(worker, 3)
    finally:
        town.stop()
    totals = worker.metrics.status()["counts"]
    refused = totals["refused.not_json"]
    assert totals["suppressed"] > 2, "what was pending, and what was gone before anybody took it"
    assert totals["taken"] + 2 == totals["released"] + totals["suppressed"] + refused, "2 were taken before"


def _created(town: Any) -> Any:
    with contextlib.suppress(KafkaError):  # a real broker takes a moment to forget the old topic
        town.world.admin.create_topic(town.stream.input, 1)
    return town.stream.input in town.world.admin.list_topics()


def test_a_record_of_ten_megabytes_is_refused_and_the_stream_goes_on(world: Any) -> None:
    town = Town(world)
    wide = world.topic(1, "-wide", max_message_bytes="12000000")
    town.stream = renamed(town.stream, input=wide.topic)
    try:
        town.feed(event(1, 1), event("x" * 10_000_000, 9), event(2, 2), event(3, 3))
        town.start()
        town.until(lambda: sorted(town.released()) == [1, 2, 3])
        (letter,) = map(json.loads, town.values(town.stream.dead_letters))  # type: ignore[arg-type]
        assert (letter["offset"], letter["field"], letter["reason"]) == (1, "(record)", "too_large")
    finally:
        town.stop()


def test_large_clusters_leave_in_parts_and_tuples_leave_flat(world: Any) -> None:
    town = Town(world, k=6)
    try:
        big = "x" * 200_000
        town.feed(*[event(f"{n}{big}", n) for n in range(6)])
        worker = town.start()
        town.until(lambda: worker.metrics.status()["counts"].get("released", 0) == 6)
        town.stop()
        parts = town.output()
        assert [part["parts"] for part in parts] == [2, 2]
        assert {part["part"] for part in parts} == {1, 2}
        assert len({part["cluster"] for part in parts}) == 1
        assert sum(len(part["rows"]) for part in parts) == 6
    finally:
        town.stop()


def test_tuples_leave_flat_and_without_the_cluster(world: Any) -> None:
    town = Town(world)
    town.stream = renamed(town.stream, emit="tuples")
    try:
        town.feed(*people(9, 9))
        worker = town.start()
        town.until(lambda: worker.metrics.status()["counts"].get("released", 0) >= 3)
        town.stop()
        rows = town.output()
        assert all(set(row) == {"age", "city", "item", "trace"} for row in rows)
        assert all(isinstance(row["age"], list) for row in rows)
    finally:
        town.stop()


def test_partitions_that_appear_later_start_at_their_beginning(town: Any) -> None:
    town.stream = renamed(town.stream, start="latest")
    worker = town.start()
    town.until(lambda: worker.metrics.unready() is None and town.values(town.stream.state_topic))
    town.world.admin.grow_partitions(town.stream.input, 2)
    town.feed(*people(12, 9), partition=1)
    town.until(lambda: len(town.released()) >= 3)
    assert town.world.admin.describe_topic(town.stream.state_topic).partitions == 2


def test_topics_that_cannot_work_are_refused_at_the_start(world: Any) -> None:
    town = Town(world)
    compacted = world.topic(1, "-compacted", cleanup_policy="compact").topic
    brief = world.topic(1, "-brief", retention_ms="1000").topic
    with pytest.raises(TopicError, match="compact"):
        town.worker(renamed(town.stream, input=compacted)).drain()
    with pytest.raises(TopicError, match="keeps records"):
        town.worker(renamed(town.stream, input=brief, history_seconds=5.0)).drain()
    with pytest.raises(TopicError, match="does not exist"):
        town.worker(renamed(town.stream, dead_letters="no-such-topic")).drain()
    with pytest.raises(SettingsError, match="different topics"):
        town.worker(renamed(town.stream, output=town.stream.input))
    other = world.topic(1, "-other").topic
    world.admin.create_topic(f"portcullis.{other}.state", 1, {"cleanup.policy": "compact,delete"})
    with pytest.raises(TopicError, match="must be compact alone"):
        town.worker(renamed(town.stream, output=other)).drain()
    with pytest.raises(SettingsError, match="max_request_bytes of at least 20001024"):
        town.worker(max_state_bytes=20_000_000)


def test_the_state_topic_only_compacts_soon_and_has_a_partition_for_each_of_the_input(world: Any) -> None:
    town = Town(world, partitions=2)
    worker = town.worker()
    assert worker.open(threading.Event())
    worker.close()
    state = world.admin.describe_topic(town.stream.state_topic)
    assert state.partitions == 2
    expected = {"cleanup.policy": "compact", "segment.bytes": "16777216", "segment.ms": "600000"}
    assert {name: state.config[name] for name in expected} == expected
    assert float(state.config["min.cleanable.dirty.ratio"]) == 0.1
    assert int(state.config["max.message.bytes"]) > WorkerSettings().max_state_bytes


def test_the_person_may_come_from_the_key(world: Any) -> None:
    town = Town(world)
    from dataclasses import replace  # noqa: PLC0415

    from microdata import PersonSource  # noqa: PLC0415
    from tests.service.worker.chunks import Chunks  # noqa: PLC0415

    keyed = replace(SCHEMA, person=PersonSource.KEY)
    town.stream = renamed(town.stream, schema=keyed, engine=lambda: Chunks(keyed, k=3))
    try:
        town.feed(*[event(n, n) for n in range(4)], keys=[b"a", b"b", None, b"c"])
        worker = town.start()
        town.until(lambda: sorted(town.released()) == [0, 1, 3])
        assert worker.metrics.status()["counts"]["refused.missing"] == 1
    finally:
        town.stop()


def test_numbers_in_messages_are_numbers(world: Any) -> None:
    """A real number keeps its decimals, an integer has none."""
    schema = type(SCHEMA)("who", (Number("weight", 0, 1), Number("age", 0, 99, integer=True)))
    from tests.service.worker.chunks import Chunks  # noqa: PLC0415

    town = Town(world, k=2)
    town.stream = renamed(town.stream, schema=schema, engine=lambda: Chunks(schema, k=2))
    try:
        town.feed(b'{"who":"a","weight":0.25,"age":30}', b'{"who":"b","weight":0.5,"age":40}')
        town.start()
        town.until(town.output)
        (cluster,) = town.output()
        assert cluster["generalization"] == {"weight": [0.25, 0.5], "age": [30, 40]}
        assert cluster["rows"] == [{}, {}]
        assert np.isfinite(int(cluster["cluster"], 16))
    finally:
        town.stop()
