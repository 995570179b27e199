"""In line: rows in the order of their quasi-identifiers, cut whenever k persons are together."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from microdata import Progress, Publication, Schema, Table, silent
from privacy import KAnonymity, Model, check_feasible
from static_algos import STATIC_ALGORITHMS, Parameters, StaticAlgorithm


class InLineParameters(Parameters):
    """What In line is asked for."""

    k: int = Field(ge=1, le=10**12, description="distinct persons per class; a whole number from 1")


@STATIC_ALGORITHMS.register("in_line", InLineParameters)
class InLine(StaticAlgorithm):
    """Cuts the rows, in the order of their quasi-identifiers, whenever k persons are together."""

    Parameters = InLineParameters
    parameters: InLineParameters
    guarantees = (KAnonymity,)
    merges = True  # what is left at the end joins the last class
    example: ClassVar = {"k": 3}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        return (KAnonymity(self.parameters.k),)

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        check_feasible(self.models(table.schema), table)
        order = np.lexsort(table.quasi.T)
        classes = np.empty(len(table), np.int64)
        number, together = 0, set[int]()
        for row in order:
            classes[row] = number
            together.add(int(table.persons[row]))
            if len(together) == self.parameters.k:
                number, together = number + 1, set()
                progress("cutting", number, len(table))
        return Publication.of(table, np.minimum(classes, max(number - 1, 0)))
