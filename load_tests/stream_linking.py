"""Whoever ties all published rows of a person together: how many persons are left, with each engine, and what it costs.

    python -m load_tests.stream_linking [--quick] [--json FILE] [--docs FOLDER]

Persons of the real Adult data (or, where it is not there, of a population like it) come back in random order, with the
same quasi-identifiers every time. The attacker knows which rows are the victim's and intersects their boxes. The loss
counts a suppressed row as lost altogether.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from load_tests.generators import adult_like, real_adult
from load_tests.generators.adult_like import PEER_QUASI
from load_tests.harness import arguments, print_machine, print_table, write_json
from load_tests.plot import Panel, write_chart
from load_tests.stream_bursts import loss
from load_tests.stream_quality import Outcome, run
from microdata import Schema, Table
from privacy import Sightings, candidates
from stream_algos import Castle, Cohorts, Engine, SabreW

K, DELTA = 10, 1_000
SIZES = ((30_000, 1), (30_000, 4), (10_000, 4), (2_000, 20))
"""Persons, and how often each of them comes."""
QUASI = {8: PEER_QUASI, 4: ("age", "education", "marital-status", "occupation")}
ENGINES: dict[str, tuple[type[Engine], Mapping[str, Any]]] = {
    "cohorts": (Cohorts, {"k": K, "delay": {"tuples": DELTA}, "company": "standing"}),
    "cohorts, present": (Cohorts, {"k": K, "delay": {"tuples": DELTA}, "company": "present"}),
    "CASTLE": (Castle, {"k": K, "delta": DELTA}),
    "CASTLE, on arrival": (Castle, {"k": K, "delta": DELTA, "formation": "arrival"}),
    "SABRE_W": (SabreW, {"k": K, "t": 0.5, "window": {"size": 2 * DELTA, "advance": DELTA}}),
}
VICTIMS = 300
COLUMNS = (
    "persons",
    "events each",
    "quasi-identifiers",
    "engine",
    "loss",
    "suppressed",
    "left at once",
    "one box",
    "all boxes",
    "least",
    "below k",
    "identified",
)
"""Candidates: the median for one box and for all boxes of a person, the fewest, and the share of persons with few."""


def returning(table: Table, repeats: int, seed: int = 1) -> Table:
    """Everybody in a table so often, in random order."""
    order = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(table)), repeats))
    chosen = table.take(order)
    schema = Schema("person", table.schema.quasi, table.schema.sensitive)
    return Table(schema, order.astype(np.int64), chosen.quasi, chosen.sensitive)


def people(persons: int, quasi: Sequence[str], seed: int = 1) -> Table:
    """So many persons, drawn from Adult."""
    adult = real_adult(quasi, ("salary",), categories="number")
    if adult is None:
        return adult_like(quasi, ("salary",)).table(persons, seed)
    everybody = adult.table(30_162)
    return everybody.take(np.random.default_rng(seed).permutation(len(everybody))[:persons])


def attacked(one: Outcome, victims: int = VICTIMS) -> dict[str, float]:
    """What the attacker is left with, for a sample of the persons with released rows."""
    table, release = one.table, one.release
    whose = table.persons[release.members]
    chosen = np.random.default_rng(7).permutation(np.unique(whose))[:victims]
    own = np.flatnonzero(np.isin(whose, chosen))
    cluster = release.cluster_of()[own]
    seen = Sightings(np.arange(len(table)), table.persons, table.quasi)
    rows = release.members[own], whose[own], release.lo[cluster], release.hi[cluster]
    _, left = candidates(seen, *rows)
    first = np.unique(rows[1], return_index=True)[1]
    positions, persons, lo, hi = rows
    _, single = candidates(seen, positions[first], persons[first], lo[first], hi[first])
    return {
        "one box": float(np.median(single)),
        "all boxes": float(np.median(left)),
        "least": float(left.min()),
        "below k": float((left < K).mean()),
        "identified": float((left == 1).mean()),
    }


def compare(sizes: Sequence[tuple[int, int]], quasi: Sequence[int], engines: Sequence[str]) -> list[dict[str, Any]]:
    """Every engine on every stream."""
    rows = []
    for count in quasi:
        for persons, repeats in sizes:
            table = returning(people(persons, QUASI[count]), repeats)
            for name in engines:
                kind, given = ENGINES[name]
                one = run(kind, table, **given)
                decided = np.repeat(one.release.decided, np.diff(one.release.starts))
                facts = (persons, repeats, count, name, loss(one), one.suppressed / len(table))
                at_once = float((decided == one.release.members).mean())
                rows.append(dict(zip(COLUMNS, (*facts, at_once, *attacked(one).values()), strict=True)))
    return rows


def draw(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """How many are found, and what it costs not to be."""
    own = [row for row in rows if row["quasi-identifiers"] == 8]
    sizes = list(dict.fromkeys((row["persons"], row["events each"]) for row in own))

    def panel(title: str, what: str, scale: float) -> Panel:
        values = {
            name: [scale * row[what] for row in own if row["engine"] == name]
            for name in dict.fromkeys(row["engine"] for row in own)
        }
        return Panel(title, "persons × events", [f"{persons:,} × {events}" for persons, events in sizes], values)

    found = panel("% with fewer than k candidates", "below k", 100.0)
    write_chart(folder / "linking.svg", [found, panel("loss", "loss", 1.0)])


def lines_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table of the page."""
    table = [
        "| persons × events | quasi | algorithm | loss | suppressed | at once | candidates | fewest | below k | found |"
    ]
    table.append("|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        stream = f"| {row['persons']:,} × {row['events each']} | {row['quasi-identifiers']} | {row['engine']} "
        cost = f"| {row['loss']:.3f} | {row['suppressed']:.1%} | {row['left at once']:.0%} "
        left = f"| {row['all boxes']:.0f} | {row['least']:.0f} | {row['below k']:.1%} | {row['identified']:.1%} |"
        table.append(stream + cost + left)
    return table


def write_between(name: str, lines: Sequence[str], page: Path) -> None:
    """What was measured, between its marks on a page."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    page.write_text("\n".join([before + begin, *lines, end + after]), encoding="utf-8")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where picture and table go."""
    parser.add_argument("--docs", type=Path, help="folder of the documentation, to write its picture and table anew")


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = arguments(__doc__, add=add_options)
    print_machine()
    rows = compare(SIZES[2:] if options.quick else SIZES, (8,) if options.quick else tuple(QUASI), tuple(ENGINES))
    print_table(
        f"All rows of a person tied together, k = {K}, δ = {DELTA:,}", COLUMNS, [list(row.values()) for row in rows]
    )
    if options.docs:
        draw(rows, options.docs / "plots")
        write_between("linking", lines_of(rows), options.docs / "choosing.md")
    write_json(options.json, "stream_linking", rows)


if __name__ == "__main__":
    main()
