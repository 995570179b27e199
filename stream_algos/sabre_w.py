"""SABRE_W: (ω,t)-closeness on sliding windows, with k persons per class.

Idea. Each class is close to a window of the stream instead of a whole table. The undecided rows of a window are D away
from all of it, so static SABRE partitions them with what is left of the threshold, t - D, and every class is within t
of the window by the triangle inequality. That needs one ground distance everywhere: ranks and heights come from the
declared domain, never from the values that happen to be there.

Reference: J. Cao, thesis 2010, chapter 6; the window's part is in `window.py`.

>>> import numpy as np
>>> from microdata import Category, Hierarchy, Number, PersonSource, Schema
>>> from stream_algos.engine import Batch
>>> disease = Category("disease", Hierarchy.flat(["flu", "asthma", "ulcer", "colic"]))
>>> schema = Schema(PersonSource.ROW, (Number("age", 0, 99),), (disease,))
>>> n = np.arange(60)
>>> rows = Batch(n, n.astype(float), n, n[:, None] * 1.5, n.astype(np.int32)[:, None] % 4)
>>> engine = SabreW(schema, t=0.5, k=4, window={"size": 40, "advance": 20})
>>> early, late = engine.push(rows), engine.flush()
>>> len(early.members) + len(late.members), early.windows[0].tolist(), late.windows[-1].tolist()
(60, [0, 39], [20, 59])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import Table
from privacy import KAnonymity, Model, TCloseness, distance
from privacy.exact import exact
from static_algos import Refine, sabre_classes
from stream_algos.engine import STREAM_ALGORITHMS
from stream_algos.window import References, WindowEngine, WindowParameters


class SabreWParameters(WindowParameters):
    """What SABRE_W is asked for."""

    t: float = Field(ge=0, le=1, description="largest earth mover's distance of a class from its window")
    refine: Refine = "table"


@STREAM_ALGORITHMS.register("sabre_w", SabreWParameters)
class SabreW(WindowEngine):
    """(ω,t)-closeness: classes whose sensitive values are distributed as in a sliding window of the stream."""

    Parameters = SabreWParameters
    parameters: SabreWParameters
    guarantees = (KAnonymity, TCloseness)

    def models(self) -> tuple[Model, ...]:
        """At least k persons, and t-closeness to the window."""
        return KAnonymity(self.parameters.k), TCloseness(self.parameters.t)

    def _room(self, rows: Table, references: References) -> float:
        """The share of t that the distance of all rows from the window leaves, by the worst sensitive attribute."""
        t = exact(self.parameters.t)
        counts = zip(self.schema.sensitive, references, self.schema.histograms(rows.sensitive), strict=True)
        farthest = max(distance(attribute, reference, own) for attribute, reference, own in counts)
        return float(t - farthest) / (float(t) or 1.0)

    def _partition(self, rows: Table, references: References) -> NDArray[np.int32]:
        given = self.parameters
        return sabre_classes(rows, references, t=exact(given.t), k=given.k, refine=given.refine, draw_words=self.words)[
            0
        ]
