"""Faults on purpose: workers killed, stopped past their session, added and removed, the broker killed under them.

Events carry a number that can be traced, which no real policy should publish. Afterwards everything is read twice. As a
committed reader: every event left exactly once or is counted as suppressed or refused, and every cluster is about k
persons. As a dirty reader, who sees aborted transactions too: no event stands under two clusters or two boxes. With
`--algorithm cohorts` the dirty reader also ties all rows of each person together and intersects their boxes: at least k
persons of the partition must lie in all of them. What is remembered of persons is compacted all the time meanwhile.

    python -m load_tests.stream_faults --broker apache --events 200000 --kills 20 --algorithm cohorts --docs docs
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray

from load_tests.harness import arguments, machine_line, print_machine, print_table, show, write_json
from load_tests.stream_linking import write_between
from service.broker import Broker
from service.demo import POLICY, remembering
from service.kafka import KafkaError, KafkaSettings, Partition, Reader, connect
from service.kafka.partitioners import partitions_of
from service.sample import sample_events
from service.worker.sealing import add_key
from service.worker.state import State
from tests.service.kafka.real_kafka import RealKafka

K = POLICY["guarantee"]["k"]
PARTITIONS = 4
BATCH = 500
DELTA = 1_000
WORKERS = 2
PACE = 3.0
"""Seconds between two faults, on average."""
POISON = (b"not json", b'{"customer_id": "x", "age": 500}', b'{"age": 30}')
SESSION_MS = 6_000
IMPATIENT = {
    "PORTCULLIS_KAFKA_SESSION_TIMEOUT_MS": str(SESSION_MS),
    "PORTCULLIS_KAFKA_HEARTBEAT_INTERVAL_MS": str(SESSION_MS // 6),
    "PORTCULLIS_KAFKA_TRANSACTION_TIMEOUT_MS": "5000",
    "PORTCULLIS_WORKER_COMMIT_INTERVAL": "0.3",
}
"""Settings with which much happens in a short time."""
EAGER = {
    "cleanup.policy": "compact",
    "max.compaction.lag.ms": "1000",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1000",
}
"""A memory topic that is compacted whenever something was written."""
MEMORY = "portcullis.orders.safe.memory"
SETTLE_SECONDS = 240.0
SHOWN = {"taken", "released", "clusters"}


@dataclass
class Outcome:
    """What the two readers found, and what happened before."""

    taken: int
    happened: Counter[str]
    accounts: Counter[str]
    released: int
    twice: int
    unaccounted: int
    small_clusters: int
    two_boxes: int
    candidates: int | None
    """Fewest persons who lie in all boxes of somebody; None where that is not promised."""
    clusters: int
    compacted: int | None
    """Offsets of the memory topic up to which it was compacted, over all partitions; None where nobody can see it."""
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether nothing was lost, doubled or leaked."""
        linked = self.candidates is not None and self.candidates < K
        return not (self.twice or self.unaccounted or self.small_clusters or self.two_boxes or linked)


class Arena:
    """A broker, a stream and its workers; chaos is made from outside, by signals."""

    def __init__(
        self,
        directory: Path,
        bootstrap: str,
        client: str,
        settings: Mapping[str, str] = IMPATIENT,
        *,
        algorithm: str = "castle",
        traced: bool = True,
        emit: str = "clusters",
        eager: bool = False,
    ) -> None:
        self.bootstrap, self.client, self.settings = bootstrap, client, settings
        self.remembers = algorithm == "cohorts"
        self.policy = directory / "orders.yaml"
        policy = remembering(POLICY) if self.remembers else json.loads(json.dumps(POLICY))
        policy["schema"]["public"] = ["shop", "order"] if traced else []
        policy["stream"]["emit"] = emit
        policy["guarantee"]["delay"] = {"tuples": DELTA, "seconds": 15}
        if self.remembers:
            add_key(directory / "keys.json")
            self.settings = {**settings, "PORTCULLIS_WORKER_KEY_FILE": str(directory / "keys.json")}
        self.policy.write_text(yaml.safe_dump(policy))
        self.log = (directory / "workers.log").open("ab")
        self.workers: list[subprocess.Popen[bytes]] = []
        kafka = KafkaSettings(bootstrap_servers=bootstrap)
        admin = connect(kafka).admin()
        for topic in ("orders.raw", "orders.safe", "orders.dead"):
            admin.create_topic(topic, PARTITIONS)
        if self.remembers and eager:
            admin.create_topic(MEMORY, PARTITIONS, EAGER)
        admin.close()
        self.connection = connect(kafka)
        self.persons: dict[int, str] = {}
        self.traits: dict[str, dict[str, Any]] = {}
        """What is known of each person who may be released."""
        self.fed = 0
        self.poison = 0

    def add_worker(self, **more: str) -> None:
        """Start one more worker process; `more` is added to its environment."""
        environment = os.environ | self.settings | {"PORTCULLIS_WORKER_STATUS_PORT": "0"} | more
        command = [sys.executable, "-m", "service", "run", str(self.policy), "--bootstrap", self.bootstrap]
        command += ["--client", self.client]
        self.workers.append(subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment))

    def kill_worker(self) -> None:
        """End the first worker without any warning."""
        victim = self.workers.pop(0)
        victim.kill()
        victim.wait()

    def said(self) -> str:
        """What the workers have told so far."""
        return Path(self.log.name).read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        """End every worker that is left."""
        for worker in self.workers:
            with contextlib.suppress(ProcessLookupError):
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()
        self.log.close()

    def feed(self, events: int, rate: float, stop: threading.Event, seed: int) -> None:
        """Produce events with poison in between; a broker that is away is tried again."""
        randomness = random.Random(seed)
        people = max(200, events // 8)
        first = 0
        while first < events and not stop.is_set():
            rows = sample_events(min(BATCH, events - first), seed=seed, persons=people, first=first).to_pylist()
            place = randomness.randrange(PARTITIONS)
            if self.remembers:  # of everybody's orders those of one partition, the others are somebody else's to feed
                keys = [row["customer_id"].encode() for row in rows]
                own = partitions_of("murmur2", keys, PARTITIONS) == place
                rows = [row for row, here in zip(rows, own, strict=True) if here]
            values: list[bytes | None] = [msgspec.json.encode(row) for row in rows]
            values.insert(randomness.randrange(len(values) + 1), randomness.choice(POISON))
            if self._write(Partition("orders.raw", place), values):
                self.persons |= {row["order"]: row["customer_id"] for row in rows}
                self.traits |= {row["customer_id"]: row for row in rows}
                self.fed += len(rows)
                self.poison += 1
                first += BATCH
                stop.wait(len(rows) / rate)
            else:
                stop.wait(0.5)

    def _write(self, place: Partition, values: list[bytes | None]) -> bool:
        """One transaction, tried once: what is unclear is settled by looking at the input itself afterwards."""
        producer = self.connection.producer(f"feeder-{random.getrandbits(64):x}")
        try:
            producer.init_transactions()
            producer.begin()
            keys = [_key_of(value) for value in values] if self.remembers else None
            producer.produce(place, values, keys)
            producer.flush()
            producer.commit()
        except KafkaError:
            return False
        finally:
            producer.close()
        return True

    def accounts(self, reader: Reader, until: Reader) -> Counter[str]:
        """What the last states say has been done with the events, over all partitions.

        `until` knows where the log ends: a dirty reader's end is waited for until it is stable.
        """
        totals: Counter[str] = Counter()
        for number in range(PARTITIONS):
            place = Partition("portcullis.orders.safe.state", number)
            low, high = until.watermarks(place)
            last = None
            for batch in reader.read(place, max(low, high - 50), high, 30):
                last = batch.values[-1] or last
            if last is not None:
                totals += Counter(State.decode(last).totals)
        return totals


def _key_of(value: bytes | None) -> bytes | None:
    """Who a record is about; nobody for poison."""
    with contextlib.suppress(msgspec.DecodeError):
        person = msgspec.json.decode(value or b"").get("customer_id")
        return None if person is None else str(person).encode()
    return None


def chaos(arena: Arena, kills: int, broker: RealKafka | None, seed: int) -> Counter[str]:
    """Do harm until so many workers have been killed or frozen."""
    randomness = random.Random(seed)
    happened: Counter[str] = Counter()
    while happened["worker killed"] + happened["worker frozen"] < kills:
        time.sleep(PACE * randomness.uniform(0.5, 1.5))
        victim = randomness.choice(arena.workers)
        choices = ["kill"] * 5 + ["freeze"] * 2 + ["stop", "add"] + (["broker"] if broker else [])
        match randomness.choice(choices):
            case "kill":
                victim.kill()
                victim.wait()
                arena.workers.remove(victim)
                arena.add_worker()
                happened["worker killed"] += 1
            case "freeze":
                victim.send_signal(signal.SIGSTOP)
                time.sleep(SESSION_MS / 1000 * 1.5)
                victim.send_signal(signal.SIGCONT)
                happened["worker frozen"] += 1
            case "stop" if len(arena.workers) > 2:
                victim.terminate()
                victim.wait(60)
                arena.workers.remove(victim)
                happened["worker stopped"] += 1
            case "add" if len(arena.workers) < 4:
                arena.add_worker()
                happened["worker added"] += 1
            case "broker" if broker and happened["broker killed"] < max(1, kills // 5):
                broker.kill()
                broker.restart()
                happened["broker killed"] += 1
        for worker in [each for each in arena.workers if each.poll() is not None]:
            arena.workers.remove(worker)
            arena.add_worker()
            happened["worker gave up"] += 1
    return happened


def clusters(reader: Reader, ends: dict[Partition, int]) -> Iterator[dict[str, Any]]:
    """Every message of the output up to those ends; a committed reader waits for transactions that are still open."""
    for place, end in ends.items():
        for batch in reader.read(place, 0, end, 60):
            for value in batch.values:
                yield msgspec.json.decode(value or b"{}")


def judge(arena: Arena, happened: Counter[str], compacted: int | None, started: float) -> Outcome:
    """Read everything as both kinds of readers do."""
    reader, dirty = arena.connection.reader(), arena.connection.reader(dirty=True)
    places = [Partition("orders.safe", number) for number in range(PARTITIONS)]
    ends = {place: dirty.watermarks(place).high for place in places}
    seen: Counter[int] = Counter()
    members: dict[str, set[int]] = {}
    for cluster in clusters(reader, ends):
        orders = [row["order"] for row in cluster["rows"]]
        seen.update(orders)
        members.setdefault(cluster["cluster"], set()).update(orders)
    boxes: dict[int, set[str]] = {}
    for cluster in clusters(dirty, ends):
        box = cluster["cluster"] + json.dumps(cluster["generalization"], sort_keys=True)
        for row in cluster["rows"]:
            boxes.setdefault(row["order"], set()).add(box)
    accounts = arena.accounts(reader, until=dirty)
    persons = {order: arena.persons.get(order, f"unknown {order}") for order in seen}
    refused = sum(count for name, count in accounts.items() if name.startswith("refused."))
    reader.close()
    dirty.close()
    return Outcome(
        taken=accounts["taken"],
        happened=happened,
        accounts=accounts,
        released=len(seen),
        twice=sum(count > 1 for count in seen.values()),
        unaccounted=accounts["taken"] - len(seen) - accounts["suppressed"] - refused,
        small_clusters=0
        if arena.remembers  # a row leaves alone, in the company of those who are silent
        else sum(len({persons[order] for order in orders}) < K for orders in members.values()),
        two_boxes=sum(len(own) > 1 for own in boxes.values()),
        candidates=fewest_candidates(arena, boxes) if arena.remembers else None,
        clusters=len(members),
        compacted=compacted,
        seconds=time.monotonic() - started,
    )


def fewest_candidates(arena: Arena, boxes: Mapping[int, set[str]]) -> int:
    """The attack on what a dirty reader saw: how many persons lie in all boxes of somebody's rows, at the fewest.

    It shares nothing with what anonymizes. Nobody's values change here, so it does not matter when they were seen.
    """
    people = sorted(arena.traits)
    where = partitions_of("murmur2", [person.encode() for person in people], PARTITIONS)
    leaves = {
        name: _leaves(attribute["hierarchy"]) for name, attribute in POLICY["schema"]["quasi"].items() if name != "age"
    }
    columns = {name: np.array([arena.traits[person][name] for person in people]) for name in ("age", *leaves)}
    inside: dict[str, NDArray[np.bool_]] = {}
    for box in {text[text.index("{") :] for own in boxes.values() for text in own}:
        generalized = json.loads(box)
        fits = (columns["age"] >= generalized["age"][0]) & (columns["age"] <= generalized["age"][1])
        for name, known in leaves.items():
            fits &= np.isin(columns[name], list(known[generalized[name]]))
        inside[box] = fits
    left: dict[str, NDArray[np.bool_]] = {}
    numbers = {person: number for number, person in enumerate(people)}
    for order, own in boxes.items():
        person = arena.persons.get(order, "")
        if person not in numbers:  # written by a transaction of which nobody knows how it ended
            continue
        fits = left.setdefault(person, where == where[numbers[person]])
        for text in own:
            fits &= inside[text[text.index("{") :]]
    return min((int(fits.sum()) for fits in left.values()), default=0)


def _leaves(hierarchy: Mapping[str, Any]) -> dict[str, set[str]]:
    """The leaves below every node of a nested hierarchy, by label; a leaf is below itself."""
    below: dict[str, set[str]] = {}
    for label, children in hierarchy.items():
        if isinstance(children, Mapping):
            found = _leaves(children)
            below |= found
            below[label] = set().union(*(found[child] for child in children))
        else:
            below |= {leaf: {leaf} for leaf in children}
            below[label] = set(children)
    return below


def settle(arena: Arena) -> None:
    """Wait until the workers have taken and settled everything that is in the input."""
    reader = arena.connection.reader()
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(KafkaError):
            totals = arena.accounts(reader, until=reader)
            refused = sum(count for name, count in totals.items() if name.startswith("refused."))
            done = totals["released"] + totals["suppressed"] + refused
            if totals["taken"] >= arena.fed + arena.poison and done == totals["taken"]:
                break
        for worker in [each for each in arena.workers if each.poll() is not None]:
            arena.workers.remove(worker)
            arena.add_worker()
        time.sleep(0.5)
    reader.close()


def run(
    broker: str,
    client: str,
    events: int,
    kills: int,
    *,
    rate: float = 4_000,
    seed: int = 1,
    algorithm: str = "castle",
) -> Outcome:
    """One run of chaos on one broker with one client."""
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        real = stack.enter_context(RealKafka()) if broker == "apache" else None
        bootstrap = real.bootstrap if real else stack.enter_context(Broker()).bootstrap
        arena = Arena(directory, bootstrap, client, algorithm=algorithm, eager=True)
        stack.callback(arena.close)
        for _ in range(WORKERS):
            arena.add_worker()
        stop = threading.Event()
        feeder = threading.Thread(target=arena.feed, args=(events, rate, stop, seed), daemon=True)
        feeder.start()
        happened = chaos(arena, kills, real, seed)
        feeder.join(SETTLE_SECONDS)
        stop.set()
        settle(arena)
        for worker in arena.workers:
            worker.terminate()
        for worker in arena.workers:
            worker.wait(60)
        compacted = real.compacted_until(MEMORY) if real and arena.remembers else None
        return judge(arena, happened, compacted, started)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--broker", choices=["embedded", "apache"], default="embedded")
    parser.add_argument("--client", choices=["confluent-kafka", "kafka-python"], default="confluent-kafka")
    parser.add_argument("--algorithm", choices=["castle", "cohorts"], default="castle")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rate", type=float, default=4_000, help="events per second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--docs", type=Path, help="folder of the documentation, to write the table of cohorts and this client anew"
    )


def main() -> None:
    """Run, print, and end with status 1 if anything was lost, doubled or leaked."""
    given = arguments(__doc__, add=_options)
    events, kills = (8_000, 3) if given.quick else (given.events, given.kills)
    print_machine()
    more = {"rate": given.rate, "seed": given.seed, "algorithm": given.algorithm}
    outcome = run(given.broker, given.client, events, kills, **more)
    rows = [
        ("events taken", outcome.taken),
        ("released", outcome.released),
        ("clusters", outcome.clusters),
        *((name, count) for name, count in sorted(outcome.accounts.items()) if name not in SHOWN),
        *sorted(outcome.happened.items()),
        ("events that left twice", outcome.twice),
        ("events unaccounted for", outcome.unaccounted),
        (f"clusters below {K} persons", outcome.small_clusters),
        ("events under two boxes, for a dirty reader", outcome.two_boxes),
        *([] if outcome.candidates is None else [("fewest persons in all boxes of somebody", outcome.candidates)]),
        *([] if outcome.compacted is None else [("offsets of the memory that were compacted", outcome.compacted)]),
        ("seconds", round(outcome.seconds, 1)),
    ]
    print_table(f"Faults on the {given.broker} broker with {given.client}", ("what", "count"), rows)
    write_json(given.json, "stream_faults", {"broker": given.broker, "client": given.client, **dict(rows)})
    if given.docs and given.algorithm == "cohorts":
        lines = ["| what | count |", "|---|---|", *(f"| {name} | {show(count)} |" for name, count in rows)]
        where = f"cohort_faults {given.broker} {given.client}"
        write_between(where, [*lines, "", machine_line()], given.docs / "cohorts.md")
    sys.exit(0 if outcome.holds else 1)


if __name__ == "__main__":
    main()
