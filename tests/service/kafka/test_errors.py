"""Every error code in every call: what may pass is survived and told, what is final ends a worker, and nothing else."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import confluent_kafka as ck
import pytest
from kafka import errors as kp

from service.broker.node import Call
from service.kafka import FatalError, FinalError, KafkaError, Partition, RetriableError
from service.kafka.codes import NAMES, kind_of, name_of
from service.kafka.confluent.connection import translate as of_librdkafka
from service.kafka.kafka_python.connection import translate as of_kafka_python
from service.worker import loop, trouble
from service.worker.loop import Worker
from tests.service.kafka.faulty_broker import FaultyBroker
from tests.service.kafka.worker_world import Town, event
from tests.service.kafka.world import World, eventually

CLIENTS = ["kafka-python", "confluent-kafka"]
FINAL = {number for number, name in NAMES.items() if issubclass(kind_of(name), FinalError)}
NEVER_SENT_TO_US = 9999
PASSING = [number for number in [*NAMES, NEVER_SENT_TO_US] if number not in FINAL]
USUAL = [-1, 3, 7, 14, 15, 16, 48, 51, 120, NEVER_SENT_TO_US]
"""What a broker says when it is busy, starting, moving, or newer than we are."""

AFTER_ALL = [-1, 7, 13, 14, 15, 16, 20, 56, NEVER_SENT_TO_US]
"""What it may say although it has done what it was asked for."""


class Bench:
    """A worker that is turned by hand, on a broker that refuses on demand."""

    def __init__(self, client: str, broker: FaultyBroker, stack: contextlib.ExitStack, partitions: int = 1) -> None:
        self.broker = broker
        self.partitions = partitions
        self.town = Town(World(client, broker.bootstrap, stack), partitions, k=2)
        self.town.client = self.town.world.client(
            client_id="worker",
            session_timeout_ms=10_000,
            heartbeat_interval_ms=100,
            request_timeout_ms=5_000,
            transaction_timeout_ms=5_000,
        )
        self.stream = self.town.stream
        self.fed = 0
        self.worker: Worker | None = None
        stack.callback(self.end)

    def begin(self) -> Worker:
        self.worker = worker = self.town.worker(commit_interval=0.05)
        assert worker.open(threading.Event())
        worker._owned.join()
        self.turn_until(lambda: worker._owned.running)
        return worker

    def end(self) -> None:
        if self.worker is not None:
            self.worker.close()
            self.worker = None

    def turn_until(self, done: Callable[[], object], seconds: float = 60) -> None:
        once, deadline = threading.Event(), time.monotonic() + seconds
        once.set()
        while not done():
            assert time.monotonic() < deadline, f"did not happen: {self.worker.metrics.status()}"  # type: ignore[union-attr]
            self.worker._cycle(once)  # type: ignore[union-attr]

    def feed(self) -> None:
        """Two events of two persons: a cluster."""
        self.broker.put(Partition(self.stream.input, 0), [event(self.fed + n, n) for n in range(2)])
        self.fed += 2

    def left(self) -> list[int]:
        places = [Partition(self.stream.output, number) for number in range(self.partitions)]
        values = [value for place in places for value in self.broker.committed(place)]
        return [row["trace"] for value in values for row in json.loads(value)["rows"]]


@dataclass(frozen=True)
class Case:
    """One kind of request of a worker, how to provoke it, and the codes that used to end a worker there."""

    request: str
    provoke: Callable[[Bench], object] = lambda _: None
    when: Callable[[Bench, Call], bool] = lambda _, __: True
    whole: bool = False
    killers: tuple[int, ...] = ()


def _about(role: str) -> Callable[[Bench, Call], bool]:
    """Requests about one of the stream's topics."""

    def when(bench: Bench, call: Call) -> bool:
        topics = [getattr(topic, "topic", None) or getattr(topic, "name", None) for topic in call.body.topics]
        return getattr(bench.stream, role) in topics

    return when


def _restore(bench: Bench) -> None:
    bench.worker._owned.discard()  # type: ignore[union-attr]


def _rejoin(bench: Bench) -> None:
    bench.broker.spoil("Heartbeat", 27, _of_worker)


def _look(bench: Bench) -> None:
    """As if the input had grown."""
    bench.worker._owned.discard()  # type: ignore[union-attr]
    bench.worker._connections.topics = replace(bench.worker._connections.topics, input_partitions=0)  # type: ignore[union-attr]


def _of_worker(call: Call) -> bool:
    return call.client_id == "worker"


CASES = {
    "lag": Case("ListOffsets", when=_about("input"), killers=(8, 9, 13, 15, 51, 78, 89)),
    "watermarks of the state": Case("ListOffsets", _restore, _about("state_topic"), killers=(8, 9, 13, 15, 51, 78, 89)),
    "committed offsets": Case("OffsetFetch", _restore, killers=(8, 9, 13, 15, 16, 51, 74, 75, 78, 89, 100, 103)),
    "committed offsets of a group": Case("OffsetFetch", _restore, whole=True, killers=(14, 15, 16)),
    "poll": Case("Fetch", when=_about("input"), killers=(1, 2, 20, 56, 70, 71, 106)),
    "whole poll": Case("Fetch", when=_about("input"), whole=True, killers=(56, 70, 71, 106)),
    "reading the state": Case(
        "Fetch", _restore, _about("state_topic"), killers=(1, 2, 13, 14, 15, 16, 19, 20, 51, 89, 103)
    ),
    "produce": Case("Produce", killers=(2, 13, 45, 46, 51, 59, 74, 75, 78, 87, 89, 100, 103)),
    "producer id": Case("InitProducerId", _restore, killers=(47, 49, 90)),
    "partitions of a transaction": Case("AddPartitionsToTxn", killers=(45, 47, 49, 55, 59, 90)),
    "group of a transaction": Case("AddOffsetsToTxn", killers=(47, 49, 90)),
    "offsets of a transaction": Case("TxnOffsetCommit", killers=(22, 25, 27, 47, 49, 90)),
    "end of a transaction": Case("EndTxn", killers=(47, 49, 52, 90)),
    "coordinator": Case("FindCoordinator", _restore, killers=(41,)),
    "metadata": Case("Metadata", _restore, killers=(5, 6, 72)),
    "join": Case("JoinGroup", _rejoin, killers=(1, 22, 23, 25, 27, 79, 81)),
    "sync": Case("SyncGroup", _rejoin, killers=(1, 22, 25, 27)),
    "heartbeat": Case("Heartbeat", killers=(22, 25, 27)),
    "topic settings": Case("DescribeConfigs", _look, killers=(3, 41, 42, 100)),
    "creating a topic": Case("CreateTopics", _look, killers=(41, 38, 42)),
}
WRITES = {
    "produce",
    "partitions of a transaction",
    "group of a transaction",
    "offsets of a transaction",
    "end of a transaction",
}


@pytest.fixture(params=CLIENTS)
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(trouble, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(trouble, "LONGEST_PAUSE", 0.1)
    monkeypatch.setattr(loop, "_LAG_SECONDS", 0.0)
    with FaultyBroker() as broker, contextlib.ExitStack() as stack:
        yield Bench(request.param, broker, stack, request.node.callspec.params.get("partitions", 1))


def blips(bench: Bench, case: Case, codes: list[int], *, done: bool = False) -> KafkaError | None:
    """Wrong answers, one after the other: what they ended the worker with, None where everything fed has left."""
    faults = [
        bench.broker.spoil(
            case.request, code, lambda call: _of_worker(call) and case.when(bench, call), done=done, whole=case.whole
        )
        for code in codes
    ]

    def over() -> bool:
        if len(bench.left()) < bench.fed:
            return False
        if not any(map(bench.broker.is_due, faults)):
            return True
        case.provoke(bench)
        bench.feed()
        return False

    try:
        bench.turn_until(over)
    except KafkaError as error:
        bench.broker.forget()
        bench.end()
        bench.begin()
        bench.turn_until(lambda: len(bench.left()) >= bench.fed)
        return error
    return None


def sweep(bench: Bench, case: Case, codes: list[int], *, at_once: int, done: bool = False) -> None:
    bench.begin()
    ended = {}
    for first in range(0, len(codes), at_once):
        some = codes[first : first + at_once]
        error = blips(bench, case, some, done=done)
        if error is not None:
            ended[tuple(map(name_of, some))] = error
    assert ended == {}
    assert sorted(bench.left()) == list(range(bench.fed)), "everything left, and once"
    bench.town.assert_never_under_two_boxes()


@pytest.mark.parametrize("name", CASES)
def test_a_worker_survives_a_blip_of_what_may_pass(bench: Any, name: Any) -> None:
    sweep(bench, CASES[name], [*CASES[name].killers, *USUAL], at_once=6)


@pytest.mark.parametrize("name", sorted(WRITES))
def test_a_worker_survives_a_wrong_answer_to_what_was_done(bench: Any, name: Any) -> None:
    sweep(bench, CASES[name], AFTER_ALL, at_once=3, done=True)


@pytest.mark.soak
@pytest.mark.parametrize("name", CASES)
def test_a_worker_survives_a_blip_of_every_code_that_may_pass(bench: Any, name: Any) -> None:
    sweep(bench, CASES[name], PASSING, at_once=1)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(WRITES))
def test_a_worker_survives_every_wrong_answer_to_what_was_done(bench: Any, name: Any) -> None:
    sweep(bench, CASES[name], PASSING, at_once=1, done=True)


@pytest.mark.parametrize("number", [*NAMES, NEVER_SENT_TO_US])
def test_both_clients_mean_the_same_by_a_code_and_only_what_is_known_to_be_final_is(number: Any) -> None:
    ours = [of_librdkafka(ck.KafkaError(number)), of_kafka_python(kp.for_code(number)("text"))]
    assert {type(error) for error in ours} == {kind_of(name_of(number))}
    assert {error.code for error in ours} == {name_of(number)}
    assert isinstance(ours[0], FinalError) == (number in FINAL)


def test_refused_time_of_a_record_names_the_clock_with_both_clients() -> None:
    number = next(number for number, name in NAMES.items() if name == "INVALID_TIMESTAMP")
    for error in (of_librdkafka(ck.KafkaError(number)), of_kafka_python(kp.for_code(number)("text"))):
        assert isinstance(error, RetriableError)
        assert "correct the clock" in str(error)


def test_of_the_codes_of_librdkafka_itself_few_are_final() -> None:
    own = {name: getattr(ck.KafkaError, name) for name in dir(ck.KafkaError) if name[:2] != "__" and name[0] == "_"}
    final = {name for name, code in own.items() if isinstance(of_librdkafka(ck.KafkaError(code)), FinalError)}
    denied = {"_AUTHENTICATION", "_SSL"}
    assert final == denied | {"_INVALID_ARG", "_NOT_CONFIGURED", "_NOT_IMPLEMENTED", "_UNSUPPORTED_FEATURE"}
    assert isinstance(of_librdkafka(ck.KafkaError(own["_DESTROY_BROKER"])), RetriableError)
    assert isinstance(of_librdkafka(ck.KafkaError(own["_TRANSPORT"], "broken", fatal=True)), FatalError)


def test_measuring_the_lag_does_not_hold_up_polling_until_a_mute_broker_answers(bench: Any) -> None:
    bench.town.client = bench.town.world.client(client_id="worker", request_timeout_ms=60_000)
    worker = bench.begin()
    fault = bench.broker.spoil("ListOffsets", None, lambda call: _of_worker(call) and _about("input")(bench, call))
    started = time.monotonic()
    worker._measure_lag()
    assert time.monotonic() - started < 20
    assert not bench.broker.is_due(fault)
    assert "measuring the lag" in worker.metrics.status()["trouble"]


def test_an_idle_look_at_the_topics_does_not_hold_up_polling_until_a_mute_broker_answers(bench: Any) -> None:
    bench.town.client = bench.town.world.client(client_id="worker", request_timeout_ms=20_000)
    worker = bench.begin()
    fault = bench.broker.spoil("Metadata", None, _of_worker)
    worker._owned._look_at = 0.0
    started = time.monotonic()
    worker._owned.watch_topics()
    assert time.monotonic() - started < 15
    bench.turn_until(lambda: not bench.broker.is_due(fault))
    assert worker._owned.running
    worker.close()
    eventually(lambda: not any(thread.name == "topics" for thread in threading.enumerate()))


CLAIMS = {"Produce": [13, 51, 74, 75, 78, 89, 100, 103], "TxnOffsetCommit": [-1, 14, 16], "EndTxn": [-1, 16, 51]}


@pytest.mark.parametrize(("request_name", "partitions"), [(name, len(codes)) for name, codes in CLAIMS.items()])
def test_a_claim_survives_a_blip_of_what_may_pass(bench: Any, request_name: Any, partitions: Any) -> None:
    """One partition for each code: its claim meets it."""

    def of_claim(number: int) -> Callable[[Call], bool]:
        return lambda call: call.body.transactional_id == f"{bench.stream.state_topic}.{number}"

    faults = [
        bench.broker.spoil(request_name, code, of_claim(number)) for number, code in enumerate(CLAIMS[request_name])
    ]
    worker = bench.begin()
    bench.turn_until(lambda: len(worker._owned.running) == partitions)
    assert not any(map(bench.broker.is_due, faults))
    assert worker.metrics.status()["stopped"] == {}
    bench.feed()
    bench.turn_until(lambda: len(bench.left()) == bench.fed)


ENDS = {"produce": 29, "producer id": 53, "committed offsets": 30, "reading the state": 29, "topic settings": 29}


@pytest.mark.parametrize("name", ENDS)
def test_what_is_final_ends_a_worker_with_its_code_and_loses_nothing(bench: Any, name: Any) -> None:
    bench.begin()
    error = blips(bench, CASES[name], [ENDS[name]])
    assert isinstance(error, FinalError)
    assert error.code == name_of(ENDS[name])
    assert sorted(bench.left()) == list(range(bench.fed))
