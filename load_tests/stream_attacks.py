"""What attackers get of our own example of a stream: who ties rows together, and who knows when people act.

    python -m load_tests.stream_attacks [--quick] [--json FILE] [--docs FOLDER]

The orders of `examples/orders` are replayed with each algorithm, with a seed, so that everybody gets these numbers.
They come at a steady pace; the faster it is, the more rows leave in the second that an attacker knows of.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from load_tests.harness import ROOT, arguments, print_machine, print_table, write_json
from service.codec import read_events
from service.policy import Policy, parse_policy
from service.policy.text import parse_text, read_policy_text
from service.replay import Replay

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
    before, _, rest = page.read_text(encoding="utf-8").partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    page.write_text("\n".join([before + MARKS[0], *lines, MARKS[1] + after]), encoding="utf-8")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where the tables go."""
    parser.add_argument("--docs", type=Path, help="folder of the documentation, to write its tables anew")


def main() -> None:
    """Measure, print, and write what was asked for."""
    options = arguments(__doc__, add=add_options)
    print_machine()
    rows = compare(tuple(ENGINES), RATES[-1:] if options.quick else RATES)
    print_table("What attackers get of the orders", tuple(rows[0]), [list(row.values()) for row in rows])
    if options.docs:
        write_tables(rows, options.docs / "threat-model.md")
    write_json(options.json, "stream_attacks", rows)


if __name__ == "__main__":
    main()
