"""How long an audit takes, model by model, on Adult as it is: every combination of quasi-identifiers a class.

    python -m load_tests.audit_speed [--quick] [--json FILE]

`load_tests/peers.py` times pyCANON beside it. Where the real data is not there, Adult-like rows are generated.
`--quick` changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from load_tests.generators import ADULT_ROWS, PEER_QUASI, adult_like, real_adult
from load_tests.harness import arguments, best_of, print_machine, print_table, write_json
from microdata import Publication, Table, published_of
from privacy import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Groups,
    KAnonymity,
    MaxShare,
    Model,
    RangeLikeness,
    RecursiveDiversity,
    SemanticLikeness,
    TCloseness,
    audit,
)
from privacy.audit import finding

SENSITIVE = ("occupation", "hours-per-week")
MODELS: tuple[Model, ...] = (
    KAnonymity(10),
    MaxShare(0.1),
    DistinctDiversity(3),
    EntropyDiversity(3),
    RecursiveDiversity(2, 2),
    FrequencyDiversity(3),
    AlphaK(0.3, 10),
    TCloseness(0.2),
    TCloseness(0.2, "equal"),
    BetaLikeness(1, "basic"),
    BetaLikeness(1),
    SemanticLikeness(1, 1, attribute="occupation"),
    RangeLikeness(1, 5, attribute="hours-per-week"),
    DeltaDisclosure(1),
)


def main() -> None:
    given = arguments(__doc__)
    dataset = real_adult(PEER_QUASI, SENSITIVE) or adult_like(sensitive=SENSITIVE)
    table = dataset.table(ADULT_ROWS)
    publication = raw(table)
    groups = groups_of(publication)
    calls: list[tuple[str, Callable[[], object]]] = [
        ("grouping rows by class", partial(groups_of, publication)),
        *((named(model), partial(finding, model, groups)) for model in MODELS),
        ("whole audit, in memory", partial(audit, table, publication, MODELS)),
        ("whole audit, of what was published", partial(audit, table, published_of(publication), MODELS)),
    ]
    rows = [(name, 1_000 * best_of(call, repeat=5).best) for name, call in calls]
    print_machine()
    title = f"{dataset.name}: {len(table):,} rows, {len(publication.boxes):,} classes"
    print_table(title, ("check", "milliseconds"), rows)
    write_json(given.json, "audit_speed", [{"check": name, "milliseconds": best} for name, best in rows])


def named(model: Model) -> str:
    """A model with its parameters."""
    return str(model).replace(", attribute=None", "")


def raw(table: Table) -> Publication:
    """The table as it is: rows with equal quasi-identifiers form a class."""
    return Publication.of(table, np.unique(table.quasi, axis=0, return_inverse=True)[1].ravel())


def groups_of(publication: Publication) -> Groups:
    """The classes as models see them."""
    table = publication.table
    return Groups.of(table.schema, table.persons, table.sensitive, publication.classes, len(publication.boxes))


if __name__ == "__main__":
    main()
