"""Incognito: one level of generalization for each quasi-identifier, the same for all rows.

The combinations of levels form a lattice. If a combination keeps the guarantee, so does every more general one; and
what fails for some of the quasi-identifiers fails for all of them. So subsets are searched first, from single
quasi-identifiers up, and only what every smaller subset allows is looked at.

Rows of classes that break the guarantee may be suppressed, up to a limit. A guarantee that more rows can break
(t, β, …) is then not inherited along the lattice: subsets are pruned by the others (k, distinct ℓ) alone, and every
combination that is left is looked at. With t this is the literature's tIncognito.

LeFevre, DeWitt and Ramakrishnan, Incognito: Efficient Full-Domain K-Anonymity (2005).

>>> import numpy as np
>>> from microdata import Number, PersonSource, Schema, Table
>>> schema = Schema(PersonSource.ROW, (Number("age", 0, 99, integer=True),))
>>> ages = np.array([[21.0], [22.0], [25.0], [61.0], [63.0], [70.0]])
>>> table = Table(schema, np.arange(6), ages, np.empty((6, 0), np.int32))
>>> publication = Incognito(k=3, widths={"age": [10, 50]}).anonymize(table)
>>> publication.boxes.lo.ravel().tolist(), publication.boxes.hi.ravel().tolist()
([0.0, 50.0], [49.0, 99.0])
>>> publication.details["levels"]
{'age': 2}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from microdata import Progress
from static_algos.algorithm import STATIC_ALGORITHMS
from static_algos.full_domain import (
    FullDomain,
    FullDomainParameters,
    Generalization,
    Lattice,
    allowed_by_subsets,
    explore,
    minimal_of,
)


class IncognitoParameters(FullDomainParameters):
    """Any guarantee, and how to generalize."""

    choose: Literal["best", "minimal"] = Field(
        default="best",
        description="best: search for the least loss; minimal: search for all minimal generalizations, report them, "
        "and publish the one of least loss",
    )


@STATIC_ALGORITHMS.register("incognito", IncognitoParameters)
class Incognito(FullDomain):
    """Generalizes each quasi-identifier to one level for all rows, as little as the guarantee allows."""

    Parameters = IncognitoParameters
    parameters: IncognitoParameters

    def search(
        self, lattice: Lattice, progress: Progress
    ) -> tuple[Generalization | None, Sequence[Generalization] | None]:
        """The least loss, or all minimal ones, among what every subset of the quasi-identifiers allows."""
        every = self.parameters.choose == "minimal"
        found = explore(lattice, allowed_by_subsets(lattice, progress), progress, every=every)
        if not found:
            return None, None
        minimal = minimal_of(found) if every else None
        return (minimal or found)[0], minimal
