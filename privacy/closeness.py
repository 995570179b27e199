"""t-closeness: what a class shows of the sensitive values is close to what the whole table shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import Attribute, Category, Schema
from privacy.emd import Ground, ground_name, work
from privacy.exact import Real
from privacy.keys import KEYS, Form
from privacy.model import Groups, Histogram, SensitiveModel, require_parameter


@dataclass(frozen=True)
class TCloseness(SensitiveModel):
    """The earth mover's distance of every class from the reference is at most `t`.

    Numbers are ranked among the values that occur, or, with `ground="domain"`, in their declared domain, which is what
    windows need.
    """

    t: Real
    ground: Ground = "auto"
    attribute: str | None = None

    name = "t-closeness"
    parameter = "t"
    survives_merging = True
    survives_adding = False
    more_is_safer = False
    checked_on = "window"

    def __post_init__(self) -> None:
        require_parameter("t", self.t, 0 <= self.t <= 1, "from 0 to 1", nearest=1 if self.t > 1 else 0)

    def objection(self, attribute: Attribute) -> str | None:
        """A number has no hierarchy to measure by."""
        number = not isinstance(attribute, Category)
        return (
            "a number has no hierarchy; allowed: rank, domain, equal" if self.ground == "hierarchy" and number else None
        )

    def basis(self, groups: Groups) -> str:
        """The ground distance, of each attribute where they differ."""
        names = {one.attribute.name: ground_name(one.attribute, self.ground) for one in self.histograms(groups)}
        if len(set(names.values())) == 1:
            return next(iter(names.values()))
        return "; ".join(f"{attribute}: {name}" for attribute, name in names.items())

    def _achieved(self, groups: Groups, histogram: Histogram) -> NDArray[np.float64]:
        return work(histogram, groups.rows, self.ground).distance()

    def _holds(self, groups: Groups, histogram: Histogram) -> NDArray[np.bool_]:
        return work(histogram, groups.rows, self.ground).at_most(self.t)


class Closeness(Form):
    """t-closeness; a bare number is the threshold."""

    plain = "threshold"

    threshold: float = Field(ge=0, le=1, description="largest earth mover's distance of a class from all rows; 0 to 1")
    ground: Ground = Field(
        "auto",
        description="distance of two values: auto is the rank among the values that occur for numbers (rank), else "
        "hierarchy; domain is the rank in the declared domain",
    )


@KEYS.add(
    "t",
    Closeness,
    TCloseness,
    requests=[(0.4, 0.05), ({"threshold": 0.5, "ground": "equal"}, {"threshold": 0.1, "ground": "equal"})],
    description="closeness to the distribution of all rows, from 0 (equal) to 1",
)
def _closeness(given: Closeness, _beside: Mapping[str, Any], _schema: Schema) -> Iterator[TCloseness]:
    yield TCloseness(given.threshold, given.ground)
