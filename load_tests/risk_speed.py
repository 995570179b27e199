"""How long it takes to find what identifies, and to try every attack of a report.

    python -m load_tests.risk_speed [--quick] [--json FILE]

Sets of up to four fields of Adult (as a library and as a command), all attacks on Adult under Mondrian with k = 10, and
ten million rows of twenty fields, of which samples are looked at. `--quick` takes a tenth of the latter. Where the real
Adult is not there, rows like it are generated.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from load_tests.generators import ADULT_ROWS, PEER_QUASI, adult_like, real_adult
from load_tests.harness import arguments, best_of, peak_bytes, print_machine, print_table, write_json
from microdata import Table, read_fields
from privacy import Identifying, exposures, identifying, raising, trials
from service.report import Asked, table_report
from static_algos import Mondrian

SENSITIVE = ("occupation",)
ROWS = 10_000_000
VALUES = (2, 3, 5, 7, 10, 16, 24, 40, 60, 75, 100, 150, 365, 500, 1_000, 3_000, 10_000, 50_000, 200_000)
"""Values of nineteen fields; the twentieth is a key."""
_PART = 1_000_000


def main() -> None:
    given = arguments(__doc__)
    dataset = real_adult(PEER_QUASI, SENSITIVE) or adult_like(sensitive=SENSITIVE)
    table = dataset.table(ADULT_ROWS)
    with tempfile.TemporaryDirectory() as folder:
        adult, wide = Path(folder) / "adult.parquet", Path(folder) / "wide.parquet"
        pq.write_table(columns(table), adult)
        write_wide(wide, ROWS // 10 if given.quick else ROWS)
        results = [*adult_results(adult), *attack_results(table), *wide_results(wide)]
    print_machine()
    lines = [tuple(result.values()) for result in results]
    print_table(f"{dataset.name}: {len(table):,} rows", ("what", "seconds", "processor", "GB"), lines)
    write_json(given.json, "risk_speed", results)


def columns(table: Table) -> pa.Table:
    """Codes do as well as values: which are equal is all that is asked."""
    schema = table.schema
    quasi = {one.name: table.quasi[:, place] for place, one in enumerate(schema.quasi)}
    sensitive = {one.name: table.sensitive[:, place] for place, one in enumerate(schema.sensitive)}
    return pa.table(quasi | sensitive)


def write_wide(path: Path, rows: int) -> None:
    """Twenty fields of every kind, from two values to one of its own in every row."""
    random = np.random.default_rng(1)
    with pq.ParquetWriter(
        path, pa.schema([*((f"of {size}", pa.int32()) for size in VALUES), ("key", pa.int64())])
    ) as out:
        for start in range(0, rows, _PART):
            count = min(_PART, rows - start)
            fields = [pa.array((random.random(count) ** 2 * size).astype(np.int32)) for size in VALUES]
            out.write_table(pa.table([*fields, pa.array(np.arange(start, start + count))], schema=out.schema))


def adult_results(path: Path) -> list[dict[str, object]]:
    """In memory, and as a command: with its start, imports and kernels."""
    data = read_fields(path)
    found = best_of(partial(identifying, data, size=4))
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "service", "risk", str(path), "--size", "4"], check=True, stdout=subprocess.DEVNULL
    )
    command = time.monotonic() - started
    return [
        result("sets of up to 4 fields", found.best, found.processor),
        result("portcullis risk --size 4", command, None),
    ]


def attack_results(table: Table) -> list[dict[str, object]]:
    """Every attack of a report, and the whole of it."""
    publication, asked = Mondrian(k=10).anonymize(table), Asked(algorithm="mondrian", parameters={})
    calls: list[tuple[str, Callable[[], object]]] = [
        ("attacks on all rows, before and after", partial(exposures, publication)),
        ("attacks with a control, before and after", partial(trials, publication)),
        ("one level more in each column", partial(raising, publication)),
        ("the whole report", partial(table_report, publication, (), asked=asked, seconds=0.0)),
    ]
    timed = [(name, best_of(call)) for name, call in calls]
    return [result(name, one.best, one.processor) for name, one in timed]


def wide_results(path: Path) -> list[dict[str, object]]:
    """Reading, looking, and memory of both."""
    reading = best_of(partial(read_fields, path), repeat=1)
    looking = best_of(partial(identifying, reading.result), repeat=1)
    found: Identifying = looking.result
    name = f"{found.rows:,} rows of 20 fields, sets of up to {found.complete}"
    peak = peak_bytes(look, path) / 1e9
    return [
        result(f"{name}: reading", reading.best, reading.processor),
        result(f"{name}: looking", looking.best, looking.processor),
        {"what": f"{name}: memory", "seconds": None, "processor": None, "gigabytes": peak},
    ]


def look(path: Path) -> Callable[[], object]:
    """Both, for a process of its own."""
    return lambda: identifying(read_fields(path))


def result(what: str, seconds: float, processor: float | None) -> dict[str, object]:
    """One line."""
    return {"what": what, "seconds": seconds, "processor": processor, "gigabytes": None}


if __name__ == "__main__":
    main()
