"""Other libraries for tables beside ours: anonypy and anjana anonymize, pyCANON checks, all on the same table.

    python -m load_tests.peers [--quick] [--json FILE] [--limit SECONDS]

Adult (or Adult-like rows) with eight quasi-identifiers, salary sensitive, k = 10. Each peer comes from PyPI into an
environment of its own below the cache folder (`PORTCULLIS_CACHE`) and runs in a process of its own; one that does not
install, fails or takes too long is listed with the reason. What peers made is measured and audited by us: the loss is
that of the tightest boxes around their classes, which flatters a peer that generalizes further. `--quick` changes
nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv

from load_tests.audit_speed import groups_of, named, raw
from load_tests.generators import ADULT_MISSING, ADULT_ROWS, PEER_QUASI, Dataset, adult_like, real_adult
from load_tests.harness import arguments, best_of, print_machine, print_table, write_json
from microdata import Category, Hierarchy, Publication, Table, interval_hierarchy
from privacy import BetaLikeness, Finding, KAnonymity, Model, TCloseness, audit
from privacy.audit import finding
from static_algos import Burel, Mondrian, Sabre, StaticAlgorithm

CACHE = Path(os.environ.get("PORTCULLIS_CACHE", Path.home() / ".cache" / "portcullis")) / "peers"
PROGRAMS = Path(__file__).parent / "peer_programs"
SENSITIVE = "salary"
LIMIT = 150.0
INSTALL_LIMIT = 300.0
LAST_WORDS = 160

# Versions are fixed, so that two runs compare ours and not theirs; anonypy says nothing of the pandas that it needs.
REQUIREMENTS = {
    "anonypy": ("anonypy==0.2.1", "pandas<3"),
    "anjana": ("anjana==1.2.3",),
    "pycanon": ("pycanon==1.3.6",),
}

Row = dict[str, Any]


@dataclass(frozen=True)
class Contest:
    """A guarantee: which of ours answers it, and which peers offer it."""

    title: str
    asked: Mapping[str, float]
    ours: StaticAlgorithm
    models: tuple[Model, ...]
    peers: tuple[str, ...]


CONTESTS = (
    Contest("k = 10", {"k": 10}, Mondrian(k=10), (KAnonymity(10),), ("anonypy", "anjana")),
    Contest(
        "k = 10, t = 0.2",
        {"k": 10, "t": 0.2},
        Sabre(k=10, t=0.2),
        (KAnonymity(10), TCloseness(0.2)),
        ("anonypy", "anjana"),
    ),
    Contest(
        "k = 10, β = 1",
        {"k": 10, "beta": 1},
        Burel(k=10, beta=1.0),
        (KAnonymity(10), BetaLikeness(1)),
        ("anjana",),
    ),
)
CHECKS: dict[str, Model] = {"k": KAnonymity(10), "t": TCloseness(0.2, "equal"), "beta": BetaLikeness(1, "basic")}
COLUMNS = ("asked", "who", "seconds", "classes", "suppressed", "loss", "holds", "achieved", "failed")


class PeerFailedError(Exception):
    """A peer gave no result; says why."""


class Peers:
    """The peers' environments, and the table as they read it."""

    def __init__(self, dataset: Dataset, rows: int, folder: Path, limit: float) -> None:
        self.folder, self.limit = folder, limit
        raw_rows = dataset.arrow(rows)
        pyarrow.csv.write_csv(raw_rows.select([*PEER_QUASI, SENSITIVE]), folder / "table.csv")
        hierarchies = {attribute.name: _levels(_hierarchy(attribute)) for attribute in dataset.schema.quasi}
        self.description = {"quasi": list(PEER_QUASI), "sensitive": SENSITIVE, "hierarchies": hierarchies}

    def answer(self, peer: str, **asked: Any) -> dict[str, Any]:
        """What a peer found."""
        python = environment(peer)
        question, answer = self.folder / "asked.json", self.folder / "answer.json"
        question.write_text(json.dumps({**self.description, **asked}))
        command = [python, PROGRAMS / f"run_{peer}.py", self.folder / "table.csv", question, answer]
        run(command, self.limit)
        found: dict[str, Any] = json.loads(answer.read_text())
        return found


def run(command: list[Any], seconds: float) -> None:
    """Run to the end, within the time."""
    try:
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, errors="replace", check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise PeerFailedError(f"not done after {seconds:.0f} s") from None
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise PeerFailedError(f"ended with status {done.returncode}: {words[-1][:LAST_WORDS]}")


def environment(peer: str) -> Path:
    """The Python of a peer's environment, made the first time."""
    folder = CACHE / REQUIREMENTS[peer][0].replace("==", "-")
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        print(f"{peer}: an environment in {folder}", flush=True)
        run([sys.executable, "-m", "venv", "--clear", folder], INSTALL_LIMIT)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, *REQUIREMENTS[peer]], INSTALL_LIMIT)
        ready.touch()
    return python


def _hierarchy(attribute: Any) -> Hierarchy:
    """Numbers get intervals: anjana knows nothing but hierarchies."""
    if isinstance(attribute, Category):
        return attribute.hierarchy
    return interval_hierarchy(attribute.low, attribute.high)


def _levels(hierarchy: Hierarchy) -> list[list[str]]:
    """Leaf to root, every way of the same length."""
    rows = hierarchy.rows()
    longest = max(map(len, rows))
    return [[*row, *row[-1:] * (longest - len(row))] for row in rows]


def judged(contest: Contest, who: str, seconds: float, publication: Publication) -> Row:
    """A row of the table: what was made of it, by our measure and our audit."""
    found = audit(publication.table, publication, contest.models)
    return {
        "asked": contest.title,
        "who": who,
        "seconds": seconds,
        "classes": found.classes,
        "suppressed": found.suppressed,
        "loss": found.loss,
        "holds": found.holds and found.classes > 0,
        "achieved": ", ".join(f"{one.model} {one.achieved:.3g}" for one in found.findings if one.achieved is not None),
    }


def compete(contest: Contest, table: Table, peers: Peers) -> list[Row]:
    """Ours and theirs on one guarantee."""
    timing = best_of(lambda: contest.ours.anonymize(table, seed=1))
    ours = f"portcullis, {type(contest.ours).__name__}"
    rows = [judged(contest, ours, timing.best, timing.result)]
    for peer in contest.peers:
        name = " ".join(REQUIREMENTS[peer][0].split("=="))
        try:
            found = peers.answer(peer, **contest.asked)
        except PeerFailedError as error:
            rows.append({"asked": contest.title, "who": name, "failed": str(error)})
        else:
            rows.append(judged(contest, name, found["seconds"], Publication.of(table, np.array(found["classes"]))))
        told(rows[-1])
    return rows


def _checked(model: Model, publication: Publication) -> Finding:
    return finding(model, groups_of(publication))


def check(table: Table, peers: Peers) -> list[Row]:
    """How long checking the raw table takes, with pyCANON and with our models, and whether both say the same."""
    publication, rows = raw(table), []
    for key, model in CHECKS.items():
        timing = best_of(partial(_checked, model, publication))
        row: Row = {"check": named(model), "classes": len(publication.boxes), "ours, seconds": timing.best}
        try:
            found = peers.answer("pycanon", check=key)
        except PeerFailedError as error:
            row["failed"] = f"pycanon {error}"
        else:
            achieved = timing.result.achieved
            same = achieved is not None and abs(achieved - found["achieved"]) < 1e-6 * max(1.0, abs(achieved))
            row |= {"pycanon, seconds": found["seconds"], "achieved": achieved, "pycanon says": found["achieved"]}
            row["same answer"] = same
        rows.append(row)
        told(row)
    return rows


def told(row: Row) -> None:
    """Progress."""
    print(f"{time.strftime('%H:%M:%S')} {row}", flush=True)


def cells(rows: list[Row], columns: tuple[str, ...]) -> list[list[Any]]:
    return [[row.get(column, "–") for column in columns] for row in rows]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each run of a peer")


def main() -> None:
    given = arguments(__doc__, add=add_options)
    print_machine()
    dataset = real_adult(sensitive=(SENSITIVE,))
    if dataset is None:
        print(f"{ADULT_MISSING}; Adult-like rows instead.")
        dataset = adult_like(PEER_QUASI, (SENSITIVE,))
    table = dataset.table(ADULT_ROWS)
    with tempfile.TemporaryDirectory() as folder:
        peers = Peers(dataset, ADULT_ROWS, Path(folder), given.limit)
        anonymizers = [row for contest in CONTESTS for row in compete(contest, table, peers)]
        checkers = check(table, peers)
    columns = tuple(column for column in COLUMNS if any(column in row for row in anonymizers))
    print_table(f"{dataset.name}, {ADULT_ROWS:,} rows, 8 quasi-identifiers", columns, cells(anonymizers, columns))
    columns = tuple(dict.fromkeys(column for row in checkers for column in row))
    print_table("Checking the raw table", columns, cells(checkers, columns))
    results = {"data": dataset.name, "rows": ADULT_ROWS, "anonymizers": anonymizers, "checkers": checkers}
    write_json(given.json, "peers", results)


if __name__ == "__main__":
    main()
