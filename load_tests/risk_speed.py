"""How long it takes to find what identifies, and to try every attack of a report.

    python -m load_tests.risk_speed [--quick] [--json FILE] [--docs FOLDER]

Sets of up to four fields of Adult (as a library and as a command), all attacks on Adult under Mondrian with k = 10,
counts beside it, and `portcullis risk` on ten million rows of twenty fields as CSV and as Parquet, with the memory that
it takes. `--quick` takes a tenth of the latter. Where the real Adult is not there, rows like it are generated.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from load_tests.generators import ADULT_ROWS, PEER_QUASI, adult_like, real_adult
from load_tests.harness import arguments, best_of, machine_line, print_machine, print_table, show, write_json
from load_tests.stream_linking import write_between
from microdata import Table, read_fields
from privacy import exposures, identifying, raising, reconstruction, trials
from service.report import Asked, table_report
from static_algos import Mondrian

SENSITIVE = ("occupation",)
COLUMNS = ("what", "seconds", "processor", "GB")
ROWS = 10_000_000
VALUES = (2, 3, 5, 7, 10, 16, 24, 40, 60, 75, 100, 150, 365, 500, 1_000, 3_000, 10_000, 50_000, 200_000)
"""Values of nineteen fields; the twentieth is a key."""
_PART = 1_000_000
_AS_INSTALLED = """
import sys

class Absent:  # only our tests need these; where they are, pyarrow and numba load them, which takes a second
    def find_spec(name, *_):
        if name in {"pandas", "scipy"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent)
from service.cli import main
main()
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where the table goes."""
    parser.add_argument("--docs", type=Path, help="folder of the documentation, to write its table anew")


def main() -> None:
    given = arguments(__doc__, add=add_options)
    dataset = real_adult(PEER_QUASI, SENSITIVE) or adult_like(sensitive=SENSITIVE)
    table = dataset.table(ADULT_ROWS)
    rows = ROWS // 10 if given.quick else ROWS
    with tempfile.TemporaryDirectory() as folder:
        adult = Path(folder) / "adult.parquet"
        pq.write_table(columns(table), adult)
        results = [*adult_results(adult), *attack_results(table)]
        for write, ending in ((write_parquet, "parquet"), (write_csv, "csv")):
            wide = Path(folder) / f"wide.{ending}"
            write(wide, rows)
            results.append(command(f"portcullis risk: {rows:,} rows of 20 fields, {ending}", wide))
            wide.unlink()
    print_machine()
    lines = [tuple("" if cell is None else cell for cell in result.values()) for result in results]
    print_table(f"{dataset.name}: {len(table):,} rows", COLUMNS, lines)
    if given.docs:
        shown = [" | ".join(map(show, line)) for line in [COLUMNS, ("---",) * len(COLUMNS), *lines]]
        write_between("risk_speed", [*(f"| {line} |" for line in shown), "", machine_line()], given.docs / "risk.md")
    write_json(given.json, "risk_speed", results)


def columns(table: Table) -> pa.Table:
    """Codes do as well as values: which are equal is all that is asked."""
    schema = table.schema
    quasi = {one.name: table.quasi[:, place] for place, one in enumerate(schema.quasi)}
    sensitive = {one.name: table.sensitive[:, place] for place, one in enumerate(schema.sensitive)}
    return pa.table(quasi | sensitive)


def wide(rows: int) -> Iterator[pa.Table]:
    """Twenty fields of every kind, from two values to one of its own in every row."""
    random = np.random.default_rng(1)
    names = [*(f"of {size}" for size in VALUES), "key"]
    for start in range(0, rows, _PART):
        count = min(_PART, rows - start)
        fields = [pa.array((random.random(count) ** 2 * size).astype(np.int32)) for size in VALUES]
        yield pa.table([*fields, pa.array(np.arange(start, start + count))], names=names)


def write_parquet(path: Path, rows: int) -> None:
    """The rows as Parquet."""
    first = next(wide(1))
    with pq.ParquetWriter(path, first.schema) as out:
        for part in wide(rows):
            out.write_table(part)


def write_csv(path: Path, rows: int) -> None:
    """The rows as CSV."""
    first = next(wide(1))
    with pc.CSVWriter(path, first.schema) as out:
        for part in wide(rows):
            out.write_table(part)


def adult_results(path: Path) -> list[dict[str, object]]:
    """In memory, and as a command: with its start, imports and kernels."""
    data = read_fields(path)
    found = best_of(partial(identifying, data, size=4))
    return [
        result("sets of up to 4 fields", found.best, found.processor),
        command("portcullis risk --size 4", path, "--size", "4"),
    ]


def command(what: str, path: Path, *more: str) -> dict[str, object]:
    """`portcullis risk` as somebody runs it."""
    started = time.monotonic()
    run = [sys.executable, "-c", _AS_INSTALLED, "risk", str(path), *more]
    with subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{what}: exit status {process.returncode}")
    seconds, processor = time.monotonic() - started, used.ru_utime + used.ru_stime
    return {"what": what, "seconds": seconds, "processor": processor, "gigabytes": used.ru_maxrss / 1e6}


def attack_results(table: Table) -> list[dict[str, object]]:
    """Every attack of a report, and the whole of it."""
    publication, asked = Mondrian(k=10).anonymize(table), Asked(algorithm="mondrian", parameters={})
    calls: list[tuple[str, Callable[[], object]]] = [
        ("attacks on all rows, before and after", partial(exposures, publication)),
        ("attacks with a control, before and after", partial(trials, publication)),
        ("one level more in each column", partial(raising, publication)),
        ("counts by age and sex beside it", partial(reconstruction, publication, [["age", "sex"]])),
        ("the whole report", partial(table_report, publication, (), asked=asked, seconds=0.0)),
    ]
    timed = [(name, best_of(call)) for name, call in calls]
    return [result(name, one.best, one.processor) for name, one in timed]


def result(what: str, seconds: float, processor: float | None) -> dict[str, object]:
    """One line."""
    return {"what": what, "seconds": seconds, "processor": processor, "gigabytes": None}


if __name__ == "__main__":
    main()
