"""Very many persons behind Kafka: how much memory a worker takes that knows them, and how soon the next one does.

    python -m load_tests.cohort_restore --persons 1000000 [--broker apache] [--client NAME] [--docs FOLDER]

Everybody orders once, by way of a topic with four partitions; one worker takes it all and is killed. Another is
started, with default settings, while a few of those persons come back all the time. Measured are the time from that
start until every partition has committed again, the part of it in which persons are read, the worker's time on
processors until then, and the most memory that each of the two workers took. Then one more worker joins, half of the
partitions move to it, and it is measured how long it takes until every one has committed again: that worker has to
start, and to read the persons of its partitions.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from load_tests.harness import arguments, machine_line, print_machine, print_table, show, write_json
from load_tests.stream_faults import PARTITIONS, Arena
from load_tests.stream_linking import write_between
from load_tests.stream_recovery import GROUP, LOOK_SECONDS
from service.broker import Broker
from service.kafka import Client, KafkaError, KafkaSettings, Partition, connect
from service.kafka.partitioners import partitions_of
from service.sample import sample_events
from tests.service.kafka.real_kafka import RealKafka

BATCH = 50_000
TRICKLE = 200
"""Events of each partition in each step of `LOOK_SECONDS`, while the next worker is waited for."""
PATIENCE = 3600.0
COLUMNS = (
    "persons",
    "client",
    "taken/s",
    "peak MiB while taking",
    "MiB in the topic",
    "s until all move",
    "of which reading s",
    "processor s",
    "peak MiB after",
    "s after one more joined",
)


def orders(first: int, count: int) -> tuple[list[bytes], list[bytes]]:
    """Keys and values of one order of each of these persons."""
    names = pa.array([f"c{number:08d}" for number in range(first, first + count)])
    people = sample_events(count, seed=first, persons=count).drop_columns(["order", "customer_id", "shop"])
    columns = {"customer_id": names, **dict(zip(people.column_names, people.columns, strict=True))}
    parts: list[Any] = []
    for name, column in columns.items():
        quote = "" if pa.types.is_integer(column.type) else '"'
        parts += [pa.scalar(f'{"," if parts else "{"}"{name}":{quote}'), column.cast(pa.string()), pa.scalar(quote)]
    values = pc.binary_join_element_wise(*parts, pa.scalar("}"), pa.scalar("")).cast(pa.binary())
    return names.cast(pa.binary()).to_pylist(), values.to_pylist()


def produce(client: Client, keys: list[bytes], values: list[bytes], name: str) -> None:
    """One transaction, each order in the partition of its person."""
    own = partitions_of("murmur2", keys, PARTITIONS)
    with contextlib.closing(client.producer(name)) as producer:
        producer.init_transactions()
        producer.begin()
        for number in range(PARTITIONS):
            here = np.flatnonzero(own == number).tolist()
            producer.produce(Partition("orders.raw", number), [values[n] for n in here], [keys[n] for n in here])
        producer.flush()
        producer.commit()


class Trickle(threading.Thread):
    """Lets known persons come back, a few at a time."""

    def __init__(self, client: Client) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self._client = client
        self._orders = orders(0, TRICKLE * PARTITIONS)

    def run(self) -> None:
        """Again and again, until the end."""
        while not self.ended.wait(LOOK_SECONDS):
            with contextlib.suppress(KafkaError):
                produce(self._client, *self._orders, "trickle")


def positions(client: Client) -> dict[int, int]:
    """How far each partition has committed."""
    with contextlib.suppress(KafkaError), contextlib.closing(client.admin()) as admin:
        return {place.number: committed.offset for place, committed in admin.group_offsets(GROUP).items()}
    return {}


def wait_until(happened: Any, arena: Arena) -> float:
    """Seconds that it took; a worker that ends meanwhile is no use."""
    started = time.monotonic()
    while not happened():
        if arena.workers[-1].poll() is not None or time.monotonic() > started + PATIENCE:
            raise RuntimeError(f"the worker does not work: {arena.said()[-2000:]}")
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - started


def peak_mib(process: int) -> int:
    """The most memory that a process has taken."""
    (line,) = [each for each in Path(f"/proc/{process}/status").read_text().splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1]) // 1024


def processor_seconds(process: int) -> float:
    """Its time on processors."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def arena_of(
    broker: str, client: str, *, algorithm: str = "cohorts", emit: str = "clusters"
) -> Iterator[tuple[Arena, RealKafka | None]]:
    """A broker with a stream of orders, and workers with default settings."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        real = stack.enter_context(RealKafka(lasting=True)) if broker == "apache" else None
        bootstrap = real.bootstrap if real else stack.enter_context(Broker()).bootstrap
        arena = Arena(directory, bootstrap, client, settings={}, algorithm=algorithm, traced=False, emit=emit)
        stack.callback(arena.close)
        yield arena, real


def measure(broker: str, client: str, persons: int) -> dict[str, Any]:
    """Fill, kill, restore."""
    with arena_of(broker, client) as (arena, real):
        # As in `stream_recovery`: the other client crashes when it is asked for offsets very often.
        watching = connect(KafkaSettings(bootstrap_servers=arena.bootstrap, client="kafka-python"))
        ends = np.zeros(PARTITIONS, np.int64)
        for first in range(0, persons, BATCH):
            keys, values = orders(first, min(BATCH, persons - first))
            produce(arena.connection, keys, values, "filler")
            ends += np.bincount(partitions_of("murmur2", keys, PARTITIONS), minlength=PARTITIONS)
        print(f"{persons:,} orders are written", flush=True)
        arena.add_worker()
        taking = wait_until(lambda: all(positions(watching).get(n, 0) >= ends[n] for n in range(PARTITIONS)), arena)
        process = arena.workers[-1].pid
        before, said = peak_mib(process), len(arena.said())
        print(f"taken in {taking:.0f} s, peak {before:,} MiB", flush=True)
        arena.kill_worker()
        at, trickle = positions(watching), Trickle(arena.connection)
        arena.add_worker()
        trickle.start()
        back = wait_until(lambda: all(positions(watching).get(n, 0) > at[n] for n in range(PARTITIONS)), arena)
        process = arena.workers[-1].pid
        busy, after = processor_seconds(process), peak_mib(process)
        read = sum(map(float, re.findall(r"remembers \d.*read in ([0-9.]+) s", arena.said()[said:])))
        joined = one_more(arena, watching)
        trickle.ended.set()
        trickle.join()
        size = 0 if real is None else real.stored_bytes("portcullis.orders.safe.memory") >> 20
        facts = (persons, client, round(persons / taking), before, size, back, read, busy, after, joined)
        return dict(zip(COLUMNS, facts, strict=True))


def one_more(arena: Arena, watching: Client) -> float:
    """Seconds from the start of a second worker until all partitions move that were shared out between both."""
    said = len(arena.said())
    arena.add_worker()
    shared = wait_until(lambda: arena.said()[said:].count("assigned: orders.raw") >= 2, arena)
    at = positions(watching)
    return shared + wait_until(lambda: all(positions(watching).get(n, 0) > at[n] for n in range(PARTITIONS)), arena)


def lines_of(rows: list[dict[str, Any]]) -> list[str]:
    """The table of the page, and where it was measured."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    return [*lines, *(f"| {' | '.join(map(show, row.values()))} |" for row in rows), "", machine_line()]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--persons", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--broker", choices=["embedded", "apache"], default="apache")
    parser.add_argument("--client", choices=["confluent-kafka", "kafka-python"], nargs="+", default=["confluent-kafka"])
    parser.add_argument("--docs", type=Path, help="folder of the documentation, to write its table anew")


def main() -> None:
    """Measure, print, and write what was asked for."""
    given = arguments(__doc__, add=_options)
    print_machine()
    sizes = [20_000] if given.quick else given.persons
    rows = [measure(given.broker, client, persons) for persons in sizes for client in given.client]
    print_table("A worker that remembers, killed and started again", COLUMNS, [list(row.values()) for row in rows])
    if given.docs:
        write_between("cohort_restore", lines_of(rows), given.docs / "cohorts.md")
    write_json(given.json, "cohort_restore", rows)


if __name__ == "__main__":
    main()
