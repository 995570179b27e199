"""tMondrian_W: (ω,t)-closeness on sliding windows, cut by Mondrian.

Idea. As SABRE_W, with Mondrian as the static algorithm: the undecided rows of a window are cut at medians while both
halves keep what the window leaves of t. It loses more than SABRE_W; it is here to compare with.

Reference: J. Cao, thesis 2010, chapter 6; the window's part is in `window.py`.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from microdata import Table
from static_algos import Mondrian, StaticAlgorithm
from stream_algos.close_window import CloseWindowEngine, CloseWindowParameters
from stream_algos.engine import STREAM_ALGORITHMS
from stream_algos.window import References


@STREAM_ALGORITHMS.register("mondrian_w", CloseWindowParameters)
class MondrianW(CloseWindowEngine):
    """(ω,t)-closeness: the rows of a window, cut by Mondrian with what the window leaves of t."""

    Parameters = CloseWindowParameters
    static: ClassVar[type[StaticAlgorithm]] = Mondrian

    def _partition(self, rows: Table, references: References) -> NDArray[np.int32]:
        # Rounded down, to the safe side, so that t - D is never exceeded.
        left = math.floor(max(self._room(rows, references), 0.0) * self.parameters.t * 1e9) / 1e9
        closeness = {"threshold": left, "ground": "domain"}
        return self.static(k=self.parameters.k, t=closeness).anonymize(rows).classes
