"""Lattice: all minimal generalizations of a table, by adding up one hash table of its distinct rows.

The distinct rows are counted once, with their persons and sensitive values; every combination of levels is looked at by
adding up the counts of a more special one. A combination is minimal if it keeps the guarantee and none below it does;
several that cannot be compared may be. All of them are reported, and one is published: the one that loses least, or the
one of the fewest steps.

Combinations are settled without a look only where that is sound: see `full_domain.py`.

X. Sun, Privacy Preserving Data Sharing in Data Mining Environment (thesis 2010), chapter 2, with the whole lattice in
the place of single strategies (those are in `strategies.py`).

>>> import numpy as np
>>> from microdata import Category, Hierarchy, PersonSource, Schema, Table
>>> from privacy import KAnonymity
>>> zips = Hierarchy.from_mapping({"43**": {"437*": ["4370", "4373"], "435*": ["4352", "4350"]}})
>>> gender = Hierarchy.from_mapping({"person": ["male", "female"]})
>>> schema = Schema(PersonSource.ROW, (Category("gender", gender), Category("zip", zips)))
>>> rows = np.array([[0, 0], [0, 0], [0, 2], [1, 1], [1, 1], [1, 3]], float)
>>> table = Table(schema, np.arange(6), rows, np.empty((6, 0), np.int32))
>>> sorted(one.levels for one in minimal_generalizations(table, [KAnonymity(2)]))
[(0, 2), (1, 1)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from microdata import Progress, Table, silent
from privacy import Model
from static_algos.algorithm import STATIC_ALGORITHMS
from static_algos.full_domain import (
    FullDomain,
    FullDomainParameters,
    Generalization,
    Lattice,
    check_size,
    explore,
    minimal_of,
)
from static_algos.recoding import recodings


class LatticeParameters(FullDomainParameters):
    """Any guarantee, and which of the minimal generalizations is published."""

    choose: Literal["loss", "height"] = Field(
        default="loss",
        description="loss: publish the minimal generalization that loses least; height: the one of the fewest steps",
    )


@STATIC_ALGORITHMS.register("lattice", LatticeParameters)
class LatticeSearch(FullDomain):
    """Finds all minimal generalizations of the table, reports them, and publishes one of them."""

    Parameters = LatticeParameters
    parameters: LatticeParameters

    def search(
        self, lattice: Lattice, progress: Progress
    ) -> tuple[Generalization | None, Sequence[Generalization] | None]:
        """All minimal ones, and the best of them."""
        minimal = _minimal(lattice, progress)
        if not minimal:
            return None, None
        if self.parameters.choose == "height":
            return min(minimal, key=lambda one: (one.height, one.loss, one.levels)), minimal
        return minimal[0], minimal


def minimal_generalizations(
    table: Table,
    models: Sequence[Model],
    *,
    max_suppressed: int = 0,
    height: int = 4,
    widths: Mapping[str, Sequence[float]] | None = None,
    progress: Progress = silent,
) -> list[Generalization]:
    """All minimal generalizations of a table that keep the models, the one that loses least first; none if none does.

    Up to `max_suppressed` rows may be left out. Numbers have `height` levels of doubling widths, or those in `widths`.
    """
    recoded = recodings(table, height, widths or {})
    check_size(recoded)
    if not len(table):
        return []
    return _minimal(Lattice(table, recoded, models, max_suppressed), progress)


def _minimal(lattice: Lattice, progress: Progress) -> list[Generalization]:
    found = explore(lattice, np.ones(lattice.heights, bool), progress, every=True)
    return minimal_of(found) if found else []
