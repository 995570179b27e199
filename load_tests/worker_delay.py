"""How long an event takes through a worker: engines without delay beside CASTLE, at a steady rate.

    python -m load_tests.worker_delay [--quick] [--json FILE] [--docs FOLDER]

The events of the demo at 2,000 a second through the embedded broker, with a transaction every half second. What is
decided is committed first and published by the next transaction, so nothing leaves sooner than that, whatever decides.
The delay is the running mean from taking an event to publishing it, as the worker itself tells it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from load_tests.harness import arguments, print_machine, print_table, show, write_json
from load_tests.quality.page import add_options
from load_tests.stream_linking import write_between
from load_tests.stream_throughput import INTERVAL, as_json, broker
from service.demo import POLICY
from service.kafka import Client, KafkaSettings, Partition, connect
from service.policy import parse_policy
from service.sample import sample_events
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of
from service.worker.warmup import warm_up

RATE, TICK = 2_000, 0.1
GUARANTEES: dict[str, dict[str, Any]] = {
    "z": {"algorithm": "z", "z": 10, "window": {"tuples": 10_000}},
    "quantile": {"algorithm": "quantile", "k": 10, "universe": 10**7, "window": 10_000},
    "castle, 2 s": {"algorithm": "castle", "k": 10, "delay": {"tuples": 100_000, "seconds": 2}},
    "castle, 5 s": {"algorithm": "castle", "k": 10, "delay": {"tuples": 100_000, "seconds": 5}},
}
COLUMNS = ("engine", "events", "mean delay, s", "released", "suppressed")


def feed(client: Client, topic: str, events: int) -> None:
    """Events at a steady rate."""
    producer = client.producer(f"feeder-of-{topic}")
    producer.init_transactions()
    rows = sample_events(events, seed=1, persons=events // 5).to_pylist()
    values = as_json([row | {"note": ""} for row in rows])
    step, begun = round(RATE * TICK), time.monotonic()
    for place, first in enumerate(range(0, events, step)):
        time.sleep(max(begun + place * TICK - time.monotonic(), 0.0))
        producer.begin()
        producer.produce(Partition(topic, 0), values[first : first + step])
        producer.flush()
        producer.commit()
    producer.close()


def measure(client: Client, name: str, seconds: int) -> dict[str, Any]:
    """One engine, from the first event to the last."""
    source, target = f"raw-{list(GUARANTEES).index(name)}", f"safe-{list(GUARANTEES).index(name)}"
    admin = client.admin()
    for topic in (source, target):
        admin.create_topic(topic, 1)
    admin.close()
    route = {**POLICY["stream"], "input": source, "output": target}
    route.pop("dead_letters")
    asked = {**POLICY, "name": source, "guarantee": GUARANTEES[name], "stream": route}
    settings = WorkerSettings(commit_interval=INTERVAL)
    stream = stream_of(parse_policy(yaml.safe_dump(asked)), settings)
    warm_up(stream)
    metrics, stop, found = Metrics(stream), threading.Event(), dict[str, Any]()

    def run() -> None:
        while metrics.unready():
            time.sleep(0.05)
        feed(client, source, RATE * seconds)
        status = metrics.status()
        found.update(status["counts"], delay=status["gauges"]["delay"])
        stop.set()

    threading.Thread(target=run, daemon=True).start()
    Worker(stream, client, settings, metrics).run(stop)
    row = (name, found["taken"], found["delay"], found["released"], found.get("suppressed", 0))
    return dict(zip(COLUMNS, row, strict=True))


def lines_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table of the page."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    return lines + [f"| {' | '.join(show(cell) for cell in row.values())} |" for row in rows]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__, add=add_options)
    print_machine()
    with broker("embedded") as bootstrap:
        client = connect(KafkaSettings(bootstrap_servers=bootstrap))
        rows = [measure(client, name, 10 if options.quick else 30) for name in GUARANTEES]
    print_table("From taking an event to publishing it", COLUMNS, [list(row.values()) for row in rows])
    if options.docs:
        write_between("worker_delay", lines_of(rows), options.docs / "choosing.md")
    write_json(options.json, "worker_delay", rows)


if __name__ == "__main__":
    main()
