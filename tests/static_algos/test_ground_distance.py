"""t over numbers with heavy tails: tables rank the values that they have, for algorithms, audits and reports alike."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microdata import Number, PersonSource, Schema, Table, read_published, write_published
from privacy import Groups, TCloseness, audit
from service.report import Asked, table_report
from static_algos import Incognito, Mondrian, Sabre

SCHEMA = Schema(
    PersonSource.ROW,
    (Number("age", 18, 90, integer=True), Number("duration", 0, 3000, integer=True)),
    (Number("balance", -10_000, 110_000, integer=True),),
)


def bank(rows: int = 600) -> Any:
    """Balances as banks have them: most near 0, a few far away, and higher with age."""
    random = np.random.default_rng(7)
    age = random.integers(18, 91, rows)
    balance = np.clip(random.lognormal(3 + age / 15, 0.8, rows) - 200, -10_000, 110_000).astype(np.int32)
    quasi = np.stack([age, random.integers(0, 3001, rows)], axis=1).astype(float)
    return Table(SCHEMA, np.arange(rows), quasi, balance[:, None] + 10_000)


def farthest(table: Any, classes: Any) -> Any:
    """The distance by its definition over the sorted distinct values, one class and one value at a time."""
    column = table.sensitive[:, 0].tolist()
    values = sorted(set(column))
    worst = Fraction(0)
    for one in set(classes.tolist()):
        own = [value for value, its in zip(column, classes.tolist(), strict=True) if its == one]
        ahead = area = Fraction(0)
        for value in values[:-1]:
            ahead += Fraction(own.count(value), len(own)) - Fraction(column.count(value), len(column))
            area += abs(ahead)
        worst = max(worst, area / (len(values) - 1))
    return worst


def test_t_changes_classes_over_heavy_tails_and_bounds_the_distance_by_present_values() -> None:
    table = bank()
    loose = Mondrian(k=10).anonymize(table).classes
    assert farthest(table, loose) > Fraction(4, 10)
    ranked_by_domain = Mondrian(k=10, t={"threshold": 0.2, "ground": "domain"}).anonymize(table).classes
    assert np.array_equal(ranked_by_domain, loose), "in the declared domain nothing is far from anything"
    for algorithm in (
        Mondrian(k=10, t=0.2),
        Sabre(t=0.2, k=10),
        Sabre(t=0.2, k=10, refine="none"),
        Incognito(k=10, t=0.2),
    ):
        classes = algorithm.anonymize(table, seed=1).classes
        assert not np.array_equal(classes, loose)
        assert farthest(table, classes) <= Fraction(1, 5)


def test_the_models_measure_what_the_definition_says() -> None:
    table = bank(200)
    publication = Mondrian(k=10).anonymize(table)
    groups = Groups.of(SCHEMA, table.persons, table.sensitive, publication.classes, len(publication.boxes))
    assert TCloseness(1).achieved(groups).max() == pytest.approx(float(farthest(table, publication.classes)))


def test_audits_and_reports_use_and_name_the_same_distance(tmp_path: Path) -> None:
    table = bank(200)
    publication = Mondrian(k=10).anonymize(table)
    wanted = float(farthest(table, publication.classes))
    write_published(publication, tmp_path / "safe.csv")
    published = read_published(tmp_path / "safe.csv", SCHEMA)
    counts = [np.bincount(table.sensitive[:, 0], minlength=SCHEMA.sensitive[0].size)]  # type: ignore[arg-type]
    for given, seen in ((table, publication), (table, published), (counts, published)):
        (found,) = audit(given, seen, [TCloseness(0.2)]).findings
        assert not found.holds
        assert (found.achieved, found.ground) == (pytest.approx(wanted), "rank of the values that occur")  # type: ignore[comparison-overlap]
    (fixed,) = audit(table, publication, [TCloseness(0.2, "domain")]).findings
    assert (fixed.holds, fixed.ground) == (True, "rank in the declared domain")
    report = table_report(
        publication, [TCloseness(0.2)], asked=Asked(algorithm="mondrian", parameters={}), seconds=1, name="bank"
    )
    (closeness,) = [one for one in report.measured if "closeness" in one.model]
    assert (closeness.worst, closeness.ground) == (pytest.approx(wanted), "rank of the values that occur")  # type: ignore[comparison-overlap]
    assert report.sensitive[0].distance == pytest.approx(wanted)
    assert report.results[0].ground == "rank of the values that occur"
