"""What every benchmark shares: arguments, timing, peak memory, tables on the screen, JSON with machine and versions."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar
from unittest.mock import patch

from rich.console import Console
from rich.table import Table as Grid

Result = TypeVar("Result")
ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("numpy", "numba", "pyarrow")


def arguments(description: str | None, *, add: Callable[[argparse.ArgumentParser], object] = id) -> argparse.Namespace:
    """Command-line arguments: `--json FILE`, `--quick`, and what `add` puts beside them."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    parser.add_argument("--quick", action="store_true", help="a shorter run over fewer settings")
    add(parser)
    return parser.parse_args()


def machine() -> dict[str, Any]:
    """Where, when and with what the numbers were measured."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
    }


def machine_line() -> str:
    """The same on one line."""
    facts = machine()
    libraries = ", ".join(f"{name} {facts[name]}" for name in ("python", *LIBRARIES))
    return (
        f"{facts['date']} · {facts['processor']}, {facts['cores']} cores, {facts['memory_gib']} GiB, "
        f"load {facts['load']} · {libraries} · {facts['commit']}"
    )


def print_machine() -> None:
    """Say under which conditions the numbers below came about."""
    Console(highlight=False, soft_wrap=True).print(machine_line())


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, note: str = "") -> None:
    """A table on the screen; numbers stand to the right."""
    grid = Grid(title=title, title_justify="left", caption=note or None, caption_justify="left")
    for position, column in enumerate(columns):
        numeric = all(isinstance(row[position], int | float) for row in rows)
        grid.add_column(column, justify="right" if numeric else "left")
    for row in rows:
        grid.add_row(*(show(value) for value in row))
    Console(highlight=False, width=None if Console().is_terminal else 160).print(grid)


def write_json(path: Path | None, name: str, results: Any) -> None:
    """Results with the machine they were measured on; nothing where no path was given."""
    if path is None:
        return
    path.write_text(json.dumps({"benchmark": name, "machine": machine(), "results": results}, indent=1) + "\n")
    print(f"written: {path}")


@dataclass(frozen=True)
class Timing(Generic[Result]):
    """Seconds of a call. `first` includes whatever compilation was not cached."""

    first: float
    best: float
    processor: float
    """Least time on the processor: what `best` would be if nobody else used the machine."""
    result: Result


def best_of(call: Callable[[], Result], repeat: int = 3) -> Timing[Result]:
    """Call once, then `repeat` times more, and keep the least: other work on a machine only ever adds time."""
    first, _, result = _timed(call)
    times = [_timed(call)[:2] for _ in range(max(repeat, 1))]
    return Timing(first, min(wall for wall, _ in times), min(processor for _, processor in times), result)


def peak_bytes(prepare: Callable[..., Callable[[], object]], *given: Any) -> int:
    """Bytes that a call takes at its peak, over what was there before, in a process of its own.

    `prepare` is a function of a module; with `given` it sets everything up there and returns the call.
    """
    return _elsewhere(_measure_peak, prepare, given)


def first_seconds(prepare: Callable[..., Callable[[], object]], *given: Any) -> tuple[float, float]:
    """Seconds of a new process's first call: with kernels still to be compiled, and with them in the cache."""
    with tempfile.TemporaryDirectory() as cache, patch.dict(os.environ, {"NUMBA_CACHE_DIR": cache}):
        return _elsewhere(_measure_first, prepare, given), _elsewhere(_measure_first, prepare, given)


def _elsewhere(measure: Callable[..., Result], *given: Any) -> Result:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, given)


def _measure_peak(prepare: Callable[..., Callable[[], object]], given: Sequence[Any]) -> int:
    call = prepare(*given)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the preparation
    before = _status("VmRSS")
    call()
    return _status("VmHWM") - before


def _measure_first(prepare: Callable[..., Callable[[], object]], given: Sequence[Any]) -> float:
    return _timed(prepare(*given))[0]


def _status(field: str) -> int:
    lines: Mapping[str, str] = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[field].split()[0]) * 1024


def _timed(call: Callable[[], Result]) -> tuple[float, float, Result]:
    """Seconds on the clock and on the processor, and the result."""
    start, busy = time.perf_counter(), time.process_time()
    result = call()
    return time.perf_counter() - start, time.process_time() - busy, result


def show(value: object) -> str:
    """A cell of a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown commit"
