"""How fast `portcullis replay` is from file to file, beside the engine alone on the same rows.

    python -m load_tests.replay_speed [--quick] [--json FILE]

The stream is Adult with the eight quasi-identifiers that peers were measured with (real where it is there, otherwise
like it), over and over with new persons; k = 10, δ = 200. The whole command runs in a process of its own. What starting
takes (the process, the policy, kernels from their cache) is told apart: it is what a replay of a few events takes. Two
threads share the work, so that the speed by the clock needs two idle cores; the time on the processor tells what other
work on the machine changes less. Runs take turns, and the best of each counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from load_tests.generators import PEER_QUASI, adult_like, real_adult
from load_tests.generators.dataset import PERSON, Dataset
from load_tests.generators.real_adult import ADULT_ROWS
from load_tests.harness import arguments, print_machine, print_table, write_json
from microdata import Attribute, Category, Schema, Table, seeded_words
from microdata.sinks import write_columns
from stream_algos import Batch, Castle

ASKED = {"k": 10, "delay": {"tuples": 200}}
PUSH = 1 << 14
TIMES = 20
"""How often the rows of Adult come by."""
FEW = 200
"""Events of the replay that shows what starting takes."""
FILES = ("events.jsonl", "events.csv")


@dataclass
class Measured:
    """One kind of file, with or without a sensitive attribute that leaves with every row."""

    input: str
    fields: str
    events: int
    events_per_second: float
    """By the clock, without what starting takes."""
    engine_per_second: float
    """The engine alone."""
    share_of_engine: float
    processor_us: float
    """On the processor, per event, in both threads together; without what starting takes."""
    engine_us: float
    start_seconds: float
    command_seconds: float
    """All of it."""


def adult(sensitive: tuple[str, ...]) -> Dataset:
    """Adult with the eight quasi-identifiers of peers."""
    return real_adult(PEER_QUASI, sensitive) or adult_like(PEER_QUASI, sensitive)


def repeated(dataset: Dataset, times: int) -> tuple[Table, pa.Table]:
    """The rows so many times over, each time of other persons: encoded, and as values."""
    table, values = dataset.table(ADULT_ROWS), dataset.arrow(ADULT_ROWS)
    rows = np.tile(np.arange(ADULT_ROWS), times)
    persons = np.arange(len(rows))
    place = values.column_names.index(PERSON)
    events = values.take(pa.array(rows)).set_column(place, PERSON, pa.array(persons))
    return Table(table.schema, persons, table.quasi[rows], table.sensitive[rows]), events


def write_policy(schema: Schema, folder: Path) -> Path:
    """A policy for CASTLE over this schema, with its hierarchies beside it."""
    roles = {"quasi": schema.quasi, "sensitive": schema.sensitive}
    fields = {role: {one.name: _described(one, folder) for one in ones} for role, ones in roles.items() if ones}
    policy = {"name": "adult", "schema": {"person": PERSON, **fields}, "guarantee": {"algorithm": "castle", **ASKED}}
    path = folder / "policy.yaml"
    path.write_text(json.dumps(policy))
    return path


def _described(attribute: Attribute, folder: Path) -> dict[str, Any]:
    if isinstance(attribute, Category):
        path = folder / f"{attribute.name}.csv"
        path.write_text("\n".join(";".join(row) for row in attribute.hierarchy.rows()) + "\n")
        return {"type": "category", "hierarchy": path.name}
    return {"type": "number", "min": attribute.low, "max": attribute.high, "integer": attribute.integer}


def replayed(events: Path, policy: Path) -> tuple[float, float]:
    """Seconds of one command by the clock and on the processor."""
    out = events.with_name("out.jsonl")
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "service", "replay", events, "--policy", policy, "--out", out]
    start = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the replay ended with status {process.returncode}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime


def pushed(table: Table) -> float:
    """Seconds of the engine alone on the processor, which it has for itself: the kernels run in one thread."""
    engine = Castle(table.schema, words=seeded_words(1), **ASKED)
    start = time.process_time()
    for first in range(0, len(table), PUSH):
        own = slice(first, first + PUSH)
        positions = np.arange(len(table))[own]
        engine.push(Batch(positions, positions / 1000, table.persons[own], table.quasi[own], table.sensitive[own]))
    engine.flush()
    return time.process_time() - start


def measure(sensitive: tuple[str, ...], repeat: int) -> Iterable[Measured]:
    """Each kind of file, whole and in little, and the engine alone, in turns."""
    table, events = repeated(adult(sensitive), TIMES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        policy = write_policy(table.schema, folder)
        for file in FILES:
            write_columns(events.schema, events.to_batches(), folder / file)
            write_columns(events.schema, events.slice(0, FEW).to_batches(), folder / f"few-{file}")
        replayed(folder / f"few-{FILES[0]}", policy)  # compiles what is not cached yet
        pushed(table)
        engine, whole, few = [], {file: [] for file in FILES}, {file: [] for file in FILES}  # type: ignore[var-annotated]
        for _ in range(repeat):
            engine.append(pushed(table))
            for file in FILES:
                few[file].append(replayed(folder / f"few-{file}", policy))
                whole[file].append(replayed(folder / file, policy))
    for file in FILES:
        yield _measured(file, sensitive, len(table), whole[file], few[file], min(engine))


def _measured(
    file: str,
    sensitive: tuple[str, ...],
    events: int,
    whole: list[tuple[float, float]],
    few: list[tuple[float, float]],
    engine: float,
) -> Measured:
    (wall, processor), (start, start_processor) = np.min(whole, axis=0), np.min(few, axis=0)
    return Measured(
        input="JSON lines" if file.endswith(".jsonl") else "CSV",
        fields=f"{len(PEER_QUASI)} quasi" + (f" + {len(sensitive)} sensitive" if sensitive else ""),
        events=events,
        events_per_second=events / (wall - start),
        engine_per_second=events / engine,
        share_of_engine=engine / (wall - start),
        processor_us=1e6 * (processor - start_processor) / events,
        engine_us=1e6 * engine / events,
        start_seconds=start,
        command_seconds=wall,
    )


def main() -> None:
    """Measure and print."""
    given = arguments(__doc__)
    print_machine()
    cases: list[tuple[str, ...]] = [()] if given.quick else [(), ("salary",)]
    results = [one for sensitive in cases for one in measure(sensitive, repeat=3 if given.quick else 5)]
    rows = [list(asdict(one).values()) for one in results]
    print_table("portcullis replay, file to file", [name.replace("_", " ") for name in asdict(results[0])], rows)
    write_json(given.json, "replay_speed", [asdict(one) for one in results])


if __name__ == "__main__":
    main()
