"""What attackers get of our own example of a stream: who ties rows together, and who knows when people act.

    python -m load_tests.stream_attacks [--quick] [--json FILE] [--docs FOLDER]

The orders of `examples/orders` are replayed with each algorithm, with a seed, so that everybody gets these numbers.
They come at a steady pace; the faster it is, the more rows leave in the second that an attacker knows of.

Then attackers of `cohorts` who know more than its promise allows for: who had already come, who has left, who is very
active, or two releases of one stream. They attack the orders and an invented stream with arrivals and departures.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from load_tests.harness import ROOT, arguments, print_machine, print_table, write_json
from load_tests.stream_linking import QUASI, people
from load_tests.stream_quality import run
from microdata import Schema, Table
from privacy import Sightings, candidates
from service.codec import read_events
from service.policy import Policy, parse_policy
from service.policy.text import parse_text, read_policy_text
from service.replay import Replay
from stream_algos import Cohorts

ORDERS = ROOT / "examples" / "orders"
K = 10
ENGINES: dict[str, Mapping[str, Any]] = {
    "castle": {"algorithm": "castle", "k": K, "delay": {"tuples": 500}},
    "castle, reuse": {"algorithm": "castle", "k": K, "delay": {"tuples": 100}, "reuse": True, "reuse_bound": 1000},
    "sabre_w": {"algorithm": "sabre_w", "k": K, "t": 0.5, "window": {"size": 500, "advance": 250}},
    "cohorts, present": {"algorithm": "cohorts", "k": K, "delay": {"tuples": 500}, "company": "present"},
    "cohorts, standing": {"algorithm": "cohorts", "k": K, "delay": {"tuples": 500}, "company": "standing"},
    "z": {"algorithm": "z", "z": K, "window": {"tuples": 500}},
}
RATES = (1, 10, 100)
"""Events per second."""
MARKS = ("<!-- stream_attacks -->", "<!-- /stream_attacks -->")
KNOWLEDGE_MARKS = ("<!-- stream_knowledge -->", "<!-- /stream_knowledge -->")
KNOWLEDGE_K = (2, 5, 10)
VICTIMS = 300
PERSONS, EVENTS = 3_000, 30_000
"""Of the invented stream."""
ACTIVE = 0.2
"""The share of persons who count as very active."""
DELAY = {"tuples": 500}


def policy_for(guarantee: Mapping[str, Any]) -> Policy:
    """The policy of the example, with another guarantee."""
    given = parse_text(read_policy_text(ORDERS / "policy.yaml"))
    return parse_policy({**given, "guarantee": dict(guarantee)}, ORDERS)


def attacked(policy: Policy, rate: float) -> dict[str, Any]:
    """What both attacks get of one replay."""
    replay = Replay(policy, seed=1, rate=rate, queries=True)
    replay.run(read_events(ORDERS / "orders.jsonl", policy.schema), io.BytesIO())
    report = replay.report(0.0)
    linked, timing = report.linked, report.timing
    assert linked is not None, "customers come back"
    return {
        "rate": rate,
        "at once": report.at_once,
        "one row": linked.one_row,
        "all rows": linked.median,
        "fewest": linked.fewest,
        "below k": linked.below,
        "found": linked.identified,
        "alone": None if timing is None else timing.rows,
        "others": None if timing is None else timing.median,
        "nobody": None if timing is None else timing.nobody,
    }


def compare(engines: Sequence[str], rates: Sequence[float]) -> list[dict[str, Any]]:
    """Every algorithm; at every pace those whose rows leave alone."""
    rows = []
    for name in engines:
        policy = policy_for(ENGINES[name])
        paces = rates if policy.asked_of_engine.alone is not None else rates[-1:]
        rows += [{"algorithm": name, **attacked(policy, rate)} for rate in paces]
    return rows


Published = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
"""Of each published row its position in the stream, its person, and both ends of its box."""


def orders_table() -> Table:
    """The events of the orders, with persons numbered from 0."""
    schema = policy_for(ENGINES["cohorts, standing"]).schema
    parts = list(read_events(ORDERS / "orders.jsonl", schema))
    persons, quasi, sensitive = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("persons", "quasi", "sensitive")
    )
    numbered = np.unique(persons, return_inverse=True)[1].ravel().astype(np.int64)
    return Table(Schema("person", schema.quasi, schema.sensitive), numbered, quasi, sensitive)


def arrivals_table(persons: int = PERSONS, events: int = EVENTS, seed: int = 1) -> Table:
    """Events of persons who arrive over time, act with a heavy tail of activity, and leave for good."""
    random = np.random.default_rng(seed)
    crowd, times = people(persons, QUASI[4], seed), np.sort(random.uniform(0.0, 1.0, events))
    came = np.linspace(-0.2, 0.9, persons)
    gone = came + 0.1 + random.exponential(0.5, persons)
    activity = 0.05 + random.pareto(1.2, persons)
    whose = np.empty(events, np.int64)
    for start in range(0, events, 200):
        own = slice(start, start + 200)
        there = np.flatnonzero((came <= times[start]) & (gone > times[start]))
        whose[own] = random.choice(there, len(times[own]), p=activity[there] / activity[there].sum())
    numbered = np.unique(whose, return_inverse=True)[1].ravel().astype(np.int64)
    chosen = crowd.take(whose)
    return Table(Schema("person", crowd.schema.quasi, crowd.schema.sensitive), numbered, chosen.quasi, chosen.sensitive)


def published(table: Table, k: int, founders: int | None = None, first: int = 0, last: int | None = None) -> Published:
    """The rows that `cohorts` publishes of a part of a stream."""
    part = table.take(np.arange(len(table))[first:last])
    release = run(Cohorts, part, k=k, delay=DELAY, company="standing", founders=founders).release
    cluster = release.cluster_of()
    return release.members + first, part.persons[release.members], release.lo[cluster], release.hi[cluster]


def fewest_values(table: Table, k: int) -> float:
    """The share of the boxes of `cohorts` with ℓ = 2 whose rows show one sensitive value."""
    release = run(Cohorts, table, k=k, l=2, delay=DELAY, company="standing").release
    boxes, which = np.unique(np.column_stack([release.lo, release.hi]), axis=0, return_inverse=True)
    values = table.sensitive[release.members, 0]
    shown = np.unique(np.column_stack([which.ravel()[release.cluster_of()], values]), axis=0)[:, 0]
    return float((np.bincount(shown, minlength=len(boxes)) == 1).mean())


class Stream:
    """What attackers know of one stream beside its releases."""

    def __init__(self, table: Table) -> None:
        self.table, self.persons = table, int(table.persons.max()) + 1
        self.first, self.last = np.full(self.persons, len(table)), np.zeros(self.persons, np.int64)
        np.minimum.at(self.first, table.persons, np.arange(len(table)))
        np.maximum.at(self.last, table.persons, np.arange(len(table)))
        events = np.bincount(table.persons, minlength=self.persons)
        self.active = events >= np.quantile(events, 1 - ACTIVE)
        self.seen = Sightings(np.arange(len(table)), table.persons, table.quasi)

    def candidates(self, releases: Sequence[Published], knows: str, victims: int) -> NDArray[np.int64]:
        """How many persons each victim may be, to an attacker who ties all of their published rows together."""
        rows, whose, lo, hi = (np.concatenate(columns) for columns in zip(*releases, strict=True))
        there = np.unique(whose)
        if knows == "active":
            there = there[self.active[there]]
        found = []
        for victim in np.random.default_rng(7).permutation(there)[:victims].tolist():
            own = whose == victim
            possible = {
                "came": self.first <= rows[own].min(),
                "left": self.last >= rows[own].max(),
                "active": self.active,
            }.get(knows, np.ones(self.persons, bool))
            kept = possible[self.table.persons]
            seen = Sightings(self.seen.positions[kept], self.seen.persons[kept], self.seen.quasi[kept])
            found.append(int(candidates(seen, rows[own], whose[own], lo[own], hi[own])[1][0]))
        return np.array(found)


def knowing(name: str, table: Table, ks: Sequence[int], victims: int = VICTIMS) -> list[dict[str, Any]]:
    """What attackers get of `cohorts` who know more than its promise allows for."""
    stream, rows, middle = Stream(table), [], len(table) // 2
    for k in ks:
        one = published(table, k)
        halves = [published(table, k, last=middle), published(table, k, first=middle)]
        attackers: tuple[tuple[str, Sequence[Published], str], ...] = (
            ("everybody's values (the promise)", [one], ""),
            ("(a) who had already come", [one], "came"),
            ("(b) who has left since", [one], "left"),
            ("(c) who is very active", [one], "active"),
            ("(d) releases with k and with 2k", [one, published(table, 2 * k)], ""),
            ("(d) releases for two audiences", [one, published(table, k, founders=6 * k)], ""),
            ("(d) both sides of a drain", halves, ""),
        )
        for attacker, releases, knows in attackers:
            left = stream.candidates(releases, knows, victims)
            facts = {"median": float(np.median(left)), "fewest": int(left.min()), "below k": float((left < k).mean())}
            rows.append({"stream": name, "k": k, "attacker knows": attacker, **facts})
        rows.append({"stream": name, "k": k, "attacker knows": "", "one value": fewest_values(table, k)})
    return rows


def knowledge_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tables of the page: shares of victims below k, and of boxes that show one value."""
    streams = list(dict.fromkeys((row["stream"], row["k"]) for row in rows))
    lines = ["| the attacker also knows | covered | " + " | ".join(f"{name}, k = {k}" for name, k in streams) + " |"]
    lines.append("|---|---|" + "---|" * len(streams))
    for attacker in dict.fromkeys(row["attacker knows"] for row in rows if row["attacker knows"]):
        cells = [row for row in rows if row["attacker knows"] == attacker]
        covered = "yes" if "the promise" in attacker else "not covered"
        shares = " | ".join(f"{row['below k']:.1%} (fewest {row['fewest']})" for row in cells)
        lines.append(f"| {attacker} | {covered} | {shares} |")
    shares = " | ".join(f"{row['one value']:.1%}" for row in rows if not row["attacker knows"])
    return [*lines, f"| boxes that show one value with `l: 2` | not covered | {shares} |"]


def write_between(marks: tuple[str, str], lines: Sequence[str], page: Path) -> None:
    """What was measured, between its marks on a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(marks[0])
    _, _, after = rest.partition(marks[1])
    page.write_text("\n".join([before + marks[0], *lines, marks[1] + after]), encoding="utf-8")


def write_tables(rows: Sequence[Mapping[str, Any]], page: Path) -> None:
    """What was measured, between its marks on a page."""
    lines = ["| algorithm | with one row | with all rows | fewest | below k | found |", "|---|---|---|---|---|---|"]
    for name in dict.fromkeys(row["algorithm"] for row in rows):
        one = next(row for row in reversed(rows) if row["algorithm"] == name)
        shares = f"{one['below k']:.1%} | {one['found']:.1%}"
        lines.append(f"| `{name}` | {one['one row']:.0f} | {one['all rows']:.0f} | {one['fewest']} | {shares} |")
    lines += ["", "| algorithm | events a second | others, median | nobody else |", "|---|---|---|---|"]
    for row in rows:
        if row["others"] is not None:
            lines.append(f"| `{row['algorithm']}` | {row['rate']} | {row['others']:g} | {row['nobody']:.1%} |")
    write_between(MARKS, lines, page)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where the tables go."""
    parser.add_argument("--docs", type=Path, help="folder of the documentation, to write its tables anew")


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = arguments(__doc__, add=add_options)
    print_machine()
    rows = compare(tuple(ENGINES), RATES[-1:] if options.quick else RATES)
    print_table("What attackers get of the orders", tuple(rows[0]), [list(row.values()) for row in rows])
    streams = {"orders": orders_table(), "arrivals": arrivals_table()}
    ks = KNOWLEDGE_K[:1] if options.quick else KNOWLEDGE_K
    known = [row for name, table in streams.items() for row in knowing(name, table, ks)]
    columns = ("stream", "k", "attacker knows", "median", "fewest", "below k", "one value")
    print_table(
        "What attackers of cohorts get who know more", columns, [[row.get(c) for c in columns] for row in known]
    )
    if options.docs:
        write_tables(rows, options.docs / "threat-model.md")
        write_between(KNOWLEDGE_MARKS, knowledge_lines(known), options.docs / "threat-model.md")
    write_json(options.json, "stream_attacks", [*rows, *known])


if __name__ == "__main__":
    main()
