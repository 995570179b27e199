"""(ω,t)-closeness: what every window algorithm has in common whose classes are close to a window of the stream.

The undecided rows of a window are D away from all of it. A static algorithm partitions them with what is left of the
threshold, t - D, and every class is within t of the window by the triangle inequality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from microdata import Table
from privacy import KAnonymity, Model, TCloseness, distance
from privacy.exact import exact
from stream_algos.window import References, WindowEngine, WindowParameters


class CloseWindowParameters(WindowParameters):
    """What a window algorithm for closeness is asked for."""

    t: float = Field(ge=0, le=1, description="largest earth mover's distance of a class from its window")


class CloseWindowEngine(WindowEngine):
    """Classes whose sensitive values are distributed as in a sliding window of the stream."""

    parameters: CloseWindowParameters
    guarantees = (KAnonymity, TCloseness)
    example: ClassVar[Mapping[str, Any]] = {"k": 3, "t": 0.3, "window": {"size": 40, "advance": 10}}
    variants: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"window": {"size": 40, "advance": 40}, "delay": {"seconds": 10.0}},
        {"window": {"seconds": 20.0, "advance_seconds": 5.0}},
        {"floor": 0.0},
    )

    def models(self) -> tuple[Model, ...]:
        """At least k persons, and t-closeness to the window."""
        return KAnonymity(self.parameters.k), TCloseness(self.parameters.t, "domain")

    def _room(self, rows: Table, references: References) -> float:
        """The share of t that the distance of all rows from the window leaves, by the worst sensitive attribute."""
        t = exact(self.parameters.t)
        counts = zip(self.schema.sensitive, references, self.schema.histograms(rows.sensitive), strict=True)
        farthest = max(distance(attribute, reference, own, "domain") for attribute, reference, own in counts)
        return float(t - farthest) / (float(t) or 1.0)
