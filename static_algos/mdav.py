"""MDAV: groups of rows that lie close together in all quasi-identifiers, each shown as its mean.

Maximum distance to average vector. The row that is farthest from the mean and the row that is farthest from that one
each take their nearest neighbours, until k persons are together; and so on with the rows that are left. Numbers stay
numbers: what is published is the mean of a group, not an interval. Every attribute counts alike, because it is divided
by its standard deviation; a category is the place of its leaf in the hierarchy. Time grows with the square of the rows.

Domingo-Ferrer and Mateo-Sanz, Practical Data-Oriented Microaggregation for Statistical Disclosure Control (2002);
X. Sun (2010), section 5.2.

>>> import numpy as np
>>> from microdata import Number, PersonSource, Schema, Table, published_columns
>>> schema = Schema(PersonSource.ROW, (Number("age", 0, 99, integer=True),))
>>> ages = np.array([[21.0], [22.0], [26.0], [61.0], [63.0], [71.0]])
>>> table = Table(schema, np.arange(6), ages, np.empty((6, 0), np.int32))
>>> publication = Mdav(k=3).anonymize(table)
>>> sorted(published_columns(publication)["age"].to_pylist())
[23, 23, 23, 65, 65, 65]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from microdata import Progress, Publication, Schema, Show, Table, silent
from privacy import KAnonymity, Model, check_feasible
from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.catalogue import Parameters
from static_algos.microaggregation import group_rows, shown_by_means
from static_algos.proof import proven


class MicroaggregationParameters(Parameters):
    """How many persons are in a group."""

    k: int = Field(ge=1, le=10**12, description="distinct persons per class; a whole number from 1")


@STATIC_ALGORITHMS.register("mdav", MicroaggregationParameters)
class Mdav(StaticAlgorithm):
    """Groups rows that lie close together in all quasi-identifiers, and shows the mean of each group."""

    Parameters = MicroaggregationParameters
    parameters: MicroaggregationParameters
    guarantees: ClassVar[tuple[type[Model], ...]] = (KAnonymity,)
    merges = True  # what is left at the end joins a group
    shows: ClassVar[Show] = "mean"
    example: ClassVar[Mapping[str, Any]] = {"k": 3}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """Distinct persons."""
        del schema
        return (KAnonymity(self.parameters.k),)

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Group the rows. Nothing is random, nothing is suppressed."""
        del seed
        models = self.models(table.schema)
        check_feasible(models, table)
        groups = group_rows(table, range(len(table.schema.quasi)), self.parameters.k, progress)
        return proven(shown_by_means(table, groups), models)
