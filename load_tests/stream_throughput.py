"""Events per second through Kafka: passed through untouched, and anonymized, on the same broker with the same client.

Passing through means what any exactly-once service must do: consume, decode JSON, encode it again, produce and commit
offsets in transactions. The worker does that too, and decides, checks and publishes clusters. Both clocks start when
the partitions are assigned. Events have 200 bytes, some of them in a field that the policy does not know.

    python -m load_tests.stream_throughput --events 500000
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

import msgspec
import yaml

from load_tests.harness import arguments, print_machine, print_table, write_json
from service.demo import POLICY
from service.kafka import Client, Committed, KafkaError, KafkaSettings, Partition, RecordBatch, connect
from service.policy import parse_policy
from service.ports import free_port
from service.sample import sample_events
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of
from service.worker.warmup import spare_the_collector, warm_up
from tests.service.kafka.real_kafka import RealKafka

PARTITIONS = 2
BATCH = 5_000
INTERVAL = 0.5
EVENT_BYTES = 200


@contextlib.contextmanager
def broker(kind: str) -> Iterator[str]:
    """The address of a broker in a process of its own."""
    if kind == "apache":
        with RealKafka() as kafka:
            yield kafka.bootstrap
        return
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "service", "broker", "--port", str(port), "--retention-bytes", str(2 << 30)],
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"127.0.0.1:{port}")
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(bootstrap: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            admin = connect(KafkaSettings(bootstrap_servers=bootstrap)).admin()
            admin.list_topics()
            admin.close()
        except KafkaError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def fill(client: Client, topic: str, events: int) -> float:
    """Produce the events; bytes of one of them on average."""
    producer = client.producer(f"filler-of-{topic}")
    producer.init_transactions()
    size = 0
    for place, first in enumerate(range(0, events, BATCH)):
        rows = sample_events(min(BATCH, events - first), seed=1, persons=events // 5, first=first).to_pylist()
        values = [msgspec.json.encode(row | {"note": ""}) for row in rows]
        values = [value[:-2] + b"." * (EVENT_BYTES - len(value)) + value[-2:] for value in values]
        size += sum(map(len, values))
        producer.begin()
        producer.produce(Partition(topic, place % PARTITIONS), values)
        producer.flush()
        producer.commit()
    producer.close()
    return size / events


def pass_through(client: Client, source: str, target: str, events: int) -> float:
    """Events per second of a service that changes nothing."""
    consumer, producer = client.group_consumer(f"pass-{source}"), client.producer(f"pass-{source}")
    producer.init_transactions()
    consumer.subscribe([source], lambda _: None, lambda _: None, lambda _: None)
    while len(consumer.assignment()) < PARTITIONS:
        consumer.poll(0.1, 1)
    for place in consumer.assignment():
        consumer.seek(place, 0)
    consumer.resume(consumer.assignment())
    decoder, taken, started = msgspec.json.Decoder(), 0, time.perf_counter()
    while taken < events:
        end = time.monotonic() + INTERVAL
        cycle: list[RecordBatch] = []
        while time.monotonic() < end and taken + sum(map(len, cycle)) < events:
            cycle += consumer.poll(0.1, 20_000)
        token = consumer.group_token()
        outputs = [
            (batch.partition.number, [msgspec.json.encode(decoder.decode(value or b"{}")) for value in batch.values])
            for batch in cycle
        ]
        producer.begin()
        for number, values in outputs:
            producer.produce(Partition(target, number), values)
        producer.flush()
        ends = {batch.partition: Committed(int(batch.offsets[-1]) + 1) for batch in cycle}
        producer.send_offsets(ends, token)
        producer.commit()
        taken += sum(map(len, cycle))
    seconds = time.perf_counter() - started
    consumer.close()
    producer.close()
    return events / seconds


def anonymize(client: Client, source: str, target: str, events: int) -> tuple[float, dict[str, float]]:
    """Events per second of the worker until everything taken is committed and all that is decided published."""
    description = {**POLICY, "name": source, "stream": {**POLICY["stream"], "input": source, "output": target}}
    description["stream"].pop("dead_letters")
    settings = WorkerSettings(commit_interval=INTERVAL)
    stream = stream_of(parse_policy(yaml.safe_dump(description)), settings)
    warm_up(stream)
    spare_the_collector()
    metrics, stop = Metrics(stream), threading.Event()
    worker = Worker(stream, client, settings, metrics)
    started = 0.0

    def watch() -> None:
        nonlocal started
        while metrics.unready():
            time.sleep(0.005)
        started = time.perf_counter()
        while metrics.status()["counts"].get("taken", 0) < events and not stop.wait(0.05):
            pass
        stop.set()

    threading.Thread(target=watch, daemon=True).start()
    worker.run(stop)
    seconds = time.perf_counter() - started
    status = metrics.status()
    return events / seconds, {"clusters": status["counts"]["clusters"], "released": status["counts"]["released"]}


def measure(kind: str, name: str, events: int) -> tuple[object, ...]:
    """One row of the table."""
    with broker(kind) as bootstrap, tempfile.TemporaryDirectory():
        client = connect(KafkaSettings(bootstrap_servers=bootstrap, client=name))
        admin = client.admin()
        for topic in ("raw", "passed", "safe"):
            admin.create_topic(topic, PARTITIONS)
        admin.close()
        size = fill(client, "raw", events)
        plain = pass_through(client, "raw", "passed", events)
        safe, counts = anonymize(client, "raw", "safe", events)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        return kind, name, round(size), round(plain), round(safe), safe / plain, counts["clusters"], memory


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--broker", choices=["embedded", "apache"], action="append")
    parser.add_argument("--client", choices=["confluent-kafka", "kafka-python"], action="append")


def main() -> None:
    """Measure every broker with every client."""
    given = arguments(__doc__, add=_options)
    print_machine()
    rows = []
    for kind in given.broker or ["embedded", "apache"]:
        for name in given.client or ["confluent-kafka", "kafka-python"]:
            events = given.events if name == "confluent-kafka" else given.events // 5
            rows.append(measure(kind, name, events // 2 if given.quick else events))
    columns = ("broker", "client", "bytes", "pass-through/s", "worker/s", "ratio", "clusters", "peak MiB")
    print_table("Events per second, broker and client on the same cores", columns, rows)
    write_json(given.json, "stream_throughput", [dict(zip(columns, row, strict=True)) for row in rows])


if __name__ == "__main__":
    main()
