"""Runs of the static algorithms on CENSUS-like data, measured by the independent models and remembered.

Contenders have the names of the literature, so that figures read as there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from load_tests.generators import CENSUS_QUASI, census_like
from load_tests.plot import Panel
from microdata import Category, Hierarchy, Publication, Table
from privacy import BetaLikeness, Groups, TCloseness
from static_algos import STATIC_ALGORITHMS, disclosure_for, median_query_error, olap_divergence

KNN, AK, T_MONDRIAN, T_INCOGNITO = "SABRE-KNN", "SABRE-AK", "tMondrian", "tIncognito"
BUREL, L_MONDRIAN, D_MONDRIAN = "BUREL", "LMondrian", "DMondrian"
K_MONDRIAN = "Mondrian, k only"
REFINED, CLASSES_REFINED = "SABRE, refined", "SABRE-AK, classes refined"
BUREL_REFINED, BUREL_CLASSES_REFINED = "BUREL, refined", "BUREL, classes refined"

CONTENDERS: dict[str, tuple[str, dict[str, Any]]] = {
    KNN: ("sabre", {"neighbours": "exact", "refine": "none"}),
    AK: ("sabre", {"neighbours": "hilbert", "refine": "none"}),
    T_MONDRIAN: ("mondrian", {"cuts": "strict"}),
    T_INCOGNITO: ("incognito", {}),
    REFINED: ("sabre", {"refine": "table"}),
    CLASSES_REFINED: ("sabre", {"refine": "classes"}),
    K_MONDRIAN: ("mondrian", {"cuts": "strict"}),
    BUREL: ("burel", {"refine": "none"}),
    BUREL_REFINED: ("burel", {"refine": "table"}),
    BUREL_CLASSES_REFINED: ("burel", {"refine": "classes"}),
    L_MONDRIAN: ("mondrian", {"cuts": "strict"}),
    D_MONDRIAN: ("mondrian", {"cuts": "strict"}),
}
"""Catalogue name and the parameters that make the contender what it is."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """A publication and what it achieves, as the privacy models measure it."""

    publication: Publication
    seconds: float
    """On the processor, so that other work on the machine does not count."""
    closeness: float
    """The greatest earth mover's distance of a class: "real closeness"."""
    beta: float
    """The greatest relative gain of a value in a class."""

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.publication.boxes)

    @property
    def loss(self) -> float:
        """Mean loss over all rows; a suppressed row counts as lost altogether."""
        suppressed = self.publication.suppressed / max(len(self.publication.table), 1)
        return self.publication.loss * (1 - suppressed) + suppressed


Runs: TypeAlias = dict[str, list[Outcome | None]]
"""By contender, its outcome at each value that was tried; None where it was left out."""


@dataclass
class Lab:
    """Runs contenders, each setting once."""

    quick: bool
    tables: dict[tuple[int, tuple[str, ...]], Table] = field(default_factory=dict)
    outcomes: dict[tuple[str, int, str], Outcome] = field(default_factory=dict)

    errors: dict[tuple[int, int, float], float] = field(default_factory=dict)

    def table(self, rows: int, quasi: Sequence[str] = CENSUS_QUASI) -> Table:
        """CENSUS-like rows; the same persons whichever quasi-identifiers are asked for."""
        key = (rows, tuple(quasi))
        if key not in self.tables:
            self.tables[key] = census_like(quasi).table(rows, seed=1)
        return self.tables[key]

    def run(self, name: str, table: Table, **given: Any) -> Outcome:
        """Anonymize with a contender; `given` are t or beta, k and what else its algorithm takes."""
        key = (name, id(table), json.dumps(given, sort_keys=True))
        if key not in self.outcomes:
            if not any(known[0] == name for known in self.outcomes):
                anonymize(name, table, given)  # compiles or loads the kernels
            start = time.process_time()
            publication = anonymize(name, table, given)
            self.outcomes[key] = measured(publication, time.process_time() - start)
        return self.outcomes[key]

    def error(self, one: Outcome, predicates: int, selectivity: float) -> float:
        """Median relative error of counting queries, in percent."""
        key = (id(one), predicates, selectivity)
        if key not in self.errors:
            self.errors[key] = 100 * median_query_error(
                one.publication, predicates=predicates, selectivity=selectivity, queries=1_000 if self.quick else 2_000
            )
        return self.errors[key]

    def divergence(self, one: Outcome, level: int) -> float:
        """Divergence of the data cubes at this level of the lattice."""
        return olap_divergence(one.publication, level)

    def sweep(
        self,
        names: Sequence[str],
        values: Sequence[Any],
        setting: Callable[[Any], tuple[Table, dict[str, Any]]],
        skip: Callable[[str, Any], bool] = lambda _name, _value: False,
    ) -> Runs:
        """Run every contender at every value but those to skip; `setting` gives the table and the parameters there."""
        runs: Runs = {name: [] for name in names}
        for value in values:
            table, given = setting(value)
            for name in names:
                runs[name].append(None if skip(name, value) else self.run(name, table, **given))
        return runs


def anonymize(name: str, table: Table, given: Mapping[str, Any]) -> Publication:
    """Anonymize with a contender."""
    algorithm, fixed = CONTENDERS[name]
    parameters = dict(given)
    if name == D_MONDRIAN:
        parameters["disclosure"] = disclosure_for(parameters.pop("beta"), np.bincount(table.sensitive[:, 0]))
    return STATIC_ALGORITHMS[algorithm].algorithm(**fixed, **parameters).anonymize(table, seed=1)


def measured(publication: Publication, seconds: float) -> Outcome:
    """What a publication achieves, by the models of `privacy`."""
    table = publication.table
    groups = Groups.of(table.schema, table.persons, table.sensitive, publication.classes, len(publication.boxes))
    return Outcome(
        publication,
        seconds,
        closeness=float(TCloseness(1).achieved(groups).max()),
        beta=float(BetaLikeness(1, kind="basic").achieved(groups).max()),
    )


def panel(
    title: str, x_label: str, x: Sequence[Any], runs: Runs, measure: Callable[[Outcome], float], *, log: bool = False
) -> Panel:
    """One measure of all runs as a chart."""
    series = {name: [None if one is None else measure(one) for one in line] for name, line in runs.items()}
    return Panel(title, x_label, x, series, log=log)


def loss_and_time(x_label: str, x: Sequence[Any], runs: Runs) -> tuple[Panel, Panel]:
    """The two charts that most figures of the thesis have."""
    return panel("loss", x_label, x, runs, loss), panel("seconds", x_label, x, runs, seconds, log=True)


def at(runs: Runs, place: int) -> dict[str, Outcome]:
    """The outcomes at one of the values that were tried."""
    return {name: outcome for name, line in runs.items() if (outcome := line[place]) is not None}


def spread(
    title: str,
    x_label: str,
    x: Sequence[Any],
    outcomes: Mapping[str, Outcome],
    measure: Callable[[Outcome, Any], float],
) -> Panel:
    """One run of each contender, measured in several ways, as a chart."""
    return Panel(title, x_label, x, {name: [measure(one, value) for value in x] for name, one in outcomes.items()})


def loss(one: Outcome) -> float:
    """Mean loss of an outcome."""
    return one.loss


def seconds(one: Outcome) -> float:
    """Time of an outcome."""
    return one.seconds


def salary_tree(table: Table, fanout: int) -> Table:
    """The same rows with salary as a category, under a hierarchy over its sorted values with this fanout."""
    (salary,) = table.schema.sensitive
    paths = [[str(value)] for value in range(salary.size or 0)]
    width = fanout
    while width < len(paths):
        for value, path in enumerate(paths):
            path.append(f"{value // width} of width {width}")
        width *= fanout
    tree = Hierarchy.from_rows([*path, "*"] for path in paths)
    return replace(table, schema=replace(table.schema, sensitive=(Category(salary.name, tree),)))
