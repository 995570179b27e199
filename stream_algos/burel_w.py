"""BUREL_W: β-likeness to a sliding window, with k persons per class.

Idea. The window says how often each sensitive value may occur in a class: its cap f(p), with p the value's share of the
window. β-likeness has no triangle inequality, so nothing can be subtracted from β; instead BUREL partitions the
undecided rows with the caps of the whole window, which works whenever these rows together keep them.

Reference: J. Cao, thesis 2010, section 6.6 (a sketch); the window's part is in `window.py`.

>>> import numpy as np
>>> from microdata import Category, Hierarchy, Number, PersonSource, Schema
>>> from stream_algos.engine import Batch
>>> disease = Category("disease", Hierarchy.flat(["flu", "asthma", "ulcer", "colic"]))
>>> schema = Schema(PersonSource.ROW, (Number("age", 0, 99),), (disease,))
>>> n = np.arange(60)
>>> rows = Batch(n, n.astype(float), n, n[:, None] * 1.5, n.astype(np.int32)[:, None] % 4)
>>> engine = BurelW(schema, beta=1, k=4, window={"size": 40, "advance": 20})
>>> len(engine.push(rows).members) + len(engine.flush().members)
60
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import Table
from privacy import BetaLikeness, KAnonymity, Likeness, Model, RangeLikeness, SemanticLikeness
from static_algos import Refine, burel_classes, likeness_caps
from static_algos.limits import Cap, present_values
from stream_algos.engine import STREAM_ALGORITHMS
from stream_algos.window import References, WindowEngine, WindowParameters


class BurelWParameters(WindowParameters):
    """What BUREL_W is asked for."""

    beta: Likeness = Field(description="largest relative gain on a sensitive value (enhanced), or another form")
    refine: Refine = "table"


@STREAM_ALGORITHMS.register("burel_w", BurelWParameters)
class BurelW(WindowEngine):
    """Window β-likeness: no sensitive value is much more frequent in a class than in a window of the stream."""

    Parameters = BurelWParameters
    parameters: BurelWParameters
    guarantees = (KAnonymity, BetaLikeness, SemanticLikeness, RangeLikeness)
    merges = True
    example: ClassVar[Mapping[str, Any]] = {"k": 3, "beta": 1.0, "window": {"size": 40, "advance": 10}}
    variants = (
        {"window": {"seconds": 20.0, "advance_seconds": 5.0}},
        {"beta": {"semantic": {"beta": 2, "height": 1}}, "window": {"size": 40, "advance": 20}},
        {"beta": {"range": {"beta": 2, "width": 2}}, "window": {"size": 40, "advance": 20}},
    )

    def models(self) -> tuple[Model, ...]:
        """At least k persons, and β-likeness to the window in the form that is asked for."""
        return KAnonymity(self.parameters.k), *self.parameters.beta.models(self.schema)

    def _room(self, rows: Table, references: References) -> float:
        """The least of what the caps leave: 1 where a share is the window's own, 0 where it is the cap itself."""
        # Caps next to the window's own shares are missed by more than a float can say.
        return float(max(min(self._left(rows, references), default=Fraction(1)), Fraction(-1)))

    def _left(self, rows: Table, references: References) -> Iterator[Fraction]:
        caps = likeness_caps(self.models(), self.schema, references, present_values(rows))
        for some, reference, own in zip(caps, references, self.schema.histograms(rows.sensitive), strict=True):
            all_before, own_before = (np.append(0, np.cumsum(counts)) for counts in (reference, own))
            for cap in some:
                share, usual = _share(own_before, cap), _share(all_before, cap)
                if share > usual:
                    yield (cap.share - share) / (cap.share - usual) if cap.share > usual else Fraction(-1)

    def _partition(self, rows: Table, references: References) -> NDArray[np.int32]:
        caps = likeness_caps(self.models(), self.schema, references, present_values(rows))
        given = self.parameters
        return burel_classes(rows, caps, k=given.k, refine=given.refine, draw_words=self.words)[0]


def _share(before: NDArray[np.int64], cap: Cap) -> Fraction:
    """The share of a run of values, from how many rows are below each value."""
    return Fraction(int(before[cap.last + 1] - before[cap.first]), int(before[-1]))
