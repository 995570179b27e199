"""δ-disclosure privacy: every sensitive value is about as likely in a class as in the table, in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import Schema
from privacy.exact import SLACK, Real, by_class
from privacy.keys import KEYS
from privacy.model import Groups, Histogram, SensitiveModel, require_positive


@dataclass(frozen=True)
class DeltaDisclosure(SensitiveModel):
    """|ln(q / p)| < δ for every value of the reference, so every class has every value.

    Brickell and Shmatikov, The Cost of Privacy (2008). The logarithm is natural.
    """

    delta: Real
    attribute: str | None = None

    name = "delta-disclosure"
    parameter = "delta"
    survives_merging = True
    survives_adding = False
    more_is_safer = False
    checked_on = "window"

    def __post_init__(self) -> None:
        require_positive("disclosure", self.delta)

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:
        """The largest |ln(q / p)|, which δ must exceed."""
        reference = histogram.reference[histogram.values]
        rows = groups.rows[histogram.classes]
        known = reference > 0
        # A difference of logarithms of whole numbers cannot overflow; equal shares give 0 up to rounding.
        ratio = np.log(histogram.counts) + np.log(max(histogram.total, 1)) - np.log(rows)
        ratio = np.where(known, np.abs(ratio - np.log(np.where(known, reference, 1))), np.inf)
        worst = by_class(np.maximum, ratio, histogram.starts, empty=0.0)
        complete = by_class(np.add, known.astype(np.int64), histogram.starts, empty=0)
        return np.where(complete == np.count_nonzero(histogram.reference), worst, np.inf)

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:
        return self._achieved(groups, histogram) < float(self.delta) - SLACK * max(1.0, float(self.delta))


@KEYS.add(
    "disclosure",
    float,
    DeltaDisclosure,
    requests=[(2.5, 0.4)],
    gt=0,
    allow_inf_nan=False,
    description="δ: |ln(q / p)| stays below it for every value; above 0",
)
def _disclosure(given: float, _beside: Mapping[str, Any], _schema: Schema) -> Iterator[DeltaDisclosure]:
    yield DeltaDisclosure(given)
