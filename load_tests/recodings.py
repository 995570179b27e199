"""Top-down recoding beside Mondrian and others under the same models, all minimal generalizations, and blocks.

    python -m load_tests.recodings [--quick] [--json FILE] [--docs FOLDER]

Adult (Adult-like where it is not there) with a health column as in the sources: one of eight diseases for every row, at
random, in four categories of sensitivity. What two theses claim is checked as "as claimed / not as claimed". Times are
processor seconds of single calls. `--docs` also writes a page.

X. Sun (2010), section 3.7; T. Sadad (2012), chapter 5.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from load_tests.generators import ADULT_ROWS, PEER_QUASI, adult_like, real_adult
from load_tests.harness import arguments, machine_line, print_machine, print_table, write_json
from load_tests.quality.claims import Claim
from load_tests.quality.page import add_options, markdown_claims, markdown_table, print_claims, write_page
from microdata import (
    Category,
    Hierarchy,
    Publication,
    Schema,
    Sensitivity,
    Table,
    average_class_size,
    discernibility,
    seeded_words,
)
from privacy import Groups, Guarantee, check
from static_algos import (
    STATIC_ALGORITHMS,
    distortion_ratio,
    minimal_generalizations,
)
from static_algos.full_domain import publish
from static_algos.recoding import recodings
from stream_algos import Batch, Blocks

SECRETS = (("HIV", "Cancer"), ("Phthisis", "Hepatitis"), ("Obesity", "Asthma"), ("Flu", "Indigestion"))
HEALTH = Category(
    "health",
    Hierarchy.flat([value for category in SECRETS for value in category]),
    sensitivity=Sensitivity(SECRETS),
)
ASKED: dict[str, dict[str, Any]] = {
    "k": {},
    "2-sensitive": {"p": 2},
    "2⁺-sensitive": {"p_categories": 2},
    "(2,1)-sensitive": {"p": 2, "alpha_weight": 1},
    "(2⁺,1)-sensitive": {"p_categories": 2, "alpha_weight": 1},
}
OURS, THEIRS, MONDRIAN, CLUSTERS = "top_down", "top_down, as in the theses", "Mondrian", "clustering"
CONTENDERS: dict[str, tuple[str, dict[str, Any]]] = {
    OURS: ("top_down", {}),
    THEIRS: ("top_down", {"prefer": "rows"}),
    MONDRIAN: ("mondrian", {}),
}
COLUMNS = ("asked", "k", "algorithm", "classes", "loss", "distortion", "DM", "C_AVG", "seconds")


def patients(rows: int) -> Table:
    """Adult with a health column."""
    data = real_adult(sensitive=("salary",)) or adult_like(PEER_QUASI, ("salary",))
    table = data.table(ADULT_ROWS)
    table = table.take(np.random.default_rng(1).permutation(len(table))[:rows])
    health = np.random.default_rng(2).integers(0, HEALTH.size, (rows, 1)).astype(np.int32)
    schema = Schema(table.schema.person, table.schema.quasi, (HEALTH,))
    return Table(schema, table.persons, table.quasi, health)


def clustered(table: Table, asked: Mapping[str, Any]) -> Publication:
    """The baseline of the sources: a cluster grows from a row by the nearest others until it keeps the guarantee."""
    models = Guarantee(**asked).models(table.schema)
    left = np.arange(len(table))
    classes = np.full(len(table), -1)
    number = 0
    while len(left) >= asked["k"]:
        order = left[np.argsort(_distances(table, int(left[0]), left), kind="stable")]
        size = asked["k"]
        while size <= len(order) and not _holds(table, models, order[:size]):
            size += 1
        if size > len(order):
            break
        classes[order[:size]] = number
        number += 1
        left = np.setdiff1d(left, order[:size])
    seeds = np.array([np.flatnonzero(classes == one)[0] for one in range(number)])
    for row in left:
        classes[row] = classes[seeds[np.argmin(_distances(table, int(row), seeds))]]
    return Publication.of(table, classes)


def _distances(table: Table, row: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
    """The loss of a box around the row and each of the others."""
    total = np.zeros(len(others))
    for a, attribute in enumerate(table.schema.quasi):
        one, other = table.quasi[row, a], table.quasi[others, a]
        if isinstance(attribute, Category):
            node = attribute.hierarchy.lca(np.minimum(one, other), np.maximum(one, other))
            total += np.where(one == other, 0.0, attribute.hierarchy.leaf_count[node] / attribute.size)
        else:
            total += np.abs(one - other) / max(attribute.high - attribute.low, 1e-9)
    return total


def _holds(table: Table, models: Sequence[Any], rows: NDArray[np.int64]) -> bool:
    label = np.zeros(len(rows), np.int32)
    groups = Groups.of(table.schema, table.persons[rows], table.sensitive[rows], label, 1)
    return bool(check(models, groups)[0])


def measured(table: Table, title: str, k: int, name: str) -> dict[str, Any]:
    """One contender under one guarantee."""
    asked = {"k": k, **ASKED[title]}
    if name == CLUSTERS:
        call = partial(clustered, table, asked)
    else:
        algorithm, given = CONTENDERS[name]
        made = STATIC_ALGORITHMS[algorithm].algorithm(**asked, **given)
        made.anonymize(table.take(np.arange(500)))
        call = partial(made.anonymize, table)
    began = time.process_time()
    publication = call()
    seconds = time.process_time() - began
    sizes = (discernibility(publication.sizes, publication.suppressed), average_class_size(publication.sizes, k))
    found = (len(publication.boxes), publication.loss, distortion_ratio(publication), *sizes, seconds)
    return dict(zip(COLUMNS, (title, k, name, *found), strict=True))


def similarity(table: Table) -> list[dict[str, Any]]:
    """Of all minimal generalizations, those with a class of one category; and the most rows that one exposes."""
    recoded = recodings(table, 4, {})
    mixed = Guarantee(p_categories=2).models(table.schema)
    rows = []
    for title in list(ASKED)[1:]:
        models = Guarantee(k=2, **ASKED[title]).models(table.schema)
        exposed = []
        for one in minimal_generalizations(table, models):
            classes = publish(table, recoded, one.levels, models).classes
            groups = Groups.of(table.schema, table.persons, table.sensitive, classes, one.classes)
            exposed.append(int(groups.rows[~check(mixed, groups)].sum()))
        attacked = sum(count > 0 for count in exposed)
        rows.append({"asked": title, "minimal": len(exposed), "attacked": attacked, "most exposed": max(exposed)})
    return rows


def block_speed(table: Table, rows: int) -> list[dict[str, Any]]:
    """Tuples per second of blocks of 10,000."""
    again = np.arange(rows) % len(table)
    places = np.arange(rows)
    batch = Batch(places, places.astype(np.float64) / 1000, places.copy(), table.quasi[again], table.sensitive[again])
    found = []
    for request in ({"algorithm": "mondrian", "k": 10}, {"algorithm": "top_down", "k": 10}):
        best = np.inf
        for _ in range(2):
            engine = Blocks(table.schema, words=seeded_words(1), size=10_000, table=request)
            began = time.process_time()
            for start in range(0, rows, 1_000):
                engine.push(batch.take(slice(start, start + 1_000)))
            engine.flush()
            best = min(best, time.process_time() - began)
        found.append({"table": request["algorithm"], "tuples_per_second": round(rows / best)})
    return found


Runs = Sequence[Mapping[str, Any]]
PAGE = "recodings.md"
INTRODUCTION = """\
# Recodings and categories

Written by `python -m load_tests.recodings --docs docs`.
Measured: {machine}.
Times are processor seconds of single calls.

Adult with eight quasi-identifiers and a health column as in the sources: one of eight diseases for every row, at
random, in four [categories of sensitivity](categories.md). `top_down` parts rows by the quasi-identifier that saves
most loss; the theses (X. Sun 2010, T. Sadad 2012) by the one that lets most rows go down (`prefer: rows`). Distortion
is the share of the steps in the hierarchies that were climbed, DM discernibility, C_AVG the average class size divided
by k.

## What is claimed
"""


def of(runs: Runs, name: str, column: str, titles: Sequence[str] = tuple(ASKED)) -> list[float]:
    """One column of a contender's runs."""
    return [one[column] for one in runs if one["algorithm"] == name and one["asked"] in titles]


def below(runs: Runs, one: str, other: str, column: str) -> tuple[bool, str]:
    """Whether one contender is below the other wherever both ran."""
    pairs = list(zip(of(runs, one, column), of(runs, other, column), strict=True))
    lower = sum(ours <= theirs for ours, theirs in pairs)
    return lower == len(pairs), f"{one} below {other} at {lower} of {len(pairs)} points"


def claims_of(runs: Runs, small: Runs, attacks: Runs) -> list[Claim]:
    """What the theses say, and what we do."""
    shares = {one["asked"]: f"{one['attacked']} of {one['minimal']}" for one in attacks}
    seen = "; ".join(f"{title}: {share}" for title, share in shares.items())
    plus = sum(one["attacked"] for one in attacks if "⁺" in one["asked"])
    most = {one["asked"]: one["attacked"] / one["minimal"] for one in attacks}
    weights = [np.mean(of(runs, OURS, "distortion", [title])) for title in ("2-sensitive", "(2,1)-sensitive")]
    return [
        Claim("no minimal 2⁺-sensitive table can be attacked by similarity", (plus == 0, seen)),
        Claim(
            "of 2-sensitive ones more can than of (2,1)-sensitive ones",
            (most["2-sensitive"] > most["(2,1)-sensitive"], seen),
        ),
        *(
            Claim(f"top_down has less {what} than clustering", below(small, THEIRS, CLUSTERS, column))
            for what, column in (("distortion", "distortion"), ("discernibility", "DM"), ("average size", "C_AVG"))
        ),
        Claim("distortion falls as α grows", (bool(weights[1] < weights[0]), f"{weights[0]:.3f} → {weights[1]:.3f}")),
        Claim(
            "our choice of a quasi-identifier loses less than theirs", below(runs, OURS, THEIRS, "loss"), thesis=False
        ),
        Claim("top_down loses less than Mondrian", below(runs, OURS, MONDRIAN, "loss"), thesis=False),
    ]


def page(rows: int, few: int, runs: Runs, small: Runs, attacks: Runs, speed: Runs) -> list[str]:
    """The page of the documentation."""
    parts = {
        f"{rows:,} rows": runs,
        f"{few:,} rows, beside the clustering of the sources": small,
        "Similarity in minimal generalizations": attacks,
        "Blocks of 10,000 rows of a stream": speed,
    }
    lines = [*INTRODUCTION.format(machine=machine_line()).splitlines(), ""]
    lines += markdown_claims(claims_of(runs, small, attacks))
    for title, found in parts.items():
        lines += [f"## {title}", "", *markdown_table(list(found[0]), [list(one.values()) for one in found])]
    return lines


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__, add=add_options)
    print_machine()
    whole, some = patients(10_000 if options.quick else ADULT_ROWS), patients(2_000 if options.quick else 10_000)
    ks = (10,) if options.quick else (5, 10, 50)
    runs = [measured(whole, title, k, name) for title in ASKED for k in ks for name in CONTENDERS]
    print_table(f"{len(whole)} rows, 8 quasi-identifiers", COLUMNS, [list(one.values()) for one in runs])
    small = [measured(some, "2⁺-sensitive", k, name) for k in ks for name in (OURS, THEIRS, MONDRIAN, CLUSTERS)]
    print_table(f"{len(some)} rows beside clustering", COLUMNS, [list(one.values()) for one in small])
    attacks = similarity(whole)
    print_table("Similarity in minimal generalizations", list(attacks[0]), [list(one.values()) for one in attacks])
    speed = block_speed(whole, 60_000 if options.quick else 300_000)
    print_table("Blocks of 10,000, tuples/s", list(speed[0]), [list(one.values()) for one in speed])
    claims = claims_of(runs, small, attacks)
    print_claims(claims)
    told = [{"claim": one.text, "answer": one.answer, "seen": one.seen} for one in claims]
    results = {"runs": [*runs, *small], "similarity": attacks, "blocks": speed, "claims": told}
    if options.docs:
        write_page(Path(options.docs) / PAGE, page(len(whole), len(some), runs, small, attacks, speed))
    write_json(options.json, "recodings", results)


if __name__ == "__main__":
    main()
