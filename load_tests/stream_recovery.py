"""How long a stream stands still after a fault, with default settings: workers killed and frozen, the broker restarted.

Two workers share four partitions, which get events all the time. What is watched is what is durable: the group's
committed offsets. A stall is the longest time for which some partition did not move, the commit interval included.

    python -m load_tests.stream_recovery --broker apache --client kafka-python
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec

from load_tests.harness import arguments, print_machine, print_table, write_json
from load_tests.stream_faults import PARTITIONS, Arena
from service.broker import Broker
from service.kafka import KafkaError, KafkaSettings, Partition, connect
from service.ports import free_port
from service.sample import sample_events
from tests.service.kafka.real_kafka import RealKafka

GROUP = "portcullis.orders"
EVENTS = 20
"""Per partition and step."""
STEP_SECONDS = 0.2
LOOK_SECONDS = 0.1
START_SECONDS = 240.0
FREEZE_SECONDS = 15.0


class Feeder(threading.Thread):
    """Gives every partition some events, again and again; a broker that is away is tried again."""

    def __init__(self, arena: Arena) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        rows = sample_events(10_000, seed=1, persons=2_000, first=0).to_pylist()
        self._values: list[bytes | None] = [msgspec.json.encode(row) for row in rows]
        self._arena = arena
        self._at = 0

    def run(self) -> None:
        """Feed until the end."""
        while not self.ended.is_set():
            with contextlib.suppress(KafkaError):
                self._feed()
            self.ended.wait(0.5)

    def _feed(self) -> None:
        """With one producer, as long as it works."""
        with contextlib.closing(self._arena.connection.producer("feeder")) as producer:
            producer.init_transactions()
            while not self.ended.wait(STEP_SECONDS):
                producer.begin()
                for number in range(PARTITIONS):
                    self._at = (self._at + EVENTS) % (len(self._values) - EVENTS)
                    producer.produce(Partition("orders.raw", number), self._values[self._at : self._at + EVENTS])
                producer.flush()
                producer.commit()


class Lookout(threading.Thread):
    """Notes when the committed offset of each partition moved."""

    def __init__(self, arena: Arena) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.moved: dict[int, list[float]] = {number: [] for number in range(PARTITIONS)}
        # Asked several times a second for a group's offsets, confluent-kafka 2.16 reads beyond their notes and crashes.
        self._connection = connect(KafkaSettings(bootstrap_servers=arena.bootstrap, client="kafka-python"))
        self._offsets: dict[int, int] = {}

    def run(self) -> None:
        """Look until the end."""
        while not self.ended.is_set():
            with contextlib.suppress(KafkaError), contextlib.closing(self._connection.admin()) as admin:
                while not self.ended.wait(LOOK_SECONDS):
                    for place, committed in admin.group_offsets(GROUP).items():
                        if committed.offset > self._offsets.get(place.number, 0):
                            self._offsets[place.number] = committed.offset
                            self.moved[place.number].append(time.monotonic())
            self.ended.wait(LOOK_SECONDS)

    def stall(self, since: float, until: float) -> float:
        """The longest time within which some partition did not move."""
        longest = 0.0
        for times in self.moved.values():
            before = max((when for when in times if when <= since), default=since)
            marks = [before, *(when for when in times if since < when < until), until]
            longest = max(longest, *(later - earlier for earlier, later in pairwise(marks)))
        return longest

    def all_move(self) -> bool:
        """Whether every partition has moved just now."""
        return all(times and times[-1] > time.monotonic() - 2.0 for times in self.moved.values())


class Workers:
    """The workers of an arena, the one that is going to suffer first."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._ports: list[int] = []

    def add(self, **more: str) -> None:
        """Start one more."""
        self._ports.append(free_port())
        self._arena.add_worker(PORTCULLIS_WORKER_STATUS_PORT=str(self._ports[-1]), **more)

    def kill(self) -> None:
        """End the first without any warning."""
        self._ports.pop(0)
        victim = self._arena.workers.pop(0)
        victim.kill()
        victim.wait()

    def restart(self) -> None:
        """End the first and start another."""
        self.kill()
        self.add()

    def restart_under_its_name(self) -> None:
        """End the first and start it again under the same name; it is the first again."""
        self.kill()
        self.add(PORTCULLIS_WORKER_INSTANCE="named")
        self._arena.workers.insert(0, self._arena.workers.pop())
        self._ports.insert(0, self._ports.pop())

    def freeze(self) -> None:
        """Stop the first for a while."""
        self._arena.workers[0].send_signal(signal.SIGSTOP)
        time.sleep(FREEZE_SECONDS)
        self._arena.workers[0].send_signal(signal.SIGCONT)

    def are_ready(self) -> bool:
        """Whether all of them have partitions and work on them."""
        return all(map(_is_ready, self._ports))


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _wait_for(*conditions: Callable[[], bool]) -> None:
    end = time.monotonic() + START_SECONDS
    while not all(condition() for condition in conditions):
        if time.monotonic() > end:
            raise RuntimeError(f"the workers did not work within {START_SECONDS} s")
        time.sleep(0.2)


def run(broker: str, client: str, repeat: int, watch: float, only: str = "") -> list[tuple[str, int, float, float]]:
    """Fault by fault: its name, how often, the middle and the longest stall."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        real = stack.enter_context(RealKafka(lasting=True)) if broker == "apache" else None
        bootstrap = real.bootstrap if real else stack.enter_context(Broker()).bootstrap
        arena = Arena(directory, bootstrap, client, settings={})
        stack.callback(arena.close)
        lookout, feeder, workers = Lookout(arena), Feeder(arena), Workers(arena)
        for thread in (lookout, feeder):
            thread.start()
            stack.callback(thread.ended.set)
        results = []

        def measure(name: str, fault: Callable[[], None], mend: Callable[[], None] = lambda: None) -> None:
            if only not in name:
                return
            stalls = []
            for _ in range(repeat):
                _wait_for(workers.are_ready, lookout.all_move)
                time.sleep(3.0)
                _wait_for(workers.are_ready, lookout.all_move)
                began = time.monotonic()
                fault()
                time.sleep(max(0.0, began + watch - time.monotonic()))
                stalls.append(lookout.stall(began, began + watch))
                print(f"{name}: {stalls[-1]:.1f} s", flush=True)
                mend()
            results.append((name, repeat, round(sorted(stalls)[repeat // 2], 1), round(max(stalls), 1)))

        for _ in range(2):
            workers.add()
        measure("a worker is killed, the other takes over", workers.kill, workers.add)
        measure("a worker is killed and started again", workers.restart)
        measure(f"a worker is frozen for {FREEZE_SECONDS:g} s", workers.freeze)
        workers.restart_under_its_name()
        measure("a worker with a name is killed and started again", workers.restart_under_its_name)
        if real:
            measure("the broker is restarted", real.restart)
        return results


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--broker", choices=["embedded", "apache"], default="apache")
    parser.add_argument("--client", choices=["confluent-kafka", "kafka-python"], default="confluent-kafka")
    parser.add_argument("--repeat", type=int, default=3, help="how often each fault is made")
    parser.add_argument("--only", default="", help="faults with this in their name")
    parser.add_argument("--watch", type=float, default=30.0, help="seconds that are watched after each")


def main() -> None:
    """Measure and print."""
    given = arguments(__doc__, add=_options)
    print_machine()
    rows = run(given.broker, given.client, 1 if given.quick else given.repeat, given.watch, given.only)
    columns = ("fault", "times", "middle stall s", "longest stall s")
    print_table(f"Recovery on the {given.broker} broker with {given.client}", columns, rows)
    write_json(given.json, "stream_recovery", [dict(zip(columns, row, strict=True)) for row in rows])


if __name__ == "__main__":
    main()
