"""Every benchmark at `--quick` size, one after another, as one JSON and one page, held against the last time.

    python -m load_tests.bench [--only NAME …]

A benchmark is a module of this folder that takes `--quick` and `--json`. Each runs in a process of its own and may take
its share of twenty minutes. Numbers of a machine that did other things meanwhile are false: the page tells the load.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from load_tests.harness import ROOT, machine, print_table, show

LIMIT_SECONDS = 20 * 60
PAGE, DATA = ROOT / "docs" / "numbers.md", ROOT / "docs" / "numbers.json"
BUSY = 1.0
"""Load per core above which the page warns."""


def benchmarks() -> list[str]:
    """Modules of this folder that measure something."""
    own = Path(__file__)
    modules = (path for path in own.parent.glob("*.py") if path != own)
    return sorted(path.stem for path in modules if "arguments(__doc__" in path.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=benchmarks(), metavar="NAME", help="only these, keep the others")
    chosen = parser.parse_args().only or benchmarks()
    before = json.loads(DATA.read_text()) if DATA.exists() else {"benchmarks": {}}
    facts, deadline = machine(), time.monotonic() + LIMIT_SECONDS
    done: dict[str, Any] = {}
    for place, name in enumerate(chosen):
        seconds = (deadline - time.monotonic()) / (len(chosen) - place)
        print(f"==> {name}, at most {seconds:.0f} s", flush=True)
        done[name] = measure(name, seconds)
    result = {"machine": facts, "benchmarks": {**before["benchmarks"], **done}}
    DATA.write_text(json.dumps(result, indent=1) + "\n")
    PAGE.write_text(page(result, before))
    changes = list(compared(result, before))
    if changes:
        print_table("against the last time", ("benchmark", "number", "before", "now"), changes)
    print(f"written: {PAGE} and {DATA}")
    raise SystemExit(any("failed" in one for one in done.values()))


def measure(name: str, seconds: float) -> dict[str, Any]:
    """What a benchmark found, or why it found nothing."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.json")
        command = [sys.executable, "-m", f"load_tests.{name}", "--quick", "--json", str(out)]
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return {"failed": f"took longer than {seconds:.0f} s"}
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # brokers and workers that it started end with it
                process.wait()
        if status or not out.exists():
            return {"failed": f"ended with status {status}"}
        return {"seconds": round(time.monotonic() - start, 1), **json.loads(out.read_text())}


def page(result: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """The results for people."""
    facts = result["machine"]
    parts = [
        "# Numbers",
        "Written by `make bench`. Every benchmark of `load_tests/` ran at its `--quick` size; by hand they do more.",
        grid(("", ""), [(key.replace("_", " "), value) for key, value in facts.items()]),
    ]
    if facts["load"] > BUSY * facts["cores"]:
        parts.append(f"**The machine was busy (load {facts['load']}): times below are too long.**")
    changes = list(compared(result, before))
    if changes:
        parts += ["## Against the last time", grid(("benchmark", "number", "before", "now"), changes)]
    for name, found in result["benchmarks"].items():
        parts.append(f"## {name}")
        if "failed" in found:
            parts.append(f"Failed: {found['failed']}.")
            continue
        parts += [f"{found['machine']['date']}, load {found['machine']['load']}, {found['seconds']} s in all."]
        parts += [grid(("number", "value"), list(numbers(found["results"])))]
    return "\n\n".join(parts) + "\n"


def compared(result: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[tuple[str, str, float, float]]:
    """Numbers that are there both times and differ by more than a tenth."""
    for name, found in result["benchmarks"].items():
        old = dict(numbers(before["benchmarks"].get(name, {}).get("results", {})))
        for key, value in numbers(found.get("results", {})):
            known = old.get(key)
            if (
                isinstance(known, int | float)
                and isinstance(value, int | float)
                and abs(value - known) > 0.1 * abs(known)
            ):
                yield name, key, known, value


def numbers(results: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Results of any shape as flat names and values; a list's entries are told apart by their words."""
    if isinstance(results, Mapping):
        words = [str(value) for value in results.values() if isinstance(value, str)]
        inside = " ".join(filter(None, [path, *words]))
        for key, value in results.items():
            if not isinstance(value, str):
                yield from numbers(value, f"{inside} {key}".strip())
    elif isinstance(results, list):
        for place, value in enumerate(results):
            told = isinstance(value, Mapping) and any(isinstance(one, str) for one in value.values())
            yield from numbers(value, path if told else f"{path} {place}".strip())
    elif results is not None:
        yield path, results


def grid(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table of Markdown."""
    lines = [columns, ["---"] * len(columns), *([show(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
