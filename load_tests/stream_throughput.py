"""Events per second through Kafka: passed through untouched, and anonymized, on the same broker with the same client.

Passing through means what any exactly-once service must do: consume, decode JSON, encode it again, produce and commit
offsets in transactions. The worker does that too, and decides, checks and publishes clusters. Both clocks start when
the partitions are assigned. Events have 200 bytes, some of them in a field that the policy does not know. The worker is
measured again with the same events as Avro and as Protobuf, in and out, with schemas in files. With `--runs` all four
are measured in turn so many times, and the table has their medians.

    python -m load_tests.stream_throughput [--events 500000] [--runs 5] [--broker apache] [--client NAME] [--docs DIR]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import yaml

from load_tests.harness import arguments, machine_line, print_machine, print_table, show, write_json
from load_tests.stream_linking import write_between
from service.codec import Format, TopicFormat
from service.codec.avro_messages import derived_schema
from service.codec.protobuf_messages import derived_protobuf
from service.demo import POLICY
from service.kafka import Client, Committed, KafkaError, KafkaSettings, Partition, RecordBatch, connect
from service.policy import parse_policy
from service.ports import free_port
from service.sample import sample_events
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.stream import Stream, stream_of
from service.worker.warmup import spare_the_collector, warm_up
from tests.service.codec.protobuf_world import written
from tests.service.kafka.real_kafka import RealKafka

PARTITIONS = 2
BATCH = 5_000
INTERVAL = 0.5
EVENT_BYTES = 200


@contextlib.contextmanager
def broker(kind: str) -> Iterator[str]:
    """The address of a broker in a process of its own."""
    if kind == "apache":
        with RealKafka(lasting=True) as kafka:
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


def as_json(rows: list[dict[str, Any]]) -> list[bytes]:
    """The events as JSON of 200 bytes each."""
    values = [msgspec.json.encode(row) for row in rows]
    return [value[:-2] + b"." * (EVENT_BYTES - len(value)) + value[-2:] for value in values]


def padded(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same events, not yet written."""
    for row, value in zip(rows, as_json(rows), strict=True):
        yield row | {"note": msgspec.json.decode(value)["note"]}


def field_kinds() -> dict[str, bool]:
    """The fields of the events, and which of them are whole numbers."""
    columns = sample_events(1, seed=1).schema
    return {field.name: pa.types.is_integer(field.type) for field in columns} | {"note": False}


def as_avro(rows: list[dict[str, Any]]) -> list[bytes]:
    """The same events as Avro."""
    schema, values = fastavro.parse_schema(json.loads(avro_schema())), []
    for row in padded(rows):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        values.append(out.getvalue())
    return values


def avro_schema() -> str:
    """The schema of the events."""
    fields = [{"name": name, "type": "long" if whole else "string"} for name, whole in field_kinds().items()]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


def as_protobuf(rows: list[dict[str, Any]]) -> list[bytes]:
    """The same events as Protobuf."""
    return [written(protobuf_schema(), row, "Order") for row in padded(rows)]


def protobuf_schema() -> str:
    """The schema of the events."""
    kinds = [f"{'int64' if whole else 'string'} {name}" for name, whole in field_kinds().items()]
    fields = " ".join(f"{kind} = {number};" for number, kind in enumerate(kinds, 1))
    return f'syntax = "proto3"; message Order {{ {fields} }}'


FORMATS = {
    "avro": (as_avro, avro_schema, derived_schema),
    "protobuf": (as_protobuf, protobuf_schema, derived_protobuf),
}
"""How events are written in a format, their schema, and that of what leaves."""


def fill(client: Client, topic: str, events: int, written: Callable[[list[dict[str, Any]]], list[bytes]]) -> float:
    """Produce the events; bytes of one of them on average."""
    producer = client.producer(f"filler-of-{topic}")
    producer.init_transactions()
    size = 0
    for place, first in enumerate(range(0, events, BATCH)):
        rows = sample_events(min(BATCH, events - first), seed=1, persons=events // 5, first=first).to_pylist()
        values = written([row | {"note": ""} for row in rows])
        size += sum(map(len, values))
        producer.begin()
        producer.produce(Partition(topic, place % PARTITIONS), values)
        producer.flush()
        producer.commit()
    producer.close()
    return size / events


def pass_through(client: Client, source: str, target: str, events: int) -> float:
    """Events per second of a service that changes nothing."""
    consumer, producer = client.group_consumer(f"pass-{target}"), client.producer(f"pass-{target}")
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


def in_format(stream: Stream, name: str) -> Stream:
    """The same stream with topics of a format whose schemas are known."""
    _, schema, derived = FORMATS[name]
    public = dict.fromkeys(stream.schema.public, pa.large_string())
    leaves = derived(stream.schema, public, stream.emit, stream.show, stream.output)
    return replace(stream, format=Format(TopicFormat(name, schema()), TopicFormat(name, leaves)))


def anonymize(
    client: Client, source: str, target: str, events: int, format_name: str | None = None
) -> tuple[float, dict[str, float]]:
    """Events per second of the worker until everything taken is committed and all that is decided published."""
    description = {**POLICY, "name": target, "stream": {**POLICY["stream"], "input": source, "output": target}}
    description["stream"].pop("dead_letters")
    settings = WorkerSettings(commit_interval=INTERVAL)
    stream = stream_of(parse_policy(yaml.safe_dump(description)), settings)
    stream = in_format(stream, format_name) if format_name else stream
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


def measure(kind: str, name: str, events: int, runs: int) -> tuple[object, ...]:
    """One row of the table: medians of runs that take turns."""
    with broker(kind) as bootstrap, tempfile.TemporaryDirectory():
        client = connect(KafkaSettings(bootstrap_servers=bootstrap, client=name))
        admin = client.admin()
        sources = ["raw", *(f"raw-{each}" for each in FORMATS)]
        targets = [f"{role}-{run}" for run in range(runs) for role in ("passed", "safe", *FORMATS)]
        for topic in (*sources, *targets):
            admin.create_topic(topic, PARTITIONS)
        admin.close()
        size = fill(client, "raw", events, as_json)
        for each, (write, _, _) in FORMATS.items():
            fill(client, f"raw-{each}", events, write)
        found = []
        for run in range(runs):
            plain = pass_through(client, "raw", f"passed-{run}", events)
            safe, counts = anonymize(client, "raw", f"safe-{run}", events)
            others = [anonymize(client, f"raw-{each}", f"{each}-{run}", events, each)[0] for each in FORMATS]
            found.append((plain, safe, safe / plain, *others))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        plain, safe, ratio, *others = map(median, zip(*found, strict=True))
        return (
            kind,
            name,
            round(size),
            round(plain),
            round(safe),
            ratio,
            *map(round, others),
            counts["clusters"],
            memory,
        )


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=1, help="runs of each that take turns; the table has their medians")
    parser.add_argument("--broker", choices=["embedded", "apache"], action="append")
    parser.add_argument("--client", choices=["confluent-kafka", "kafka-python"], action="append")
    parser.add_argument("--docs", type=Path, help="folder of the documentation, to write its table anew")


def main() -> None:
    """Measure every broker with every client."""
    given = arguments(__doc__, add=_options)
    print_machine()
    rows = []
    for kind in given.broker or ["embedded", "apache"]:
        for name in given.client or ["confluent-kafka", "kafka-python"]:
            events = given.events if name == "confluent-kafka" else given.events // 5
            rows.append(measure(kind, name, events // 2 if given.quick else events, given.runs))
    columns = (
        "broker",
        "client",
        "bytes",
        "pass-through/s",
        "worker/s",
        "ratio",
        "worker/s, Avro",
        "worker/s, Protobuf",
        "clusters",
        "peak MiB",
    )
    print_table("Events per second, broker and client on the same cores", columns, rows)
    if given.docs:
        table = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        table += [f"| {' | '.join(map(show, row))} |" for row in rows]
        write_between("stream_throughput", [*table, "", machine_line()], given.docs / "topics-with-a-schema.md")
    write_json(given.json, "stream_throughput", [dict(zip(columns, row, strict=True)) for row in rows])


if __name__ == "__main__":
    main()
