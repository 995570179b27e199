"""Every benchmark at `--quick` size, one after another, as one JSON and one page, held against the last time.

    python -m load_tests.bench [--only NAME …] [--write]

Each part runs in a process of its own within its share of twenty minutes; one that fails is named on the page, which
then keeps its last numbers. Afterwards the numbers in README and docs are put in anew. Numbers of a machine that did
other things meanwhile are false: the page tells the load.
"""

from __future__ import annotations

import argparse
import ast
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
from load_tests.headlines import GROUPS, collect, fill, text
from load_tests.parameters import draw

PARTS = {
    "static_speed": 110,
    "static_quality": 60,
    "audit_speed": 30,
    "recodings": 60,
    "peers": 120,
    "stream_speed": 100,
    "replay_speed": 100,
    "window_speed": 30,
    "counting_speed": 60,
    "stream_quality": 100,
    "stream_bursts": 20,
    "stream_throughput": 150,
    "stream_faults": 90,
    "stream_endurance": 70,
    "http_load": 70,
    "parameters": 30,
}
"""Every benchmark and the seconds that it may take; all together 20 minutes."""
BY_HAND = frozenset(
    {
        "category_attacks",
        "cohort_restore",
        "cohort_speed",
        "cohort_throughput",
        "column_orders",
        "http_bombs",
        "ratings_speed",
        "risk_speed",
        "stream_attacks",
        "stream_delay",
        "stream_linking",
        "stream_recovery",
        "worker_delay",
    }
)
"""Those that starve or stop what they measure, take minutes for each case, or compare what does not change."""
PAGE, DATA = ROOT / "docs" / "numbers.md", ROOT / "docs" / "numbers.json"
BUSY = 1.0
"""Load per core above which the page warns."""
INTRODUCTION = """\
Written by `make bench` on {date}, at commit {commit}; every number in README and docs comes from here. Each benchmark
of `load_tests/` ran at its `--quick` size; by hand they do more. A loss is between 0 (nothing lost) and 1. anonypy,
anjana and pyCANON ran beside ours, on the same table. Prink, CASTLEGUARD and ARX did not: their numbers were measured
once, on a like machine."""
GLANCE = ("what", "measured", "last time", "goal", "beside it")
LAST_WORDS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="NAME", help="only these, keep the others")
    parser.add_argument("--write", action="store_true", help="measure nothing, write page and texts again")
    given = parser.parse_args()
    record = json.loads(DATA.read_text()) if DATA.exists() else {"benchmarks": {}, "failed": {}, "headlines": {}}
    if not given.write:
        record = measured(given.only or list(PARTS), record)
        DATA.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(record))
    if "parameters" in record["benchmarks"]:
        draw(record["benchmarks"]["parameters"]["results"], PAGE.parent / "plots")
    for path in texts():
        path.write_text(fill(path.read_text(), record["headlines"]))
    print_table("At a glance", GLANCE, [row for group in glance(record).values() for row in group])
    for name, reason in record["failed"].items():
        print(f"FAILED {name}: {reason}")
    print(f"written: {PAGE}, {DATA} and the numbers in README and docs")
    raise SystemExit(bool(record["failed"]))


def texts() -> list[Path]:
    """Pages whose numbers are put in by us."""
    return [ROOT / "README.md", *sorted(path for path in PAGE.parent.glob("*.md") if path != PAGE)]


def measured(names: Sequence[str], before: Mapping[str, Any]) -> dict[str, Any]:
    """What is known after running these parts, and what was known before."""
    facts = machine()
    found, failed = dict(before["benchmarks"]), {}
    started = time.monotonic()
    for place, name in enumerate(names, 1):
        gone = time.monotonic() - started
        print(f"==> {place} of {len(names)}: {name}, at most {PARTS[name]} s; {gone:.0f} s gone", flush=True)
        try:
            found[name] = measure(name, PARTS[name])
        except PartFailedError as error:
            failed[name] = str(error)
            print(f"==> {name} failed: {error}", flush=True)
    last = {"machine": before.get("machine"), "headlines": before["headlines"]}
    headlines = collect({name: one["results"] for name, one in found.items()})
    return {"machine": facts, "failed": failed, "headlines": headlines, "last": last, "benchmarks": found}


class PartFailedError(Exception):
    """A part found nothing; says why."""


def measure(name: str, seconds: float) -> dict[str, Any]:
    """What a benchmark found."""
    with tempfile.TemporaryDirectory() as folder:
        out, said = Path(folder, "out.json"), Path(folder, "said")
        command = [sys.executable, "-m", f"load_tests.{name}", "--quick", "--json", str(out)]
        start = time.monotonic()
        with said.open("wb") as errors:
            process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=errors)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise PartFailedError(f"took longer than {seconds:.0f} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # brokers and workers that it started end with it
                process.wait()
        if status or not out.exists():
            words = said.read_text(errors="replace").strip().splitlines() or ["it said no more"]
            raise PartFailedError(f"ended with status {status}: {words[-1][:LAST_WORDS]}")
        spent = round(time.monotonic() - start, 1)
        return {"about": described(name), "seconds": spent, **json.loads(out.read_text())}


def page(record: Mapping[str, Any]) -> str:
    """The results for people."""
    facts = record["machine"]
    parts = ["# Numbers", INTRODUCTION.format(**facts)]
    if facts["load"] > BUSY * facts["cores"]:
        parts.append(f"**The machine was busy (load {facts['load']}): times below are too long.**")
    parts += [f"**Failed this time: {name}**, {reason}." for name, reason in record["failed"].items()]
    for title, rows in glance(record).items():
        parts += [f"## {title} at a glance", grid(GLANCE, rows)]
    last = record["last"]["machine"]
    parts += [
        "The last time was " + (f"{last['date']}, commit {last['commit']}." if last else "none: this is the first.")
    ]
    parts += ["## Machine", grid(("", ""), [(key.replace("_", " "), value) for key, value in facts.items()])]
    for name, found in record["benchmarks"].items():
        own = found["machine"]
        parts += [f"## {name}", found["about"]]
        parts += [f"Measured {own['date']}, commit {own['commit']}, load {own['load']}; {found['seconds']} s in all."]
        parts += tables(found["results"])
    return "\n\n".join(parts) + "\n"


def glance(record: Mapping[str, Any]) -> dict[str, list[tuple[str, ...]]]:
    """A table for each group of headlines."""
    results = {name: one["results"] for name, one in record["benchmarks"].items()}
    last, groups = record["last"]["headlines"], {}
    for title, headlines in GROUPS.items():
        rows: list[tuple[str, ...]] = []
        for one in headlines:
            value, before = record["headlines"].get(one.key), last.get(one.key)
            if value is None:
                rows.append((one.what, "not measured", "", one.goal(), one.peer(results)))
                continue
            missed = "" if one.reached(value) else " (missed)"
            rows.append(
                (
                    one.what,
                    f"{text(value)} {one.unit}".strip(),
                    "" if before is None else text(before) + _change(before, value),
                    one.goal() + missed,
                    one.peer(results),
                )
            )
        groups[title] = rows
    return groups


def _change(before: float, value: float) -> str:
    return f" ({value / before - 1:+.0%})" if before else ""


def described(name: str) -> str:
    """What a benchmark says of itself, without the lines on how to call it."""
    told = ast.get_docstring(ast.parse((ROOT / "load_tests" / f"{name}.py").read_text())) or ""
    return "\n\n".join(part for part in told.split("\n\n") if not part.startswith("    "))


def tables(results: Any, title: str = "") -> Iterator[str]:
    """Results of any shape as tables of Markdown."""
    if isinstance(results, list):
        yield from _tables_of_list(results, title)
    elif {"columns", "rows"} <= results.keys():
        yield from _titled(results["asked"], results["columns"], results["rows"])
    elif "series" in results:
        rows = list(zip(results["at"], *results["series"].values(), strict=True))
        yield from _titled(f"{results['parameter']}: {results['chart']}", [results["x"], *results["series"]], rows)
    else:
        plain = {key: value for key, value in results.items() if not isinstance(value, Mapping | list)}
        if plain:
            yield from _titled(title, ("", ""), list(plain.items()))
        for key, value in results.items():
            if key not in plain:
                yield from tables(value, key.replace("_", " "))


def _tables_of_list(results: list[Any], title: str) -> Iterator[str]:
    """Tables and charts one by one; anything else is a row."""
    if any({"columns", "series"} & one.keys() for one in results):
        for one in results:
            yield from tables(one)
    elif results:
        rows = [_flat(row) for row in results]
        columns = list(dict.fromkeys(column for row in rows for column in row))
        yield from _titled(title, columns, [[row.get(column, "") for column in columns] for row in rows])


def _titled(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    if title:
        yield f"**{title}**"
    yield grid([column.replace("_", " ") if column.islower() else column for column in columns], rows)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """One line of a table; of a figure it tells how many of its claims show."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if key == "claims":
            flat["claims that show"] = f"{sum(claim['held'] for claim in value)} of {len(value)}"
        elif isinstance(value, Mapping) and key == "case":
            flat |= _flat(value)
        elif isinstance(value, Mapping):
            flat[key] = ", ".join(f"{name} = {show(one)}" for name, one in value.items())
        elif not isinstance(value, list):
            flat[key] = "–" if value is None else value
    return flat


def grid(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table of Markdown."""
    lines = [columns, ["---"] * len(columns), *([show(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    main()
