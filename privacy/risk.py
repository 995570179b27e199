"""Re-identification risk, before and after publication.

Three attackers: the prosecutor knows that a person is in the table and looks for the row; the journalist knows only a
population that the table was drawn from and wants anybody; the marketer links everybody and counts hits. The risk of a
row is 1 / the number of distinct persons it could be about.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata import Publication, Table
from privacy.attacks import linking
from privacy.exact import Real, exact
from privacy.model import Groups


@dataclass(frozen=True)
class Risk:
    """Risk over all published rows."""

    highest: float
    average: float
    above: float
    """Share of the rows whose risk is above the threshold."""
    threshold: float


@dataclass(frozen=True)
class Risks:
    """Risk from all three attackers."""

    prosecutor: Risk
    journalist: Risk | None
    """None without a population table."""
    marketer: float
    """Share of the rows that linking everybody is expected to get right; with the population where there is one."""


def risks(publication: Publication, population: Table | None = None, threshold: Real = 0.2) -> Risks:
    """Risk of a publication, as it is published."""
    table, count = publication.table, len(publication.boxes)
    groups = Groups.of(table.schema, table.persons, table.sensitive, publication.classes, count)
    prosecutor = risk_of(groups.persons, groups.rows, threshold)
    journalist = None
    if population is not None:
        known = linking(publication.boxes.widened(), groups.rows, population).persons
        # Whoever is in the table is in the population, also where the given one is incomplete.
        journalist = risk_of(np.maximum(known, groups.persons), groups.rows, threshold)
    return Risks(prosecutor, journalist, (journalist or prosecutor).average)


def risks_before(table: Table, population: Table | None = None, threshold: Real = 0.2) -> Risks:
    """Risk of publishing the table as it is: rows with equal quasi-identifiers hide each other."""
    classes = np.unique(table.quasi, axis=0, return_inverse=True)[1].ravel()
    return risks(Publication.of(table, classes), population, threshold)


def risk_of(persons: NDArray[np.int64], rows: NDArray[np.int64], threshold: Real = 0.2) -> Risk:
    """Risk of classes with so many rows, each of which could be about so many persons."""
    total = int(rows.sum())
    if not total:
        return Risk(0.0, 0.0, 0.0, float(threshold))
    limit = exact(threshold)
    above = persons * limit.numerator < limit.denominator
    return Risk(
        highest=float(1 / persons.min()),
        average=float((rows / persons).sum() / total),
        above=float(rows[above].sum() / total),
        threshold=float(threshold),
    )
