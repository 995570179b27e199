"""A worker that runs for long: its memory over millions of events, and how late events leave when few come.

    python -m load_tests.stream_endurance --events 10000000 [--broker apache] [--json FILE]

The worker is `portcullis run` in a process of its own. For the memory it is fed as fast as it takes events, which packs
an hour of 2,800 events a second into minutes. For the delay it is fed slowly, and a committed reader notes when each
event appears: the policy's delay bound is what it may take, the commit interval included.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml

from load_tests.harness import arguments, print_machine, print_table, write_json
from load_tests.stream_throughput import PARTITIONS, broker
from service.demo import POLICY
from service.kafka import Client, KafkaSettings, Partition, Reader, TransactionalProducer, connect
from service.ports import free_port
from service.sample import sample_events

BATCH = 10_000
AHEAD = 100_000
"""How far the producer may be ahead of the worker."""
SAMPLES = 20
RATE = 50
DELAY_SECONDS = 5
COMMIT_INTERVAL = 0.5
PATIENCE = 600.0


class Run:
    """One worker process on topics of its own."""

    def __init__(self, client: Client, bootstrap: str, directory: Path, name: str) -> None:
        self.raw, self.safe = f"{name}.raw", f"{name}.safe"
        self.client = client
        admin = client.admin()
        for topic in (self.raw, self.safe):
            admin.create_topic(topic, PARTITIONS, {"retention.bytes": str(256 << 20)})
        admin.close()
        policy = json.loads(json.dumps(POLICY))
        policy["name"] = name
        policy["schema"]["public"].append("order")  # traceable: never do that with data that matters
        policy["guarantee"]["delay"] = {"tuples": 2_000, "seconds": DELAY_SECONDS}
        policy["stream"] = {"input": self.raw, "output": self.safe, "start": "earliest"}
        path = directory / f"{name}.yaml"
        path.write_text(yaml.safe_dump(policy))
        self.port = free_port()
        command = [sys.executable, "-m", "service", "run", str(path), "--bootstrap", bootstrap]
        environment = os.environ | {
            "PORTCULLIS_WORKER_COMMIT_INTERVAL": str(COMMIT_INTERVAL),
            "PORTCULLIS_WORKER_STATUS_PORT": str(self.port),
        }
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        eventually(lambda: self.status().get("ready"))

    def status(self) -> dict[str, Any]:
        """What the worker says of itself."""
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status") as answer,
        ):
            return dict(json.load(answer))
        return {}

    def taken(self) -> int:
        """Events that the worker has taken."""
        return int(self.status().get("counts", {}).get("taken", 0))

    def memory(self) -> float:
        """Resident MiB of the worker."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024

    def close(self) -> None:
        """End the worker."""
        self.process.terminate()
        self.process.wait(60)


def eventually(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("the worker does not get on")
        time.sleep(0.1)


def write(producer: TransactionalProducer, place: Partition, values: list[bytes]) -> None:
    """Produce in one transaction."""
    producer.begin()
    producer.produce(place, values)
    producer.flush()
    producer.commit()


def memory_over(run: Run, events: int) -> list[tuple[int, float]]:
    """Resident memory of the worker after each twentieth of the events."""
    rows = sample_events(AHEAD, seed=1, persons=AHEAD // 5).to_pylist()
    values = [msgspec.json.encode(row) for row in rows]
    producer = run.client.producer("endurance")
    producer.init_transactions()
    samples: list[tuple[int, float]] = []
    for place, produced in enumerate(range(0, events, BATCH)):
        if produced >= (len(samples) + 1) * events // SAMPLES:
            eventually(lambda: run.taken() >= (len(samples) + 1) * events // SAMPLES - AHEAD)
            samples.append((produced, run.memory()))
            print(f"{produced:,} events: {samples[-1][1]:.0f} MiB", flush=True)
        if not place % (AHEAD // BATCH):
            eventually(lambda done=produced - AHEAD: run.taken() >= done)  # type: ignore[misc]
        start = produced % AHEAD
        write(producer, Partition(run.raw, place % PARTITIONS), values[start : start + BATCH])
    eventually(lambda: run.taken() >= events)
    samples.append((events, run.memory()))
    producer.close()
    return samples


def delays(run: Run, events: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Seconds from producing an event to seeing it released, at a low rate."""
    producer, reader = run.client.producer("trickle"), run.client.reader()
    producer.init_transactions()
    rows = sample_events(events, seed=2, persons=max(50, events // 3)).to_pylist()
    produced, seen = dict[int, float](), dict[int, float]()
    ends = [0] * PARTITIONS
    started = time.monotonic()
    while time.monotonic() < started + events / RATE + 2 * DELAY_SECONDS:
        while len(produced) < min(events, (time.monotonic() - started) * RATE):
            row = rows[len(produced)]
            write(producer, Partition(run.raw, len(produced) % PARTITIONS), [msgspec.json.encode(row)])
            produced[row["order"]] = time.monotonic()
        for order in new_orders(reader, run.safe, ends):
            seen.setdefault(order, time.monotonic())
        time.sleep(0.01)
    producer.close()
    reader.close()
    return np.array([moment - produced[order] for order, moment in seen.items()])


def new_orders(reader: Reader, topic: str, ends: list[int]) -> Iterator[int]:
    """Events released since the last look."""
    for number in range(PARTITIONS):
        place = Partition(topic, number)
        high = reader.watermarks(place).high
        for batch in reader.read(place, ends[number], high, 10) if high > ends[number] else ():
            for value in batch.values:
                yield from (row["order"] for row in msgspec.json.decode(value or b"{}")["rows"])
        ends[number] = high


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--broker", choices=["embedded", "apache"], default="embedded")


def main() -> None:
    """Measure both."""
    given = arguments(__doc__, add=_options)
    print_machine()
    events, slow = (600_000, 500) if given.quick else (given.events, 3_000)
    with broker(given.broker) as bootstrap, tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        client = connect(KafkaSettings(bootstrap_servers=bootstrap))
        run = Run(client, bootstrap, Path(directory), "trickle")
        stack.callback(run.close)
        late = delays(run, slow)
        run = Run(client, bootstrap, Path(directory), "flood")
        stack.callback(run.close)
        samples = memory_over(run, events)
    half = [size for _, size in samples[len(samples) // 2 :]]
    memory = {
        "events": events,
        "after a twentieth MiB": round(samples[0][1]),
        "second half, least MiB": round(min(half)),
        "second half, most MiB": round(max(half)),
    }
    delay = {
        "events per second": RATE,
        "bound seconds": DELAY_SECONDS,
        "commit interval": COMMIT_INTERVAL,
        "p50 seconds": round(float(np.median(late)), 2),
        "p99 seconds": round(float(np.percentile(late, 99)), 2),
        "most seconds": round(float(late.max()), 2),
        "released": len(late),
    }
    print_table("Memory of the worker", tuple(memory), [tuple(memory.values())])
    print_table("From producing an event to seeing it released", tuple(delay), [tuple(delay.values())])
    write_json(given.json, "stream_endurance", {"memory": memory, "delay": delay})


if __name__ == "__main__":
    main()
