"""SABRE_W: (ω,t)-closeness on sliding windows, with k persons per class.

Idea. Each class is close to a window of the stream instead of a whole table. The undecided rows of a window are D away
from all of it, so static SABRE partitions them with what is left of the threshold, t - D, and every class is within t
of the window by the triangle inequality. That needs one ground distance everywhere: ranks and heights come from the
declared domain (or from the quantiles that are declared for it), never from the values that happen to be there.

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

from microdata import Table
from privacy.exact import exact
from static_algos import Refine, sabre_classes
from stream_algos.close_window import CloseWindowEngine, CloseWindowParameters
from stream_algos.engine import STREAM_ALGORITHMS
from stream_algos.window import References


class SabreWParameters(CloseWindowParameters):
    """What SABRE_W is asked for."""

    refine: Refine = "table"


@STREAM_ALGORITHMS.register("sabre_w", SabreWParameters)
class SabreW(CloseWindowEngine):
    """(ω,t)-closeness: classes whose sensitive values are distributed as in a sliding window of the stream."""

    Parameters = SabreWParameters
    parameters: SabreWParameters
    merges = True
    variants = (*CloseWindowEngine.variants, {"floor": 0.0, "refine": "none"})

    def _partition(self, rows: Table, references: References) -> NDArray[np.int32]:
        given = self.parameters
        classes, _ = sabre_classes(
            rows, references, t=exact(given.t), k=given.k, refine=given.refine, ground="domain", draw_words=self.words
        )
        return classes
