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

from collections.abc import Mapping, Sequence
from typing import Any

from microdata import Progress, Table
from static_algos.algorithm import STATIC_ALGORITHMS
from static_algos.microaggregation import Microaggregation, MicroaggregationParameters


@STATIC_ALGORITHMS.register("mdav", MicroaggregationParameters)
class Mdav(Microaggregation):
    """Groups rows that lie close together in all quasi-identifiers, and shows the mean of each group."""

    def compared(self, table: Table, progress: Progress) -> tuple[Sequence[int], Mapping[str, Any]]:
        """All of them."""
        del progress
        return range(len(table.schema.quasi)), {}
