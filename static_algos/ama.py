"""AMA: microaggregation by a few key attributes that most of the others depend on.

Approximate microaggregation. The quasi-identifiers are the nodes of a tree in which each hangs from one that it depends
on most (the minimum spanning tree by variation of information); those with the most neighbours are the key attributes.
MDAV then compares rows in them alone, which is at most half of the work, and the mean of a group is shown in all
quasi-identifiers.

X. Sun (2010), section 5.3.

>>> import numpy as np
>>> from microdata import Number, PersonSource, Schema, Table
>>> schema = Schema(PersonSource.ROW, tuple(Number(name, 0, 99) for name in ("age", "seniority", "floor")))
>>> ages = np.array([21.0, 22.0, 26.0, 61.0, 63.0, 71.0])
>>> rows = np.stack([ages, ages - 20, np.array([1.0, 2.0, 1.0, 2.0, 1.0, 2.0])], axis=1)
>>> table = Table(schema, np.arange(6), rows, np.empty((6, 0), np.int32))
>>> publication = Ama(k=3).anonymize(table)
>>> publication.details["key_attributes"], publication.sizes.tolist()
(['age', 'seniority'], [3, 3])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from microdata import Progress, Table
from static_algos.algorithm import STATIC_ALGORITHMS
from static_algos.dependency import cells, dependency_tree, distances, key_attributes
from static_algos.microaggregation import Microaggregation, MicroaggregationParameters


@STATIC_ALGORITHMS.register("ama", MicroaggregationParameters)
class Ama(Microaggregation):
    """Groups rows that lie close together in the key attributes, and shows the mean of each group in all of them."""

    def compared(self, table: Table, progress: Progress) -> tuple[Sequence[int], Mapping[str, Any]]:
        """The key attributes."""
        tree = dependency_tree(distances([cells(column) for column in table.quasi.T], progress))
        keys = key_attributes(tree, len(table.schema.quasi))
        names = [attribute.name for attribute in table.schema.quasi]
        return keys, {
            "key_attributes": [names[key] for key in keys],
            "dependency_tree": [[names[one], names[other]] for one, other in tree],
        }
