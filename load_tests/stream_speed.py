"""How fast CASTLE is: tuples per second, the longest push of 1,000, memory, and beside it decoding the same from JSON.

    python -m load_tests.stream_speed [--quick] [--only TEXT] [--json FILE]

Speed is per second of one core's time, so that other work on the machine does not count; the longest push is by the
clock on the wall and in processor time, the least of three runs. The first rows of each run fill the buffer and are not
timed. Peers: a plain compiled loop 300,000 to 460,000 tuples/s in the first setting, the best public engine 3,600.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product

import numpy as np
import orjson

from load_tests.generators import PEER_QUASI, adult_like
from load_tests.harness import arguments, peak_bytes, print_machine, print_table, write_json
from microdata import Boxes, Category, Hierarchy, PersonKey, Schema, Table, class_loss, encode_events, seeded_words
from stream_algos import Batch, Castle

PUSH = 1_000


@dataclass(frozen=True)
class Setting:
    """One stream and how CASTLE is set for it; `warm` rows come before the timed ones."""

    name: str
    table: Callable[[int], Table]
    parameters: Mapping[str, object]
    rows: int = 200_000

    @property
    def warm(self) -> int:
        """Rows that fill the buffer."""
        delay = self.parameters["delta"]
        assert isinstance(delay, int)
        return 2 * delay


def adult(rows: int) -> Table:
    """The ten quasi-identifiers of the thesis."""
    return adult_like(10, ()).table(rows)


def peer(rows: int) -> Table:
    """The eight quasi-identifiers that peers were measured with."""
    return adult_like(PEER_QUASI, ()).table(rows)


def repeating(rows: int) -> Table:
    """Fifteen rows per person, spread over the stream."""
    return adult_like(10, (), rows_per_person=15).table(rows)


def wide(rows: int) -> Table:
    """Twenty quasi-identifiers: two adults in one row."""
    one, other = adult_like(10, ()).table(rows, 0), adult_like(10, ()).table(rows, 1)
    second = tuple(replace(attribute, name=attribute.name + "-2") for attribute in other.schema.quasi)
    schema = Schema("person", (*one.schema.quasi, *second))
    return Table(schema, one.persons, np.concatenate([one.quasi, other.quasi], axis=1), one.sensitive)


def tall(rows: int) -> Table:
    """Four quasi-identifiers with 10,000 leaves each, beside six of Adult."""
    base = adult_like(6, ()).table(rows)
    tree = _ten_thousand()
    random = np.random.default_rng(2)
    leaves = (10_000 * random.beta(0.5, 2.0, (rows, 4))).astype(int).astype(np.float64)
    schema = Schema("person", (*base.schema.quasi, *(Category(f"code{number}", tree) for number in range(4))))
    return Table(schema, base.persons, np.concatenate([base.quasi, leaves], axis=1), base.sensitive)


@cache
def _ten_thousand() -> Hierarchy:
    digits = ["".join(code) for code in product("0123456789", repeat=4)]
    return Hierarchy.from_rows([[code, code[:3] + "*", code[:2] + "**", code[:1] + "***", "****"] for code in digits])


def settings() -> Iterator[Setting]:
    """Every setting, for clusters formed at the deadline and on arrival."""
    for formation in ("deadline", "arrival"):
        thesis = {"k": 100, "delta": 10_000, "eta": 50, "mu": 100, "formation": formation}
        yield Setting(f"{formation}: 10 QI, k=100, δ=10,000", adult, thesis)
        yield Setting(f"{formation}: 8 QI, k=10, δ=200", peer, {"k": 10, "delta": 200, "formation": formation})
        yield Setting(f"{formation}: reuse", peer, {"k": 10, "delta": 200, "reuse": True, "formation": formation})
        if formation == "arrival":
            yield Setting("arrival: η=200", adult, {**thesis, "eta": 200})
            yield Setting("arrival: one cluster, δ=100,000", adult, {**thesis, "eta": 1, "delta": 100_000}, 400_000)
            yield Setting(
                "arrival: one cluster, k=10, δ=100,000", adult, {**thesis, "k": 10, "eta": 1, "delta": 100_000}, 400_000
            )
        yield Setting(f"{formation}: δ=100,000", adult, {**thesis, "delta": 100_000}, 400_000)
        yield Setting(f"{formation}: k=10, δ=100,000", adult, {**thesis, "k": 10, "delta": 100_000}, 300_000)
        yield Setting(f"{formation}: 20 QI", wide, thesis)
        yield Setting(f"{formation}: 10,000 leaves", tall, thesis)
        yield Setting(f"{formation}: 15 rows per person", repeating, thesis)


@dataclass
class Measured:
    """What one setting gave."""

    setting: str
    tuples_per_second: float
    longest_push_ms: float
    longest_push_cpu_ms: float
    memory_mb: float
    loss: float
    suppressed: int


def measure(setting: Setting, repeat: int, share: float) -> Measured:
    """Run one setting several times and keep the best of each number."""
    rows = setting.warm + int(setting.rows * share)
    table = setting.table(rows)
    runs = [_run(table, setting) for _ in range(repeat)]
    pushes, loss, suppressed = np.stack([run[0] for run in runs]), runs[0][1], runs[0][2]
    wall, processor = pushes[:, 0], pushes[:, 1]
    timed = slice(setting.warm // PUSH, None)
    counted = rows - setting.warm // PUSH * PUSH
    return Measured(
        setting.name,
        counted / processor[:, timed].sum(axis=1).min(),
        wall[:, timed].max(axis=1).min() * 1e3,
        processor[:, timed].max(axis=1).min() * 1e3,
        peak_bytes(_prepare, table, setting.parameters) / 1e6,
        loss,
        suppressed,
    )


def _batches(table: Table) -> Iterator[Batch]:
    for begin in range(0, len(table), PUSH):
        rows = slice(begin, begin + PUSH)
        persons = table.persons[rows]
        positions = np.arange(begin, begin + len(persons))
        yield Batch(positions, np.zeros(len(persons)), persons, table.quasi[rows], table.sensitive[rows])


def _run(table: Table, setting: Setting) -> tuple[np.ndarray, float, int]:
    """Wall and processor seconds of every push; mean loss and suppressed rows of the whole stream."""
    engine = Castle(table.schema, words=seeded_words(1), **setting.parameters)
    wall, processor, total, released, suppressed = [], [], 0.0, 0, 0
    for batch in _batches(table):
        clock, spent = time.perf_counter(), time.process_time()
        release = engine.push(batch)
        processor.append(time.process_time() - spent)
        wall.append(time.perf_counter() - clock)
        sizes = np.diff(release.starts)
        total += float(class_loss(Boxes(table.schema, release.lo, release.hi)) @ sizes) if len(release) else 0.0
        released += int(sizes.sum())
        suppressed += len(release.suppressed)
    return np.array([wall, processor]), total / max(released, 1), suppressed


def _prepare(table: Table, parameters: dict[str, object]) -> Callable[[], object]:
    """A run whose peak of memory is the engine's own: its input is there already, its output is thrown away."""
    batches = list(_batches(table))
    engine = Castle(table.schema, words=seeded_words(1), **parameters)
    engine.push(batches[0])

    def run() -> None:
        for batch in batches[1:]:
            engine.push(batch)

    return run


def decoding(rows: int) -> list[tuple[str, float]]:
    """Events per second: parsing JSON alone, and decoding it into an encoded table as the worker does."""
    dataset = adult_like(10, ())
    payloads = [orjson.dumps(event) for event in dataset.arrow(rows).to_pylist()]
    results = []
    for name, call in (
        ("orjson.loads", lambda: [orjson.loads(payload) for payload in payloads]),
        ("encode_events, batches of 1,000", lambda: _encode(dataset.schema, payloads)),
    ):
        times = []
        for _ in range(3):
            spent = time.process_time()
            call()
            times.append(time.process_time() - spent)
        results.append((name, rows / min(times)))
    return results


def _encode(schema: Schema, payloads: list[bytes]) -> None:
    key = PersonKey.random()
    for begin in range(0, len(payloads), PUSH):
        encode_events(schema, payloads[begin : begin + PUSH], person_key=key)


def main() -> None:
    """Measure and print."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--only", default="", help="settings whose name contains this text")

    given = arguments(__doc__, add=add)
    print_machine()
    chosen = [setting for setting in settings() if given.only in setting.name]
    json_speed = decoding(20_000 if given.quick else 100_000)
    base = json_speed[-1][1]
    results = []
    for setting in chosen:
        one = measure(setting, 1 if given.quick else 3, 0.25 if given.quick else 1.0)
        results.append(one)
        print(
            f"{one.setting}: {one.tuples_per_second:,.0f}/s, longest push {one.longest_push_cpu_ms:.1f} ms", flush=True
        )
    print_table("Decoding the same events from JSON", ["way", "events/s"], json_speed)
    print_table(
        "CASTLE",
        ["setting", "tuples/s", "× decoding", "longest push ms", "in CPU ms", "memory MB", "mean loss", "suppressed"],
        [
            [
                one.setting,
                round(one.tuples_per_second),
                one.tuples_per_second / base,
                one.longest_push_ms,
                one.longest_push_cpu_ms,
                one.memory_mb,
                one.loss,
                one.suppressed,
            ]
            for one in results
        ],
    )
    write_json(given.json, "stream_speed", {"castle": [asdict(one) for one in results], "decoding": dict(json_speed)})


if __name__ == "__main__":
    main()
