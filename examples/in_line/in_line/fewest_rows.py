"""Fewest rows: no class is smaller than this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import Schema
from privacy import KEYS, Groups, Model


@dataclass(frozen=True)
class FewestRows(Model):
    """Every class has at least so many rows."""

    rows: int

    name = "fewest-rows"
    parameter = "rows"
    survives_merging = True
    survives_adding = True
    more_is_safer = True

    def achieved(self, groups: Groups) -> NDArray[np.float64]:
        return groups.rows.astype(np.float64)

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        return groups.rows >= self.rows

    def nearest(self, achieved: float) -> int:
        return int(achieved)


@KEYS.add("rows", int, FewestRows, requests=[(4, 60)], ge=1, le=10**12, description="least rows of a class; from 1")
def fewest_rows(given: int, beside: Mapping[str, Any], schema: Schema) -> Iterator[FewestRows]:
    yield FewestRows(given)
